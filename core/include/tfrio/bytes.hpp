// Unaligned loads and stores, and the span of bytes that every part of the core passes around.
#pragma once

#include <algorithm>
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

/// Ask the memory for the first `size` bytes of the spans that `span_of` returns for `first` up to
/// `last`, which will be read soon; nothing waits for them. They go to the second-level cache:
/// places for lines on their way to the first level are so few that asking for many would wait.
template <class SpanOf>
void prefetch(std::size_t first, std::size_t last, std::size_t size, SpanOf span_of) {
#if defined(__GNUC__)  // and Clang; without, reading is only slower
  for (std::size_t i = first; i < last; ++i) {
    const Bytes span = span_of(i);
    const std::size_t end = std::min(size, span.size());
    for (std::size_t at = 0; at < end; at += 64) __builtin_prefetch(&span[at], 0, 2);
    if (end > 0) __builtin_prefetch(&span[end - 1], 0, 2);
  }
  __asm__ volatile("");  // GCC leaves out calls of functions that do nothing but prefetch
#endif
}

}  // namespace tfrio
