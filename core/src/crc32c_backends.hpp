// The implementations of CRC32C and the arithmetic they share. Internal to the core.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tfrio::crc {

/// One implementation. `update` and `blocks` work on the raw register: inverted before and after
/// by the caller. `blocks` starts every block from `state`.
struct Backend {
  std::string_view name;
  bool (*supported)();
  std::uint32_t (*update)(std::uint32_t state, const std::uint8_t* data, std::size_t size);
  std::uint32_t (*copy)(std::uint32_t state, const std::uint8_t* data, std::size_t size,
                        std::uint8_t* to);
  std::uint32_t (*word)(std::uint32_t state, std::uint64_t word);
  void (*blocks)(std::uint32_t state, const std::uint8_t* first, std::size_t stride,
                 std::size_t length, std::size_t n, std::uint32_t* out);
};

/// The Castagnoli polynomial with the bits reflected: bit 31 is the coefficient of x^0.
inline constexpr std::uint32_t kPolynomial = 0x82F63B78u;

/// Return x^n modulo the polynomial, reflected. Feeding zero bits multiplies the register by x, so
/// this is what moves a CRC past n bits.
constexpr std::uint32_t power_of_x(std::size_t n) {
  std::uint32_t value = 0x80000000u;
  for (std::size_t i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
  return value;
}

/// Return the product of two reflected polynomials.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; b != 0; b <<= 1) {
    if (b & 0x80000000u) product ^= a;
    a = (a >> 1) ^ ((a & 1) ? kPolynomial : 0);
  }
  return product;
}

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

/// The slicing-by-8 tables: entry [k][b] is the register after byte b and k zero bytes.
extern const Table kTable;

extern const Backend kTableBackend;
#if defined(__x86_64__) || defined(_M_X64)
#define TFRIO_X86 1
extern const Backend kSse42Backend;
extern const Backend kAvx512Backend;
#elif defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))
#define TFRIO_ARM 1
extern const Backend kArmBackend;
#endif

/// The `copy` of an implementation without one of its own: check a block, then copy it while it is
/// in the first-level cache.
template <auto Update>
std::uint32_t copy_in_blocks(std::uint32_t state, const std::uint8_t* data, std::size_t size,
                             std::uint8_t* to) {
  while (size > 0) {
    const std::size_t block = std::min<std::size_t>(size, 3 << 10);
    state = Update(state, data, block);
    std::memcpy(to, data, block);
    data += block;
    to += block;
    size -= block;
  }
  return state;
}

/// Call `update` for each block on its own: the `blocks` of an implementation without lock step.
template <auto Update>
void one_by_one(std::uint32_t state, const std::uint8_t* first, std::size_t stride,
                std::size_t length, std::size_t n, std::uint32_t* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = Update(state, first + i * stride, length);
}

}  // namespace tfrio::crc
