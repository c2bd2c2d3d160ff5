// The protobuf wire format, bounds-checked: varints, tags, skipping, UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tfrio/bytes.hpp"

namespace tfrio::wire {

/// What follows a tag.
enum Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

/// Return the tag of `field` with wire type `type`.
constexpr std::uint32_t tag(std::uint32_t field, Type type) {
  return field << 3 | type;
}

/// Where and why a message is malformed; `at` is null as long as it is not.
struct Error {
  const std::uint8_t* at = nullptr;
  std::string_view reason;
};

/// Reads a message from front to back. Every reader returns false, with `error` set, where the
/// bytes end too early or are malformed; the position is then of no use any more.
class Cursor {
 public:
  Cursor(Bytes bytes, Error& error)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), error_(error) {}

  bool done() const { return at_ == end_; }
  const std::uint8_t* at() const { return at_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  /// Read a varint of up to 10 bytes; bits beyond 64 are dropped, as protobuf does.
  bool varint(std::uint64_t& value) {
    if (at_ < end_ && *at_ < 0x80) {
      value = *at_++;
      return true;
    }
    return long_varint(value, 10);
  }

  /// Read a tag: at most 5 bytes, below 2^32, its field number not 0.
  bool tag(std::uint32_t& tag) {
    if (at_ < end_ && *at_ < 0x80 && *at_ >= 8) {
      tag = *at_++;
      return true;
    }
    return long_tag(tag);
  }

  /// Read a length and the bytes it counts.
  bool bytes(Bytes& bytes) {
    // Read once: in a mapped file that somebody writes to, a second look may see another length.
    const std::uint8_t size = at_ < end_ ? *at_ : 0x80;
    if (size < 0x80 && size < left()) {
      bytes = {at_ + 1, size};
      at_ += 1 + size;
      return true;
    }
    return long_bytes(bytes);
  }

  /// Step over the value that follows `tag`. Groups, which these messages never had, are refused.
  bool skip(std::uint32_t tag);

  /// Read `size` bytes as they are.
  bool raw(std::size_t size, Bytes& bytes);

  /// Fail with `reason` at the present position.
  bool fail(std::string_view reason) { return fail_at(at_, reason); }
  bool fail_at(const std::uint8_t* at, std::string_view reason) {
    error_ = {at, reason};
    return false;
  }

 private:
  bool long_varint(std::uint64_t& value, int most);
  bool long_tag(std::uint32_t& tag);
  bool long_bytes(Bytes& bytes);

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  Error& error_;
};

/// Return true where `bytes` is well-formed UTF-8: no surrogates, nothing overlong, nothing above
/// U+10FFFF.
bool is_utf8(Bytes bytes);

/// Return how many bytes `value` takes as a varint, 1 to 10.
constexpr std::size_t varint_size(std::uint64_t value) {
  // ceil(bits / 7) for bits of 1 to 64, without a division.
  return static_cast<std::size_t>(640 - 9 * std::countl_zero(value | 1)) / 64;
}

/// Write `value` as a varint to `out`; return the place after it.
inline std::uint8_t* write_varint(std::uint8_t* out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::uint8_t>(value | 0x80);
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

/// Return the number of varints in `bytes`; `error` is set where one is cut or longer than 10
/// bytes.
std::size_t count_varints(Bytes bytes, Error& error);

/// Write the varints of `bytes`, which count_varints has approved, to `out`, which has room for
/// them all up to `stop`. Return the place after the last. A mapped file may change meanwhile: also
/// then nothing is read or written out of bounds.
std::int64_t* read_varints(Bytes bytes, std::int64_t* out, const std::int64_t* stop);

}  // namespace tfrio::wire
