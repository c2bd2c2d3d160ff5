// Memory for output arrays, kept for a while after use.
//
// The first touch of a fresh page costs a page fault: it halves the speed of decoding large
// arrays. So blocks that are given back wait here for the next batch, up to a fixed total.
#pragma once

#include <cstddef>

namespace tfrio::memory {

/// Most bytes that wait for reuse, over all threads.
inline constexpr std::size_t kMostKept = std::size_t{64} << 20;

/// Smallest block that is kept; malloc itself is good at smaller ones.
inline constexpr std::size_t kLeastKept = std::size_t{64} << 10;

/// Return `block` (nullptr: none) enlarged to at least `size` bytes, its first `used` bytes
/// preserved; nullptr, with `block` untouched, where memory runs out. The capacity obtained is
/// written to `size`. Aligned to 16 bytes, not zeroed.
void* enlarge(void* block, std::size_t used, std::size_t& size);

/// Give `block` (nullptr: none) back.
void release(void* block) noexcept;

/// Free everything that waits for reuse; return how many bytes that was.
std::size_t trim() noexcept;

}  // namespace tfrio::memory
