// The Python face of decoding: ExampleDecoder and the columns it hands over.
#include <cstring>
#include <memory>

#include "_core_shared.hpp"
#include "tfrio/decoder.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Int32s = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Int64s = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Spans = nb::ndarray<const std::int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

/// One column as Python sees it: NumPy arrays, None for those not in use.
struct ColumnResult {
  nb::object values = nb::none(), byte_offsets = nb::none(), value_offsets = nb::none(),
             step_offsets = nb::none(), present = nb::none(), step_present = nb::none();
  bool whole = false;
};

/// The decoder, its lock, and the arrays that outputs are written into.
struct PyDecoder {
  PyDecoder(const std::vector<Asked>& features, bool sequence, bool discover,
            std::string_view utf8);

  std::unique_ptr<ExampleDecoder> decoder;
  std::vector<nb::object> outputs;
  std::atomic_flag in_use;
};

PyDecoder::PyDecoder(const std::vector<Asked>& features, bool sequence, bool discover,
                     std::string_view utf8)
    : decoder(make_decoder(features, sequence, discover, utf8)), outputs(features.size()) {}

Feed feed(PyDecoder& self, const BytesArgument& data, std::int64_t start, std::int64_t max_records,
          bool verify, bool final, unsigned threads) {
  const InUse lock(self.in_use);
  const std::size_t first = checked_start(start, data.bytes());
  const WithoutGil released;
  return feed_of(self.decoder->feed(data.bytes(), first, {max_records, verify, final}, threads));
}

Feed feed_spans(PyDecoder& self, const BytesArgument& data, const Spans& spans,
                std::int64_t max_records) {
  const InUse lock(self.in_use);
  const auto size = static_cast<std::int64_t>(data.bytes().size());
  const std::span<const Span> list(reinterpret_cast<const Span*>(spans.data()), spans.shape(0));
  for (const Span& span : list) {
    if (span.offset < 0 || span.length < 0 || span.offset > size ||
        span.length > size - span.offset) {
      throw nb::index_error("a span lies outside the buffer");
    }
  }
  const WithoutGil released;
  return feed_of(self.decoder->feed_spans(data.bytes(), list, max_records));
}

Feed feed_at(PyDecoder& self, nb::sequence buffers, const Int32s& which, const Int64s& starts,
             bool verify, unsigned threads) {
  const InUse lock(self.in_use);
  std::vector<BytesArgument> views(nb::len(buffers));
  std::vector<Bytes> bytes;
  for (nb::handle buffer : buffers) {
    if (!views.at(bytes.size()).take(buffer.ptr())) {
      throw nb::type_error("each buffer must be bytes or another C-contiguous buffer");
    }
    bytes.push_back(views[bytes.size()].bytes());
  }
  if (which.shape(0) != starts.shape(0)) {
    throw nb::value_error("`which` and `starts` must be equally long");
  }
  const std::span<const std::int32_t> files(which.data(), which.shape(0));
  for (std::int32_t file : files) {
    if (file < 0 || static_cast<std::size_t>(file) >= bytes.size()) {
      throw nb::index_error("`which` names a buffer that is not there");
    }
  }
  const WithoutGil released;
  return feed_of(
      self.decoder->feed_at(bytes, files, {starts.data(), starts.shape(0)}, verify, threads));
}

nb::dlpack::dtype type_of(Kind kind) {
  if (kind == Kind::int64s) return nb::dtype<std::int64_t>();
  return kind == Kind::floats ? nb::dtype<float>() : nb::dtype<std::uint8_t>();
}

void set_output(PyDecoder& self, std::size_t i, nb::object output) {
  const InUse lock(self.in_use);
  Writable array;  // never a converted copy, which nobody would see
  if (!nb::try_cast(output, array, false)) {
    throw nb::type_error("the output must be a writable, C-contiguous array");
  }
  if (i >= self.decoder->size()) throw nb::index_error("there is no such feature");
  const Kind kind = self.decoder->column(i).spec().kind;
  if (array.dtype() != type_of(kind)) {
    throw nb::type_error(kind == Kind::int64s   ? "the output array must be int64"
                         : kind == Kind::floats ? "the output array must be float32"
                                                : "the output array must be uint8");
  }
  self.decoder->set_output(i, static_cast<std::uint8_t*>(array.data()), array.nbytes());
  self.outputs[i] = std::move(output);
}

