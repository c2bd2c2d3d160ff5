// The Python face of taking payloads out of framed records, wherever these lie.
#include <algorithm>

#include "_core_record_map.hpp"
#include "_core_shared.hpp"
#include "tfrio/framing.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

using Int32s = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Int64s = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Records up to this size are checked without releasing the GIL, which costs as long.
constexpr std::size_t kSmall = 16 << 10;

// Records that are asked of the memory before their turn, and how many bytes of each.
constexpr std::size_t kAhead = 64;
constexpr std::size_t kReach = 192;

/// Return what follows `start` in a buffer; nothing where either is not there.
Bytes rest_of(const std::vector<BytesArgument>& views, std::int32_t file, std::int64_t start) {
  if (file < 0 || static_cast<std::size_t>(file) >= views.size() || start < 0) return {};
  const Bytes data = views[static_cast<std::size_t>(file)].bytes();
  return data.subspan(std::min(static_cast<std::size_t>(start), data.size()));
}

/// Return the payload of the record at `start`, or nothing with `fault` filled.
std::optional<Bytes> checked_payload(Bytes data, std::int64_t start, bool verify, Fault& fault) {
  const std::size_t at = checked_start(start, data);
  const auto length = whole_record(data, at, true, fault);
  if (!length && !fault)
    fault = {FaultCode::header_cut, 0, start, kHeaderSize, 0};  // nothing there
  if (!length || (verify && !payload_matches(data, at, *length, fault))) {
    fault.offset = start;
    return std::nullopt;
  }
  return data.subspan(at + kHeaderSize, *length);
}

nb::bytes bytes_of(Bytes payload) {
  return nb::bytes(payload.data(), payload.size());
}

nb::object payload_or_fault(Bytes data, std::int64_t start, bool verify) {
  Fault fault;
  auto payload = checked_payload(data, start, false, fault);
  if (payload && verify) {
    if (payload->size() <= kSmall) {
      payload = checked_payload(data, start, true, fault);
    } else {
      const WithoutGil released;
      payload = checked_payload(data, start, true, fault);
    }
  }
  if (!payload) return nb::cast(std::move(fault));
  return bytes_of(*payload);
}

nb::object payload_at(const BytesArgument& data, std::int64_t start, bool verify) {
  return payload_or_fault(data.bytes(), start, verify);
}

nb::object payload_of(const RecordMap& map, std::int64_t number, bool verify) {
  nb::object payload = payload_or_fault(map.bytes(), map.start_of(number), verify);
  return map.whole() ? payload : nb::none();
}

nb::tuple payloads_at(nb::sequence buffers, const Int32s& which, const Int64s& starts,
                      bool verify) {
  std::vector<BytesArgument> views(nb::len(buffers));
  std::size_t n = 0;
  for (nb::handle buffer : buffers) {
    if (!views.at(n++).take(buffer.ptr())) {
      throw nb::type_error("each buffer must be bytes or another C-contiguous buffer");
    }
  }
  if (which.shape(0) != starts.shape(0)) {
    throw nb::value_error("`which` and `starts` must be equally long");
  }
  std::vector<Bytes> found;
  Fault fault;
  {
    const WithoutGil released;
    found.reserve(which.shape(0));
    std::size_t asked = 0;
    for (std::size_t k = 0; k < which.shape(0); ++k) {
      const std::size_t soon = std::min<std::size_t>(k + kAhead, which.shape(0));
      prefetch(std::exchange(asked, soon), soon, kReach,
               [&](std::size_t i) { return rest_of(views, which.data()[i], starts.data()[i]); });
      const std::int32_t file = which.data()[k];
      if (file < 0 || static_cast<std::size_t>(file) >= views.size()) {
        throw nb::index_error("`which` names a buffer that is not there");
      }
      const auto payload = checked_payload(views[file].bytes(), starts.data()[k], verify, fault);
      if (!payload) break;
      found.push_back(*payload);
    }
  }
  fault.record = static_cast<std::int64_t>(found.size());
  nb::list payloads;
  for (const Bytes payload : found) payloads.append(bytes_of(payload));
  return nb::make_tuple(payloads, fault ? nb::cast(std::move(fault)) : nb::none());
}

}  // namespace

void bind_payloads(nb::module_& module) {
  nb::class_<RecordMap>(
      module, "RecordMap",
      "Records of a mapped file by number.\n\n`data` is the mapping, `offsets` says where the "
      "header of each record lies, `end` where the\nlast one ends.")
      .def(nb::init<nb::object, RecordOffsets, std::int64_t>(), "data"_a, "offsets"_a, "end"_a,
           nb::sig("def __init__(self, data: FileMap, offsets: numpy.typing.NDArray[numpy.int64], "
                   "end: int) -> None"))
      .def("payload", payload_of, "number"_a, "verify"_a = true,
           nb::sig("def payload(self, number: int, verify: bool = True) -> bytes | Fault | None"),
           "Return the payload of a record, why there is none, or None where the file was cut.");
  module.def("payload_at", payload_at, "data"_a, "start"_a, "verify"_a = true,
             nb::sig("def payload_at(data: typing_extensions.Buffer, start: int, "
                     "verify: bool = True) -> bytes | Fault"),
             "Return the payload of the framed record at `start`, or why there is none.");
  module.def("payloads_at", payloads_at, "buffers"_a, "which"_a, "starts"_a, "verify"_a = true,
             nb::sig("def payloads_at(buffers: collections.abc.Sequence[typing_extensions.Buffer], "
                     "which: numpy.typing.NDArray[numpy.int32], "
                     "starts: numpy.typing.NDArray[numpy.int64], verify: bool = True) "
                     "-> tuple[list[bytes], Fault | None]"),
             "Return the payloads of framed records in any order, up to the first fault: k has "
             "its header at starts[k] of buffers[which[k]].");
}

}  // namespace tfrio::python
