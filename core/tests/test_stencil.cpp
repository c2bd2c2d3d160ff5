// Comparing under a mask: every byte asked for counts, no other does, at every length.
#include <random>

#include "check.hpp"
#include "tfrio/stencil.hpp"

namespace {

using tfrio::Stencil;

/// Messages of one length one after the other, and which bytes of them are asked for.
struct Row {
  explicit Row(std::size_t length, std::size_t n, std::mt19937& random)
      : length(length), data(length * n), asked(length), stencil(length) {
    for (std::size_t i = 0; i < length; ++i) data[i] = static_cast<std::uint8_t>(random());
    for (std::size_t k = 1; k < n; ++k) std::copy_n(data.begin(), length, data.data() + k * length);
    for (std::size_t at = random() % 9; at < length; at += 1 + random() % 40) {
      const std::size_t end = std::min(length, at + 1 + random() % 20);
      stencil.cover(data.data(), at, end);
      for (; at < end; ++at) asked[at] = true;
    }
  }
  std::size_t length;
  std::vector<std::uint8_t> data;  // no byte behind the last message: reading on is an error
  std::vector<bool> asked;
  Stencil stencil;
};

void check_every_byte(std::size_t length, std::mt19937& random) {
  constexpr std::size_t kMessages = 5;
  Row row(length, kMessages, random);
  for (std::size_t at = 0; at < length; ++at) {
    const std::size_t message = random() % kMessages;
    std::uint8_t& byte = row.data[message * length + at];
    byte ^= static_cast<std::uint8_t>(1u << random() % 8);
    // A stencil is made from the first message, so a change in it counts, too.
    const std::size_t same = row.asked[at] ? message : kMessages;
    CHECK_EQUAL(row.stencil.count(row.data.data(), length, kMessages), same);
    CHECK_EQUAL(row.stencil.count_plain(row.data.data(), length, kMessages), same);
    CHECK_EQUAL(row.stencil.fits(row.data.data() + message * length), !row.asked[at]);
    std::copy_n(row.data.data() + (message + 1) % kMessages * length, length,
                row.data.data() + message * length);
  }
}

TEST(stencils_of_every_length) {
  std::mt19937 random(1);
  for (std::size_t length = 8; length <= 200; ++length) check_every_byte(length, random);
}

TEST(a_stencil_without_places_fits_all) {
  const std::vector<std::uint8_t> data(40, 7);
  CHECK(Stencil(40).fits(data.data()));
  CHECK_EQUAL(Stencil(8).count(data.data(), 8, 5), std::size_t{5});
}

TEST(messages_far_apart) {
  std::vector<std::uint8_t> data(1000, 3);
  Stencil stencil(50);
  stencil.cover(data.data(), 10, 50);
  CHECK_EQUAL(stencil.count(data.data(), 90, 11), std::size_t{11});
  data[9 * 90 + 49] = 4;
  CHECK_EQUAL(stencil.count(data.data(), 90, 11), std::size_t{9});
  data[3 * 90 + 9] = 4;  // not asked for
  CHECK_EQUAL(stencil.count(data.data(), 90, 11), std::size_t{9});
}

}  // namespace
