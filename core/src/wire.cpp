// The protobuf wire format.
#include "tfrio/wire.hpp"

namespace tfrio::wire {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080u;

constexpr std::string_view kCut = "the message ends within a field";
constexpr std::string_view kLongVarint = "a varint is longer than 10 bytes";

}  // namespace

bool Cursor::long_varint(std::uint64_t& value, int most) {
  const std::uint8_t* start = at_;
  std::uint64_t result = 0;
  for (int i = 0; i < most; ++i) {
    if (at_ == end_) return fail_at(start, kCut);
    const std::uint64_t byte = *at_++;
    result |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      value = result;
      return true;
    }
  }
  return fail_at(start, most == 10 ? kLongVarint : "a tag or length is longer than 5 bytes");
}

bool Cursor::long_tag(std::uint32_t& tag) {
  const std::uint8_t* start = at_;
  std::uint64_t value;
  if (!long_varint(value, 5)) return false;
  if (value > UINT32_MAX || value < 8) return fail_at(start, "a field number is out of range");
  tag = static_cast<std::uint32_t>(value);
  return true;
}

bool Cursor::long_bytes(Bytes& bytes) {
  const std::uint8_t* start = at_;
  std::uint64_t size;
  if (!long_varint(size, 5)) return false;
  if (size > left()) return fail_at(start, "a length reaches past the end of its message");
  return raw(static_cast<std::size_t>(size), bytes);
}

bool Cursor::raw(std::size_t size, Bytes& bytes) {
  if (size > left()) return fail(kCut);
  bytes = {at_, size};
  at_ += size;
  return true;
}

bool Cursor::skip(std::uint32_t tag) {
  Bytes ignored;
  std::uint64_t value;
  switch (tag & 7) {
    case kVarint:
      return varint(value);
    case kFixed64:
      return raw(8, ignored);
    case kLength:
      return bytes(ignored);
    case kFixed32:
      return raw(4, ignored);
    case 3:
    case 4:
      return fail("a group, which tf.train messages never hold");
    default:
      return fail("an unknown wire type");
  }
}

namespace {

/// Return the length of the UTF-8 sequence that begins with `lead`, 0 where none does.
std::size_t sequence_length(std::uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

/// Return whether the byte after `lead` keeps clear of overlong forms, surrogates and what lies
/// above U+10FFFF (table 3-7 of the Unicode standard).
bool second_fits(std::uint8_t lead, std::uint8_t second) {
  const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return low <= second && second <= high;
}

}  // namespace

bool is_utf8(Bytes bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    if (bytes.size() - i >= 8 && (load64(bytes.data() + i) & kHighBits) == 0) {
      i += 8;
      continue;
    }
    const std::size_t size = sequence_length(bytes[i]);
    if (size == 0 || size > bytes.size() - i) return false;
    if (size > 1 && !second_fits(bytes[i], bytes[i + 1])) return false;
    for (std::size_t k = 2; k < size; ++k) {
      if ((bytes[i + k] & 0xC0) != 0x80) return false;
    }
    i += size;
  }
  return true;
}

std::size_t count_varints(Bytes bytes, Error& error) {
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  std::size_t n = 0, run = 0;  // run: bytes of the varint begun
  while (at < end) {
    if (run == 0 && end - at >= 8 && (load64(at) & kHighBits) == 0) {
      at += 8;
      n += 8;
      continue;
    }
    const bool last = *at++ < 0x80;
    ++run;
    if (run > 10 || (run == 10 && !last)) {
      error = {at - run, kLongVarint};
      return n;
    }
    if (last) run = 0, ++n;
  }
  if (run > 0) error = {end - run, "a varint is cut"};
  return n;
}

std::int64_t* read_varints(Bytes bytes, std::int64_t* out, const std::int64_t* stop) {
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  while (at < end && out < stop) {
    if (end - at >= 8 && stop - out >= 8 && (load64(at) & kHighBits) == 0) {
      for (int i = 0; i < 8; ++i) out[i] = at[i];
      at += 8;
      out += 8;
      continue;
    }
    std::uint8_t byte = *at++;
    std::uint64_t value = byte & 0x7F;
    for (int shift = 7; byte >= 0x80 && at < end && shift < 64; shift += 7) {
      byte = *at++;
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    }
    *out++ = static_cast<std::int64_t>(value);
  }
  return out;
}

}  // namespace tfrio::wire
