// Walking deflate blocks: golden streams of each block type, every cut, spacing.
#include "check.hpp"
#include "tfrio/deflate.hpp"

namespace {

using tfrio::Buffer;
using tfrio::DeflatePoint;
using tfrio::walk_deflate;

// Raw deflate as zlib 1.3 writes it. Fixed: "hello hello hello". Stored: "abc".
const std::string kFixed = "cb48cdc9c957c8409000";
const std::string kStored = "010300fcff616263";

TEST(deflate_fixed_block) {
  Buffer<DeflatePoint> points;
  const auto walk = walk_deflate(check::unhex(kFixed), 0, 1, points);
  CHECK(walk.ended);
  CHECK_EQUAL(walk.out, 17);
  CHECK_EQUAL(points.size(), 0u);
}

TEST(deflate_stored_block) {
  Buffer<DeflatePoint> points;
  const auto walk = walk_deflate(check::unhex(kStored), 0, 1, points);
  CHECK(walk.ended);
  CHECK_EQUAL(walk.out, 3);
  CHECK_EQUAL(walk.bit, 64);
}

TEST(deflate_two_blocks_give_a_point) {
  // "abc" stored, not last; then an empty fixed block that is the last: bits 1, 01, 0000000.
  const auto data = check::unhex("000300fcff6162630300");
  Buffer<DeflatePoint> points;
  const auto walk = walk_deflate(data, 0, 3, points);
  CHECK(walk.ended);
  CHECK_EQUAL(walk.bit, 74);
  CHECK_EQUAL(points.size(), 1u);
  CHECK_EQUAL(points[0].bit, 64);
  CHECK_EQUAL(points[0].out, 3);
  Buffer<DeflatePoint> none;
  walk_deflate(data, 0, 4, none);
  CHECK_EQUAL(none.size(), 0u);
}

TEST(deflate_cut_anywhere_does_not_end) {
  for (const std::string& whole : {kFixed, kStored}) {
    const auto data = check::unhex(whole);
    for (std::size_t size = 0; size < data.size(); ++size) {
      Buffer<DeflatePoint> points;
      CHECK(!walk_deflate(tfrio::Bytes(data).first(size), 0, 1, points).ended);
    }
  }
}

TEST(deflate_bad_block_type) {
  Buffer<DeflatePoint> points;
  const auto walk = walk_deflate(check::unhex("07"), 0, 1, points);
  CHECK(!walk.ended);
  CHECK_EQUAL(walk.bit, 0);
}

}  // namespace
