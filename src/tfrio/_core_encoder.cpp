// The Python face of encoding: ExampleEncoder.
#include <memory>

#include "_core_shared.hpp"
#include "tfrio/encoder.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

/// (name, kind, place)
using Written = std::tuple<nb::bytes, int, int>;
using Values = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Offsets =
    std::optional<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;
/// (values, byte_offsets, value_offsets, step_offsets, present, count)
using Given = std::tuple<Values, Offsets, Offsets, Offsets, std::optional<Values>, std::int64_t>;

/// (index of the column, 0 for each of its steps that carries no kind)
using StepsGiven = std::pair<std::size_t, Values>;

/// Result of encode().
struct EncodedResult {
  nb::object data, ends;
};

struct PyEncoder {
  PyEncoder(const std::vector<Written>& features, bool sequence, bool sort);

  std::vector<FeatureSpec> specs;
  std::unique_ptr<ExampleEncoder> encoder;
};

PyEncoder::PyEncoder(const std::vector<Written>& features, bool sequence, bool sort) {
  for (const auto& [name, kind, place] : features) {
    if (kind < 0 || kind > 3) throw nb::value_error("the kind must be 0, 1, 2 or 3");
    if (place < 0 || place > 1) throw nb::value_error("the place must be 0 or 1");
    specs.push_back({std::string(name.c_str(), name.size()), static_cast<Kind>(kind), -1,
                     static_cast<Place>(place)});
  }
  encoder = std::make_unique<ExampleEncoder>(specs, sequence, sort);
}

Bytes bytes_of(const Values& array) {
  return {static_cast<const std::uint8_t*>(array.data()), array.nbytes()};
}

Bytes flags_of(const Values& array, const char* complaint) {
  if (array.itemsize() != 1) throw nb::type_error(complaint);
  return bytes_of(array);
}

std::span<const std::int64_t> span_of(const Offsets& offsets) {
  if (!offsets) return {};
  return {offsets->data(), offsets->shape(0)};
}

void check_dtype(const FeatureSpec& spec, const Values& values) {
  const bool fits = spec.kind == Kind::floats   ? values.dtype() == nb::dtype<float>()
                    : spec.kind == Kind::int64s ? values.dtype() == nb::dtype<std::int64_t>()
                                                : values.dtype() == nb::dtype<std::uint8_t>();
  if (fits) return;
  const char* wanted = spec.kind == Kind::floats   ? "float32"
                       : spec.kind == Kind::int64s ? "int64"
                                                   : "uint8";
  throw nb::type_error(("feature '" + spec.name + "': values must be " + wanted).c_str());
}

ColumnView view_of(const FeatureSpec& spec, const Given& given) {
  const auto& [values, byte_offsets, value_offsets, step_offsets, present, count] = given;
  check_dtype(spec, values);
  ColumnView view{bytes_of(values),
                  span_of(byte_offsets),
                  span_of(value_offsets),
                  span_of(step_offsets),
                  {},
                  count};
  if (present) view.present = flags_of(*present, "`present` must be uint8 or bool");
  return view;
}

EncodedResult encode(const PyEncoder& self, std::size_t rows, const std::vector<Given>& columns,
                     const std::vector<StepsGiven>& step_present) {
  if (columns.size() != self.specs.size()) throw nb::value_error("one column a feature is needed");
  std::vector<ColumnView> views;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    views.push_back(view_of(self.specs[i], columns[i]));
  }
  for (const auto& [i, flags] : step_present) {
    if (i >= views.size()) throw nb::index_error("there is no such column");
    views[i].step_present = flags_of(flags, "`step_present` must be uint8 or bool");
  }
  Encoded encoded;
  {
    const WithoutGil released;
    encoded = self.encoder->encode(rows, views);
  }
  return {to_array(std::move(encoded.data)), to_array(std::move(encoded.ends))};
}

}  // namespace

void bind_encoder(nb::module_& module) {
  nb::class_<EncodedResult>(module, "Encoded", "Framed records.")
      .def_ro("data", &EncodedResult::data, TFRIO_ARRAY_GETTER("data", "uint8"),
              "The framed records, one after the other.")
      .def_ro("ends", &EncodedResult::ends, TFRIO_ARRAY_GETTER("ends", "int64"),
              "Offset of the end of each record in `data`.");
  nb::class_<PyEncoder>(module, "ExampleEncoder", "Encodes columns into framed Examples.")
      .def(nb::init<const std::vector<Written>&, bool, bool>(), "features"_a, nb::kw_only(),
           "sequence"_a = false, "sort"_a = true,
           "Write features: (name, kind, place) each, names sorted unless told otherwise.")
      .def("encode", encode, "rows"_a, "columns"_a, nb::kw_only(),
           "step_present"_a = std::vector<StepsGiven>(),
           nb::sig("def encode(self, rows: int, columns: collections.abc.Sequence[tuple["
                   "numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.int64] | None, "
                   "numpy.typing.NDArray[numpy.int64] | None, "
                   "numpy.typing.NDArray[numpy.int64] | None, "
                   "numpy.typing.NDArray[typing.Any] | None, int]], *, step_present: "
                   "collections.abc.Sequence[tuple[int, numpy.typing.NDArray[typing.Any]]] = ()) "
                   "-> Encoded"),
           "Encode rows of columns, each (values, byte_offsets, value_offsets, step_offsets, "
           "present, count).\n\n`step_present`: (index, flags) of feature lists with steps that "
           "carry no kind: 0 for each of these.");
}

}  // namespace tfrio::python
