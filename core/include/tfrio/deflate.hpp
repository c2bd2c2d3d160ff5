// Finding where deflate data (RFC 1951) can be entered. Only block boundaries and lengths are
// worked out, nothing is put out: another library inflates.
#pragma once

#include <cstdint>

#include "tfrio/buffer.hpp"
#include "tfrio/bytes.hpp"

namespace tfrio {

/// The start of a deflate block.
struct DeflatePoint {
  std::int64_t bit;  // offset in the data, in bits
  std::int64_t out;  // uncompressed bytes before it
};

/// How far a walk came.
struct DeflateWalk {
  std::int64_t bit = 0;  // behind the last whole block, in bits
  std::int64_t out = 0;  // uncompressed bytes of the blocks walked
  bool ended = false;    // the last block was seen; false where the data is cut or damaged
};

/// Walk the deflate stream that starts at `bit` of `data`. Append the start of every block that
/// lies at least `spacing` uncompressed bytes behind the last one appended (or the start).
DeflateWalk walk_deflate(Bytes data, std::uint64_t bit, std::int64_t spacing,
                         Buffer<DeflatePoint>& points);

}  // namespace tfrio
