// The Python face of the core: checksums and framing; the other binding files add their classes.
// Data faults come back as values, wrong use raises; the GIL is released around all work.
#include "_core_shared.hpp"
#include "tfrio/crc32c.hpp"
#include "tfrio/framing.hpp"

namespace tfrio::python {

void bind_arrow(nb::module_& module);
void bind_decoder(nb::module_& module);
void bind_deflate(nb::module_& module);
void bind_encoder(nb::module_& module);
void bind_mapping(nb::module_& module);
void bind_payloads(nb::module_& module);
void bind_row_decoder(nb::module_& module);
void bind_rows(nb::module_& module);
void bind_survey(nb::module_& module);

namespace {

using namespace nb::literals;

/// Result of scan().
struct ScanResult {
  nb::object spans;
  std::int64_t consumed;
  std::optional<Fault> fault;
};

/// Result of count().
struct CountResult {
  std::int64_t records;
  std::int64_t consumed;
  std::optional<Fault> fault;
};

std::uint32_t py_crc32c(const BytesArgument& data, std::uint32_t crc) {
  const WithoutGil released;
  return crc32c(data.bytes(), crc);
}

std::uint32_t py_masked_crc32c(const BytesArgument& data) {
  return mask_crc(py_crc32c(data, 0));
}

ScanResult py_scan(const BytesArgument& data, std::int64_t start, std::int64_t max_records,
                   bool verify_payload, bool final) {
  const std::size_t first = checked_start(start, data.bytes());
  Buffer<Span> spans;
  Progress progress;
  {
    const WithoutGil released;
    progress = scan(data.bytes(), first, {max_records, verify_payload, final}, spans);
  }
  const std::size_t rows = spans.size();
  return {to_array<std::int64_t>(std::move(spans), {rows, 2}), progress.consumed,
          fault_of(progress)};
}

CountResult py_count(const BytesArgument& data, std::int64_t start, bool verify_payload,
                     bool final) {
  const std::size_t first = checked_start(start, data.bytes());
  const WithoutGil released;
  const Progress progress = count(data.bytes(), first, {-1, verify_payload, final});
  return {progress.records, progress.consumed, fault_of(progress)};
}

std::pair<std::int64_t, bool> py_find_record(const BytesArgument& data, std::int64_t start,
                                             bool final) {
  const std::size_t first = checked_start(start, data.bytes());
  const WithoutGil released;
  const Found found = find_record(data.bytes(), first, final);
  return {found.offset, found.certain};
}

nb::bytes py_frame(nb::sequence payloads) {
  std::vector<BytesArgument> views(nb::len(payloads));
  std::size_t size = 0, i = 0;
  for (nb::handle payload : payloads) {
    if (!views.at(i).take(payload.ptr())) {
      throw nb::type_error("each payload must be bytes or another C-contiguous buffer");
    }
    size += views[i++].bytes().size() + kFrameSize;
  }
  nb::bytes result(nullptr, size);
  auto* out = reinterpret_cast<std::uint8_t*>(const_cast<char*>(result.c_str()));
  const WithoutGil released;
  for (const BytesArgument& view : views) {
    write_record(out, view.bytes());
    out += view.bytes().size() + kFrameSize;
  }
  return result;
}

void bind_fault(nb::module_& module) {
  nb::class_<Fault>(module, "Fault", "Why native code stopped: what is wrong with the data, where.")
      .def_prop_ro(
          "code", [](const Fault& f) { return code_name(f.code); }, "Name of the fault.")
      .def_prop_ro(
          "field", [](const Fault& f) { return code_field(f.code); },
          "Part of the record: \"header\", \"payload\", \"footer\" or \"\".")
      .def_ro("record", &Fault::record, "Index of the record within the call, from 0.")
      .def_ro("offset", &Fault::offset, "Byte offset of the record's header in the buffer.")
      .def_ro("expected", &Fault::expected, "Byte count, checksum, value count or kind number.")
      .def_ro("got", &Fault::got, "The same, as found.")
      .def_prop_ro(
          "feature", [](const Fault& f) { return nb::bytes(f.feature.data(), f.feature.size()); },
          "Name of the feature, b\"\" where none is concerned.")
      .def_ro("step", &Fault::step, "Step of a feature list, or -1.")
      .def_ro("at", &Fault::at, "Byte offset within the payload for wire faults, or -1.")
      .def_ro("reason", &Fault::reason, "Short plain English for wire faults, or \"\".")
      .def("__repr__", [](const Fault& f) {
        return "Fault(code='" + std::string(code_name(f.code)) +
               "', record=" + std::to_string(f.record) + ", offset=" + std::to_string(f.offset) +
               ")";
      });
  nb::class_<Feed>(module, "Feed", "How far a feeding call came.")
      .def_ro("consumed", &Feed::consumed, "Bytes of whole, good records, from the start given.")
      .def_ro("records", &Feed::records, "Number of records taken.")
      .def_ro("fault", &Feed::fault, "Why it stopped, None where it ran out of data or of room.");
}

void bind_crc(nb::module_& module) {
  module.def("crc32c", py_crc32c, "data"_a, "crc"_a = 0,
             "Return the CRC32C of `data`, continuing from `crc`.");
  module.def("masked_crc32c", py_masked_crc32c, "data"_a,
             "Return the CRC32C of `data` as TFRecord files store it.");
  module.def("crc32c_backend", crc32c_backend, "Return the name of the CRC32C code in use.");
  module.def("crc32c_backends", crc32c_backends,
             "Return the names of all CRC32C codes this machine runs, fastest first.");
  module.def("crc32c_force", crc32c_force, "name"_a,
             "Use the CRC32C code called `name` from now on (for tests and benchmarks).");
}

void bind_memory(nb::module_& module) {
  module.def("trim_memory", memory::trim,
             "Free the memory of dropped arrays that waits for reuse; return how many bytes.");
}

void bind_framing(nb::module_& module) {
  nb::class_<ScanResult>(module, "Scan", "Records found by scan().")
      .def_ro("spans", &ScanResult::spans, TFRIO_ARRAY_GETTER("spans", "int64"),
              "int64 (n, 2): offset and length of each payload.")
      .def_ro("consumed", &ScanResult::consumed, "Bytes of whole, good records.")
      .def_ro("fault", &ScanResult::fault, "Why the scan stopped, or None.");
  nb::class_<CountResult>(module, "Count", "Records counted by count().")
      .def_ro("records", &CountResult::records, "Number of whole, good records.")
      .def_ro("consumed", &CountResult::consumed, "Bytes of whole, good records.")
      .def_ro("fault", &CountResult::fault, "Why the count stopped, or None.");
  module.def("scan", py_scan, "data"_a, "start"_a = 0, "max_records"_a = -1,
             "verify_payload"_a = true, "final"_a = false,
             "Find the payloads of the framed records in `data`, from `start`.");
  module.def("count", py_count, "data"_a, "start"_a = 0, "verify_payload"_a = true,
             "final"_a = false, "Count the framed records in `data`, from `start`.");
  module.def("find_record", py_find_record, "data"_a, "start"_a, "final"_a = false,
             "Return (offset, certain) of the first record at or after `start`; -1 for none.");
  module.def("frame", py_frame, "payloads"_a,
             nb::sig("def frame(payloads: collections.abc.Sequence[typing_extensions.Buffer]) "
                     "-> bytes"),
             "Return the payloads as framed records, one after the other.");
}

}  // namespace

NB_MODULE(_core, module) {
  // What daemon threads still hold when the process ends is no leak.
  nb::set_leak_warnings(false);
  import_numpy();
  module.doc() = "Native core of tfrio: checksums, framing, Examples to columns and back.";
  bind_fault(module);
  bind_crc(module);
  bind_framing(module);
  bind_memory(module);
  bind_arrow(module);
  bind_decoder(module);
  bind_deflate(module);
  bind_encoder(module);
  bind_mapping(module);
  bind_payloads(module);
  bind_row_decoder(module);
  bind_rows(module);
  bind_survey(module);
}

}  // namespace tfrio::python
