// The Python face of surveying payloads: SchemaScanner and classify.
#include "_core_shared.hpp"
#include "tfrio/survey.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

struct PyScanner {
  PyScanner(bool sequence, std::string_view utf8) : scanner(sequence, accepts_any(utf8)) {}

  SchemaScanner scanner;
  std::atomic_flag in_use;
};

Feed feed(PyScanner& self, const BytesArgument& data, std::int64_t start, std::int64_t max_records,
          bool verify, bool final) {
  const InUse lock(self.in_use);
  const std::size_t first = checked_start(start, data.bytes());
  const WithoutGil released;
  return feed_of(self.scanner.feed(data.bytes(), first, {max_records, verify, final}));
}

nb::list result(PyScanner& self) {
  const InUse lock(self.in_use);
  nb::list list;
  for (const FeatureSurvey& s : self.scanner.result()) {
    nb::dict kinds;
    for (int kind = 1; kind < 4; ++kind) {
      if (s.kinds[kind] > 0)
        kinds[nb::int_(kind)] = nb::make_tuple(s.kinds[kind], s.first_record[kind]);
    }
    list.append(nb::make_tuple(nb::bytes(s.name.data(), s.name.size()), static_cast<int>(s.place),
                               s.present, s.kindless, s.empty, kinds, s.min_length, s.max_length,
                               s.min_steps, s.max_steps));
  }
  return list;
}

std::string_view py_classify(const BytesArgument& payload) {
  const WithoutGil released;
  switch (classify(payload.bytes())) {
    case PayloadClass::example:
      return "example";
    case PayloadClass::sequence:
      return "sequence";
    default:
      return "other";
  }
}

}  // namespace

void bind_survey(nb::module_& module) {
  nb::class_<PyScanner>(module, "SchemaScanner", "Gathers which features payloads hold.")
      .def(nb::init<bool, std::string_view>(), "sequence"_a = false, nb::kw_only(),
           "utf8"_a = "error", "Survey Examples, or SequenceExamples.")
      .def("feed", feed, "data"_a, "start"_a = 0, "max_records"_a = -1, nb::kw_only(),
           "verify"_a = true, "final"_a = false, "Survey framed records, checking every value.")
      .def("result", result,
           nb::sig("def result(self) -> list[tuple[bytes, int, int, int, int, "
                   "dict[int, tuple[int, int]], int, int, int, int]]"),
           "Return (name, place, present, kindless, empty, {kind: (records, first record)}, "
           "min length, max length, min steps, max steps) of each feature, in the order of first "
           "sight; -1 where nothing is known.");
  module.def("classify", py_classify, "payload"_a,
             "Return which message a payload is: \"example\", \"sequence\" or \"other\".");
}

}  // namespace tfrio::python
