// TFRecord framing: 8 bytes length, 4 bytes masked CRC32C of the length, payload, 4 bytes masked
// CRC32C of the payload; little-endian, nothing before, between or after the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tfrio/buffer.hpp"
#include "tfrio/bytes.hpp"
#include "tfrio/crc32c.hpp"
#include "tfrio/fault.hpp"

namespace tfrio {

inline constexpr std::size_t kHeaderSize = 12;
inline constexpr std::size_t kFooterSize = 4;
inline constexpr std::size_t kFrameSize = kHeaderSize + kFooterSize;

/// Longest payload taken for real: 1 TiB. A longer one is damage or mischief, and waiting for its
/// end would mean to buffer the whole rest of the data.
inline constexpr std::uint64_t kMaxPayload = std::uint64_t{1} << 40;

/// Where a payload lies in a buffer.
struct Span {
  std::int64_t offset;
  std::int64_t length;
};

/// What a call does with its input, common to all calls over framed records.
struct FrameOptions {
  std::int64_t max_records = -1;  // stop after so many; negative: no limit
  bool verify_payload = true;     // check the CRC of payloads (that of lengths is always checked)
  bool final = false;             // nothing follows the buffer: a part of a record is a fault
};

/// How far a call came. `consumed` counts bytes from its start over whole, good records.
struct Progress {
  std::int64_t consumed = 0;
  std::int64_t records = 0;
  Fault fault;
};

/// Fill `fault` for the header at `offset` of `data` where it is cut, damaged or beyond reason.
/// Return the length of the payload, or nothing where there is no whole record; `fault` then says
/// why, or stays empty where more bytes may still bring the rest.
std::optional<std::size_t> whole_record(Bytes data, std::size_t offset, bool final, Fault& fault);

/// Return true where the payload of `length` bytes whose header is at `offset` matches its CRC;
/// else fill `fault`. The record must be whole.
bool payload_matches(Bytes data, std::size_t offset, std::size_t length, Fault& fault);

/// Walk the records of `data` from `start`, calling `visit(Bytes payload, Fault&)` for each good
/// one, until the data ends, a record is at fault, `visit` returns false or `most` records are done
/// (negative: no limit).
template <class Visit>
Progress walk_records(Bytes data, std::size_t start, const FrameOptions& options, std::int64_t most,
                      Visit visit) {
  Progress progress;
  std::size_t offset = start;
  while (most < 0 || progress.records < most) {
    const auto length = whole_record(data, offset, options.final, progress.fault);
    if (!length) break;
    if (options.verify_payload && !payload_matches(data, offset, *length, progress.fault)) break;
    if (!visit(data.subspan(offset + kHeaderSize, *length), progress.fault)) break;
    offset += *length + kFrameSize;
    ++progress.records;
  }
  progress.consumed = static_cast<std::int64_t>(offset - start);
  progress.fault.record = progress.records;
  progress.fault.offset = static_cast<std::int64_t>(offset);
  return progress;
}

/// Walk the records of `data` from `start` and append the span of each payload to `spans`.
Progress scan(Bytes data, std::size_t start, const FrameOptions& options, Buffer<Span>& spans);

/// Walk the records of `data` from `start` and only count them.
Progress count(Bytes data, std::size_t start, const FrameOptions& options);

/// The answer of find_record: `offset` is -1 where no record begins in the buffer. `certain` is
/// false where a header was found whose payload reaches past the buffer.
struct Found {
  std::int64_t offset;
  bool certain;
};

/// Return the first place at or after `start` where a record stands: a header with a matching
/// CRC and a payload with a matching CRC. With `final`, a payload that reaches past the buffer is
/// no record.
Found find_record(Bytes data, std::size_t start, bool final);

/// Write the 12 bytes of a header for a payload of `length` bytes to `out`.
void write_header(std::uint8_t* out, std::uint64_t length);

/// Write a whole record for `payload` to `out`, which has room for payload.size() + kFrameSize.
void write_record(std::uint8_t* out, Bytes payload);

}  // namespace tfrio
