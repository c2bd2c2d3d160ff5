// Choice of the CRC32C implementation at run time, and the table that works everywhere.
#include "tfrio/crc32c.hpp"

#include <atomic>

#include "crc32c_backends.hpp"

namespace tfrio {
namespace crc {
namespace {

constexpr Table make_table() {
  Table table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
    table[0][byte] = value;
  }
  for (std::size_t k = 1; k < table.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = table[k - 1][byte];
      table[k][byte] = (before >> 8) ^ table[0][before & 255];
    }
  }
  return table;
}

std::uint32_t table_word(std::uint32_t state, std::uint64_t word) {
  word ^= state;
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < 8; ++i) result ^= kTable[7 - i][(word >> (8 * i)) & 255];
  return result;
}

std::uint32_t table_update(std::uint32_t state, const std::uint8_t* data, std::size_t size) {
  for (; size >= 8; data += 8, size -= 8) state = table_word(state, load64(data));
  for (; size > 0; ++data, --size) state = (state >> 8) ^ kTable[0][(state ^ *data) & 255];
  return state;
}

bool always() {
  return true;
}

}  // namespace

constinit const Table kTable = make_table();
const Backend kTableBackend{"table",      always,
                            table_update, copy_in_blocks<table_update>,
                            table_word,   one_by_one<table_update>};

namespace {

/// All implementations of this build, fastest first.
constexpr std::array kBackends{
#if defined(TFRIO_X86)
    &kAvx512Backend, &kSse42Backend,
#elif defined(TFRIO_ARM)
    &kArmBackend,
#endif
    &kTableBackend};

const Backend* fastest() {
  for (const Backend* backend : kBackends) {
    if (backend->supported()) return backend;
  }
  return &kTableBackend;
}

std::atomic<const Backend*>& chosen() {
  static std::atomic<const Backend*> backend{fastest()};
  return backend;
}

const Backend& active() {
  return *chosen().load(std::memory_order_relaxed);
}

}  // namespace
}  // namespace crc

std::uint32_t crc32c(Bytes data, std::uint32_t crc) {
  return ~crc::active().update(~crc, data.data(), data.size());
}

std::uint32_t copy_with_crc32c(std::uint8_t* to, Bytes from, std::uint32_t crc) {
  return ~crc::active().copy(~crc, from.data(), from.size(), to);
}

std::uint32_t crc32c_word(std::uint64_t word) {
  return ~crc::active().word(~0u, word);
}

void crc32c_blocks(const std::uint8_t* first, std::size_t stride, std::size_t length, std::size_t n,
                   std::uint32_t* out) {
  crc::active().blocks(~0u, first, stride, length, n, out);
  for (std::size_t i = 0; i < n; ++i) out[i] = ~out[i];
}

namespace crc {
namespace {

/// Entry k: x^(8 * 2^k), what a register is multiplied by to move past 2^k bytes.
constexpr std::array<std::uint32_t, 64> make_powers() {
  std::array<std::uint32_t, 64> powers{power_of_x(8)};
  for (std::size_t k = 1; k < powers.size(); ++k) {
    powers[k] = multiply(powers[k - 1], powers[k - 1]);
  }
  return powers;
}

constinit const std::array<std::uint32_t, 64> kPowers = make_powers();

}  // namespace
}  // namespace crc

std::uint32_t crc32c_of_rest(std::uint32_t crc_a, std::uint32_t crc_ab, std::size_t size_b) {
  for (std::size_t k = 0; size_b != 0; ++k, size_b >>= 1) {
    if (size_b & 1) crc_a = crc::multiply(crc_a, crc::kPowers[k]);
  }
  return crc_a ^ crc_ab;
}

std::string_view crc32c_backend() {
  return crc::active().name;
}

std::vector<std::string_view> crc32c_backends() {
  std::vector<std::string_view> names;
  for (const crc::Backend* backend : crc::kBackends) {
    if (backend->supported()) names.push_back(backend->name);
  }
  return names;
}

bool crc32c_force(std::string_view name) {
  for (const crc::Backend* backend : crc::kBackends) {
    if (backend->name == name && backend->supported()) {
      crc::chosen().store(backend);
      return true;
    }
  }
  return false;
}

}  // namespace tfrio
