// CRC32C on arm64: the CRC32C instructions of ARMv8.1 in three interleaved streams.
#include "crc32c_backends.hpp"

#if defined(TFRIO_ARM)
#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include "tfrio/bytes.hpp"

#if defined(__clang__)
#define TFRIO_CRC __attribute__((target("crc")))
#else
#define TFRIO_CRC __attribute__((target("+crc")))
#endif

namespace tfrio::crc {
namespace {

constexpr std::size_t kRun = 1024;
using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

/// Entry [k][b]: a register whose byte k is b, moved past `kRun` zero bytes.
constexpr ShiftTable make_shift() {
  ShiftTable table{};
  const std::uint32_t factor = power_of_x(8 * kRun);
  for (std::uint32_t k = 0; k < 4; ++k) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      table[k][byte] = multiply(byte << (8 * k), factor);
    }
  }
  return table;
}

constinit const ShiftTable kShift = make_shift();

inline std::uint32_t shift(std::uint32_t state) {
  return kShift[0][state & 255] ^ kShift[1][state >> 8 & 255] ^ kShift[2][state >> 16 & 255] ^
         kShift[3][state >> 24];
}

TFRIO_CRC std::uint32_t arm_update(std::uint32_t state, const std::uint8_t* data,
                                   std::size_t size) {
  for (; size >= 3 * kRun; data += 3 * kRun, size -= 3 * kRun) {
    std::uint32_t b = 0, c = 0;
    for (std::size_t i = 0; i < kRun; i += 8) {
      state = __crc32cd(state, load64(data + i));
      b = __crc32cd(b, load64(data + kRun + i));
      c = __crc32cd(c, load64(data + 2 * kRun + i));
    }
    state = shift(shift(state) ^ b) ^ c;
  }
  for (; size >= 8; data += 8, size -= 8) state = __crc32cd(state, load64(data));
  for (; size > 0; ++data, --size) state = __crc32cb(state, *data);
  return state;
}

TFRIO_CRC std::uint32_t arm_word(std::uint32_t state, std::uint64_t word) {
  return __crc32cd(state, word);
}

bool has_crc() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & (1u << 7)) != 0;  // HWCAP_CRC32
#else
  return true;  // every Apple arm64 processor has it
#endif
}

}  // namespace

const Backend kArmBackend{
    "armv8", has_crc, arm_update, copy_in_blocks<arm_update>, arm_word, one_by_one<arm_update>};

}  // namespace tfrio::crc
#endif
