// Unaligned loads and stores, and the span of bytes that every part of the core passes around.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tfrio {

// The wire format is little-endian; so are x86-64 and every arm64 system that Python wheels serve.
static_assert(std::endian::native == std::endian::little, "tfrio needs a little-endian machine");

using Bytes = std::span<const std::uint8_t>;

/// Return the 4 bytes at `p` as an unsigned number; `p` needs no alignment.
inline std::uint32_t load32(const std::uint8_t* p) {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// Return the 8 bytes at `p` as an unsigned number; `p` needs no alignment.
inline std::uint64_t load64(const std::uint8_t* p) {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// Write `value` to the 4 bytes at `p`.
inline void store32(std::uint8_t* p, std::uint32_t value) {
  std::memcpy(p, &value, sizeof value);
}

/// Write `value` to the 8 bytes at `p`.
inline void store64(std::uint8_t* p, std::uint64_t value) {
  std::memcpy(p, &value, sizeof value);
}

/// Load the first cache lines of the spans that `span_of` returns for `first` up to `last`. Loads
/// that do not depend on each other wait for the memory together; a prefetch instruction would be
/// dropped where the address is not in the TLB, as it seldom is in a large mapping.
template <class SpanOf>
void touch(std::size_t first, std::size_t last, SpanOf span_of) {
  std::uint8_t sum = 0;
  for (std::size_t i = first; i < last; ++i) {
    const Bytes span = span_of(i);
    for (std::size_t at = 0; at < 192 && at < span.size(); at += 64) sum ^= span[at];
  }
  [[maybe_unused]] const volatile std::uint8_t loaded = sum;
}

}  // namespace tfrio
