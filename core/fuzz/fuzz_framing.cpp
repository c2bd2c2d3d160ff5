// Framing: scan, count, find_record and cutting agree with each other on any bytes.
#include <cstdlib>

#include "tfrio/framing.hpp"

namespace {

using namespace tfrio;

void require(bool condition) {
  if (!condition) std::abort();
}

void walk(Bytes data, std::size_t start, const FrameOptions& options) {
  Buffer<Span> spans;
  const Progress scanned = scan(data, start, options, spans);
  const Progress counted = count(data, start, options);
  require(scanned.consumed == counted.consumed && scanned.records == counted.records);
  require(scanned.fault.code == counted.fault.code);
  require(spans.size() == static_cast<std::size_t>(scanned.records));
  std::int64_t end = static_cast<std::int64_t>(start);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    require(spans[i].offset == end + 12 && spans[i].length >= 0);
    end = spans[i].offset + spans[i].length + 4;
  }
  require(end == static_cast<std::int64_t>(start) + scanned.consumed);
  require(end <= static_cast<std::int64_t>(data.size()));
}

void search(Bytes data, bool final) {
  const Found found = find_record(data, 0, final);
  require(found.offset >= -1 && found.offset < static_cast<std::int64_t>(data.size()) + 1);
  require(!final || found.certain);
  if (found.offset < 0 || !found.certain) return;
  const auto at = static_cast<std::size_t>(found.offset);
  require(count(data, at, {.max_records = 1}).records == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const Bytes data(bytes + 1, size - 1);
  const bool verify = bytes[0] & 1, final = bytes[0] & 2;
  walk(data, bytes[0] >> 2 <= data.size() ? bytes[0] >> 2 : 0, {-1, verify, final});
  search(data, final);
  // A fuzzer cannot guess checksums: frame what it made, break a byte, and look again.
  Buffer<std::uint8_t> framed;
  write_record(framed.extend(data.size() + kFrameSize), data);
  write_record(framed.extend(kFrameSize), {});
  require(count({framed.data(), framed.size()}, 0, {.final = true}).records == 2);
  framed[bytes[0] % framed.size()] ^= 0x10;
  walk({framed.data(), framed.size()}, 0, {-1, verify, final});
  search({framed.data(), framed.size()}, final);
  return 0;
}
