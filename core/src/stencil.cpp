// Comparing messages with what their places must hold.
#include "tfrio/stencil.hpp"

#include <algorithm>

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define TFRIO_AVX2 1
#include <immintrin.h>
#endif

namespace tfrio {
namespace {

using Block = Stencil::Block;
constexpr std::size_t kBlock = Stencil::kBlock;

/// A message of 8 to 31 bytes with zeros behind it, so that a whole block can be read.
struct Padded {
  Padded(const std::uint8_t* message, std::size_t length) {
    const std::size_t half = length < 16 ? 8 : 16;
    for (std::size_t at : {std::size_t{0}, length - half}) {
      for (std::size_t i = 0; i < half; i += 8) store64(bytes + at + i, load64(message + at + i));
    }
  }
  std::uint8_t bytes[kBlock] = {};
};

std::uint64_t different(const std::uint8_t* at, const Block& block) {
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < kBlock; i += 8) {
    found |= (load64(at + i) ^ load64(block.bytes + i)) & load64(block.mask + i);
  }
  return found;
}

bool same(const std::uint8_t* message, const Block* blocks, std::size_t size) {
  std::uint64_t found = 0;
  for (std::size_t b = 0; b < size; ++b) found |= different(message + blocks[b].offset, blocks[b]);
  return found == 0;
}

#if defined(TFRIO_AVX2)
#define TFRIO_WIDE __attribute__((target("avx2")))

TFRIO_WIDE inline __m256i load(const std::uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

TFRIO_WIDE std::size_t count_wide(const std::uint8_t* first, std::size_t stride, std::size_t n,
                                  const Block* blocks, std::size_t size) {
  for (std::size_t r = 0; r < n; ++r, first += stride) {
    __m256i found = _mm256_setzero_si256();
    for (std::size_t b = 0; b < size; ++b) {
      const __m256i differ =
          _mm256_xor_si256(load(first + blocks[b].offset), load(blocks[b].bytes));
      found = _mm256_or_si256(found, _mm256_and_si256(differ, load(blocks[b].mask)));
    }
    if (!_mm256_testz_si256(found, found)) return r;
  }
  return n;
}

const bool kWide = __builtin_cpu_supports("avx2");
#endif

}  // namespace

void Stencil::cover(const std::uint8_t* message, std::size_t begin, std::size_t end) {
  while (begin < end) {
    // The last block of a message reaches back, so that none reaches past the end.
    const std::size_t last = length_ < kBlock ? 0 : length_ - kBlock;
    const std::size_t offset = std::min(begin / kBlock * kBlock, last);
    const std::size_t stop = std::min(end, offset + kBlock);
    if (blocks_.empty() || blocks_.back().offset != offset) blocks_.push_back({offset, {}, {}});
    for (; begin < stop; ++begin) {
      blocks_.back().bytes[begin - offset] = message[begin];
      blocks_.back().mask[begin - offset] = 0xFF;
    }
  }
}

std::size_t Stencil::count(const std::uint8_t* first, std::size_t stride, std::size_t n) const {
#if defined(TFRIO_AVX2)
  if (kWide && length_ >= kBlock) {
    return count_wide(first, stride, n, blocks_.data(), blocks_.size());
  }
#endif
  return count_plain(first, stride, n);
}

std::size_t Stencil::count_plain(const std::uint8_t* first, std::size_t stride,
                                 std::size_t n) const {
  for (std::size_t r = 0; r < n; ++r, first += stride) {
    const bool fine = length_ < kBlock
                          ? same(Padded(first, length_).bytes, blocks_.data(), blocks_.size())
                          : same(first, blocks_.data(), blocks_.size());
    if (!fine) return r;
  }
  return n;
}

}  // namespace tfrio