nb::object values_array(const FeatureSpec& spec, Buffer<std::uint8_t>&& values,
                        nb::object& output) {
  if (values.borrowed()) {
    const std::size_t used = values.size() / value_size(spec.kind);
    nb::object flat = std::exchange(output, nb::object()).attr("reshape")(-1);
    return flat[nb::slice(nb::int_(0), nb::int_(used), nb::none())];
  }
  const std::size_t used = values.size() / value_size(spec.kind);
  switch (spec.kind) {
    case Kind::floats:
      return to_array<float>(std::move(values), {used});
    case Kind::int64s:
      return to_array<std::int64_t>(std::move(values), {used});
    default:
      return to_array<std::uint8_t>(std::move(values), {used});
  }
}

/// Return which of `steps` steps carry a kind.
nb::object step_present(const Buffer<std::int64_t>& kindless, std::int64_t steps) {
  Buffer<std::uint8_t> mask;
  const auto count = static_cast<std::size_t>(steps);
  std::memset(mask.extend(count), 1, count);
  for (std::size_t i = 0; i < kindless.size(); ++i) {
    mask[static_cast<std::size_t>(kindless[i])] = 0;
  }
  return to_array(std::move(mask));
}

ColumnResult column_result(const Column& column, ColumnArrays&& arrays, nb::object& output) {
  ColumnResult result;
  result.values = values_array(column.spec(), std::move(arrays.values), output);
  if (column.is_bytes()) result.byte_offsets = to_array(std::move(arrays.byte_offsets));
  if (column.ragged()) result.value_offsets = to_array(std::move(arrays.value_offsets));
  if (!arrays.kindless.empty()) {
    result.step_present = step_present(arrays.kindless, arrays.step_offsets.back());
  }
  if (column.is_list()) result.step_offsets = to_array(std::move(arrays.step_offsets));
  result.whole = arrays.present.empty() ||
                 std::memchr(arrays.present.data(), 0, arrays.present.size()) == nullptr;
  result.present = to_array(std::move(arrays.present));
  return result;
}

std::vector<ColumnResult> take(PyDecoder& self) {
  const InUse lock(self.in_use);
  std::vector<ColumnArrays> arrays = self.decoder->take();
  std::vector<ColumnResult> results;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    results.push_back(
        column_result(self.decoder->column(i), std::move(arrays[i]), self.outputs[i]));
  }
  return results;
}

void bind_column(nb::module_& module) {
  const auto offsets = [](const char* signature) { return nb::for_getter(nb::sig(signature)); };
  nb::class_<ColumnResult>(module, "Column", "The values of one feature over many records.")
      .def_ro("values", &ColumnResult::values,
              nb::for_getter(nb::sig("def values(self) -> numpy.typing.NDArray[typing.Any]")),
              "float32, int64 or uint8 (the bytes of all byte strings), flat.")
      .def_ro("byte_offsets", &ColumnResult::byte_offsets,
              offsets("def byte_offsets(self) -> numpy.typing.NDArray[numpy.int64] | None"),
              "Byte strings: where each value begins in `values`, and where the last ends.")
      .def_ro("value_offsets", &ColumnResult::value_offsets,
              offsets("def value_offsets(self) -> numpy.typing.NDArray[numpy.int64] | None"),
              "Any number of values: where each row's or step's list begins, and the end.")
      .def_ro("step_offsets", &ColumnResult::step_offsets,
              offsets("def step_offsets(self) -> numpy.typing.NDArray[numpy.int64] | None"),
              "Feature lists: where each row's steps begin, and the end.")
      .def_ro("present", &ColumnResult::present, TFRIO_ARRAY_GETTER("present", "uint8"),
              "0 where the feature is absent or carries no kind, else 1.")
      .def_ro("step_present", &ColumnResult::step_present,
              nb::for_getter(
                  nb::sig("def step_present(self) -> numpy.typing.NDArray[numpy.uint8] | None")),
              "Feature lists: 0 where a step carries no kind, else 1; None where all do.")
      .def_ro("whole", &ColumnResult::whole, "Whether no row lacks the feature.");
}

}  // namespace

