// Walking deflate blocks: no bytes lead it astray, and a walk from a point sees the same blocks.
#include <cstdlib>

#include "tfrio/deflate.hpp"

namespace {

using namespace tfrio;

void require(bool condition) {
  if (!condition) std::abort();
}

DeflateWalk walk(Bytes data, std::uint64_t bit, Buffer<DeflatePoint>& points) {
  const DeflateWalk found = walk_deflate(data, bit, 1, points);
  require(found.bit >= static_cast<std::int64_t>(bit) && found.out >= 0);
  require(found.bit <= static_cast<std::int64_t>(data.size() * 8));
  DeflatePoint last{static_cast<std::int64_t>(bit), 0};
  for (std::size_t i = 0; i < points.size(); ++i) {
    require(points[i].bit > last.bit && points[i].out > last.out);
    require(points[i].bit <= found.bit && points[i].out <= found.out);
    last = points[i];
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Bytes bytes(data + 1, size - 1);
  Buffer<DeflatePoint> points;
  const DeflateWalk whole = walk(bytes, data[0] % 8, points);
  if (points.empty()) return 0;
  const DeflatePoint middle = points[points.size() / 2];
  Buffer<DeflatePoint> rest;
  const DeflateWalk again = walk(bytes, static_cast<std::uint64_t>(middle.bit), rest);
  require(again.ended == whole.ended && again.bit == whole.bit);
  require(again.out + middle.out == whole.out);
  return 0;
}
