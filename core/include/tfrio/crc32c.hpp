// CRC32C (Castagnoli, RFC 3720 appendix B.4) and the mask that TFRecord puts over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tfrio/bytes.hpp"

namespace tfrio {

/// Return the CRC32C of `data`, continuing from `crc` (the CRC32C of all bytes before it, 0 at the
/// start). crc32c(b, crc32c(a)) equals the CRC of a followed by b.
std::uint32_t crc32c(Bytes data, std::uint32_t crc = 0);

/// Copy `from` to `to`, which must not overlap, and return its CRC32C, continuing from `crc`. One
/// pass over the memory instead of two.
std::uint32_t copy_with_crc32c(std::uint8_t* to, Bytes from, std::uint32_t crc = 0);

/// Return the CRC32C of the 8 bytes of `word`, lowest byte first: the checksum of a record's
/// length.
std::uint32_t crc32c_word(std::uint64_t word);

/// Write the CRC32C of `n` blocks of `length` bytes to `out`; block i starts at `first + i *
/// stride`. Several short blocks go through the CRC unit in lock step, which hides its latency.
void crc32c_blocks(const std::uint8_t* first, std::size_t stride, std::size_t length, std::size_t n,
                   std::uint32_t* out);

/// Return the CRC32C of bytes B, given that of A, that of A followed by B, and the size of B.
std::uint32_t crc32c_of_rest(std::uint32_t crc_a, std::uint32_t crc_ab, std::size_t size_b);

/// Return `crc` as a TFRecord file stores it: rotated right by 15 bits plus a constant, so that a
/// checksum over bytes that themselves hold checksums stays strong.
constexpr std::uint32_t mask_crc(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

/// Return the name of the implementation in use, the fastest this machine runs unless forced.
std::string_view crc32c_backend();

/// Return the names of all implementations this machine runs, fastest first; the last is "table".
std::vector<std::string_view> crc32c_backends();

/// Use the implementation called `name` from now on (for tests and benchmarks; not while other
/// threads compute). Return false, changing nothing, where this machine cannot run it.
bool crc32c_force(std::string_view name);

}  // namespace tfrio