std::unique_ptr<ExampleDecoder> make_decoder(const std::vector<Asked>& features, bool sequence,
                                             bool discover, std::string_view utf8) {
  std::vector<FeatureSpec> specs;
  for (const auto& [name, kind, count, place] : features) {
    if (kind < 1 || kind > 3) throw nb::value_error("the kind must be 1, 2 or 3");
    if (place < 0 || place > 1) throw nb::value_error("the place must be 0 or 1");
    specs.push_back({std::string(name.c_str(), name.size()), static_cast<Kind>(kind), count,
                     static_cast<Place>(place)});
  }
  const PayloadOptions options{sequence, accepts_any(utf8),
                               discover ? Unlisted::refuse : Unlisted::skip};
  return std::make_unique<ExampleDecoder>(std::move(specs), options);
}

void bind_decoder(nb::module_& module) {
  module.attr("KIND_BYTES") = static_cast<int>(Kind::bytes);
  module.attr("KIND_FLOAT") = static_cast<int>(Kind::floats);
  module.attr("KIND_INT64") = static_cast<int>(Kind::int64s);
  module.attr("PLACE_CONTEXT") = static_cast<int>(Place::context);
  module.attr("PLACE_LIST") = static_cast<int>(Place::list);
  bind_column(module);
  nb::class_<PyDecoder>(module, "ExampleDecoder", "Decodes framed Examples into columns.")
      .def(nb::init<const std::vector<Asked>&, bool, bool, std::string_view>(), "features"_a,
           nb::kw_only(), "sequence"_a = false, "discover"_a = false, "utf8"_a = "error",
           "Ask for features: (name, kind, count or -1, place) each.")
      .def("feed", feed, "data"_a, "start"_a = 0, "max_records"_a = -1, nb::kw_only(),
           "verify"_a = true, "final"_a = false, "threads"_a = 1,
           "Decode framed records, on several threads where there is enough to do.")
      .def("feed_spans", feed_spans, "data"_a, "spans"_a, "max_records"_a = -1,
           nb::sig("def feed_spans(self, data: typing_extensions.Buffer, spans: "
                   "numpy.typing.NDArray[numpy.int64], max_records: int = -1) -> Feed"),
           "Decode the payloads at int64 (n, 2) spans; `consumed` counts spans.")
      .def("feed_at", feed_at, "buffers"_a, "which"_a, "starts"_a, nb::kw_only(), "verify"_a = true,
           "threads"_a = 1,
           nb::sig("def feed_at(self, buffers: "
                   "collections.abc.Sequence[typing_extensions.Buffer], which: "
                   "numpy.typing.NDArray[numpy.int32], starts: numpy.typing.NDArray[numpy.int64], "
                   "*, verify: bool = True, threads: int = 1) -> Feed"),
           "Decode framed records in any order: k has its header at starts[k] of "
           "buffers[which[k]].")
      .def("set_output", set_output, "i"_a, "array"_a,
           nb::sig("def set_output(self, i: int, array: numpy.typing.NDArray[typing.Any]) -> None"),
           "Write feature i, bytes (uint8) or a fixed number of numbers, into `array` until the "
           "next take().")
      .def("take", take, "Return the columns gathered, in the order of the features; start anew.")
      .def_prop_ro(
          "rows", [](const PyDecoder& self) { return self.decoder->rows(); },
          "Number of rows gathered since the last take().");
}

}  // namespace tfrio::python
