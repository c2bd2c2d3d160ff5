// What the core says when data is not as it should be. Data never makes the core throw.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tfrio {

/// What is wrong.
enum class FaultCode : std::uint8_t {
  none,
  length_crc,   // the stored checksum of the length differs
  payload_crc,  // the stored checksum of the payload differs
  header_cut,   // the data ends within the 12 bytes of length and its checksum
  payload_cut,  // the data ends within the payload
  footer_cut,   // the data ends within the 4 bytes of the payload's checksum
  too_long,     // the length is beyond any record
  wire,         // malformed protobuf
  utf8,         // a feature name is not UTF-8
  kind,         // a feature is stored as another kind than asked for
  count,        // a feature has another number of values than asked for
  unknown,      // a feature that nobody asked for
};

/// A data fault: where and what. All numbers are as the Python face documents them.
struct Fault {
  FaultCode code = FaultCode::none;
  std::int64_t record = 0;     // index of the record within the call
  std::int64_t offset = 0;     // offset of the record's header in the buffer
  std::uint64_t expected = 0;  // byte count, checksum, value count or kind number
  std::uint64_t got = 0;       // the same, as found
  std::string feature{};       // name of the feature, empty where none is concerned
  std::int64_t step = -1;      // step of a feature list, -1 elsewhere
  std::int64_t at = -1;        // byte offset in the payload, -1 where it does not apply
  std::string_view reason{};   // plain English, always a literal

  /// True where something is wrong.
  explicit operator bool() const { return code != FaultCode::none; }
};

/// Return the name of `code` in the Python face: "length-crc", "payload-cut", "wire" and so on.
std::string_view code_name(FaultCode code);

/// Return the part of the record that `code` concerns: "header", "payload", "footer" or "".
std::string_view code_field(FaultCode code);

}  // namespace tfrio
