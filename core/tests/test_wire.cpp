// The wire format: varints, tags, skipping, UTF-8.
#include <algorithm>
#include <iterator>

#include "check.hpp"
#include "tfrio/wire.hpp"

namespace {

using tfrio::Bytes;
using tfrio::wire::Cursor;
using tfrio::wire::Error;

struct Read {
  bool fine;
  std::uint64_t value;
};

Read varint(const std::string& hex) {
  const auto data = check::unhex(hex);
  Error error;
  Cursor cursor(data, error);
  std::uint64_t value = 0;
  const bool fine = cursor.varint(value);
  return {fine && cursor.done(), value};
}

bool tag_is_fine(const std::string& hex) {
  const auto data = check::unhex(hex);
  Error error;
  Cursor cursor(data, error);
  std::uint32_t tag;
  return cursor.tag(tag);
}

/// Return whether a field can be stepped over, to the very end.
bool skips(const std::string& hex) {
  const auto data = check::unhex(hex);
  Error error;
  Cursor cursor(data, error);
  std::uint32_t tag;
  return cursor.tag(tag) && cursor.skip(tag) && cursor.done();
}

TEST(varints_of_every_length) {
  for (int bits = 0; bits < 64; ++bits) {
    for (std::uint64_t value : {std::uint64_t{1} << bits, (std::uint64_t{1} << bits) - 1}) {
      std::uint8_t out[10];
      const std::uint8_t* end = tfrio::wire::write_varint(out, value);
      CHECK_EQUAL(static_cast<std::size_t>(end - out), tfrio::wire::varint_size(value));
      CHECK_EQUAL(varint(check::hex({out, end})).value, value);
    }
  }
  CHECK_EQUAL(varint("ffffffffffffffffff01").value, ~std::uint64_t{0});
}

TEST(varints_at_the_edge) {
  CHECK_EQUAL(varint("80808000").value, 0u);                             // longer than needed: fine
  CHECK_EQUAL(varint("ffffffffffffffffff7f").value, ~std::uint64_t{0});  // bits past 64 dropped
  CHECK(!varint("ffffffffffffffffffff01").fine);                         // 11 bytes
  CHECK(!varint("8080").fine);                                           // cut
  CHECK(!varint("").fine);
}

TEST(tags) {
  CHECK(tag_is_fine("0a"));
  CHECK(tag_is_fine("8a00"));           // longer than needed
  CHECK(tag_is_fine("8a8080800f"));     // just below 2^32
  CHECK(!tag_is_fine("8a80808010"));    // beyond
  CHECK(!tag_is_fine("8a808080800f"));  // 6 bytes
  CHECK(!tag_is_fine("02"));            // field 0
  CHECK(!tag_is_fine("07"));
  CHECK(!tag_is_fine(""));
}

TEST(skipping) {
  CHECK(skips("78ff01"));              // varint
  CHECK(skips("790102030405060708"));  // 8 bytes
  CHECK(skips("7a03616263"));          // length-delimited
  CHECK(skips("7d01020304"));          // 4 bytes
  CHECK(!skips("790102"));             // cut
  CHECK(!skips("7a036162"));
  CHECK(!skips("7b08017c"));  // a group
  CHECK(!skips("7c"));
  CHECK(!skips("7e"));  // no such wire types
  CHECK(!skips("7f"));
}

TEST(errors_say_where) {
  const auto data = check::unhex("0a0161120561");
  Error error;
  Cursor cursor(data, error);
  std::uint32_t tag;
  Bytes bytes;
  CHECK(cursor.tag(tag) && cursor.bytes(bytes) && cursor.tag(tag));
  CHECK(!cursor.bytes(bytes));
  CHECK_EQUAL(error.at - data.data(), 4);
  CHECK_EQUAL(error.reason, "a length reaches past the end of its message");
}

TEST(many_varints) {
  // Eight small ones at once, then larger ones, then a small tail.
  const auto data = check::unhex("0001020304050607 8001 ffffffffffffffffff01 7f");
  Error error;
  CHECK_EQUAL(tfrio::wire::count_varints(data, error), 11u);
  CHECK(error.at == nullptr);
  std::int64_t out[11];
  CHECK_EQUAL(tfrio::wire::read_varints(data, out, out + 11) - out, 11);
  CHECK_EQUAL(out[7], 7);
  CHECK_EQUAL(out[8], 128);
  CHECK_EQUAL(out[9], -1);
  CHECK_EQUAL(out[10], 127);
}

TEST(varints_that_changed_since_they_were_counted_stay_in_bounds) {
  // As in a mapped file: more of them than there is room for, fewer, and an end that moved away.
  std::int64_t out[12];
  for (const std::size_t room : {0u, 1u, 7u, 9u}) {
    std::fill(std::begin(out), std::end(out), -7);
    const auto data = check::unhex("000000000000000000000000000000000000");
    CHECK_EQUAL(tfrio::wire::read_varints(data, out, out + room) - out, std::ptrdiff_t(room));
    CHECK_EQUAL(std::count(std::begin(out), std::end(out), -7), std::ptrdiff_t(12 - room));
  }
  for (const char* hex : {"81", "8181", "ffffffffffffffffffffffffff"}) {
    const auto data = check::unhex(hex);
    CHECK(tfrio::wire::read_varints(data, out, out + 12) - out <= 2);
  }
}

TEST(many_varints_malformed) {
  for (const char* hex : {"80", "0180", "ffffffffffffffffffff01", "0001020304050607ff"}) {
    Error error;
    tfrio::wire::count_varints(check::unhex(hex), error);
    CHECK(error.at != nullptr);
  }
}

TEST(utf8) {
  for (const char* good : {"", "61", "c3a9", "e282ac", "f09f9880", "6162636465666768c3a9",
                           "f48fbfbf", "ed9fbf", "ee8080", "00"}) {
    CHECK(tfrio::wire::is_utf8(check::unhex(good)));
  }
  for (const char* bad :
       {"80", "c0af", "c1bf", "e08080", "eda080", "f08080af", "f4908080", "f5808080", "c3", "e282",
        "f09f98", "c361", "6162636465666768ff", "fffe"}) {
    CHECK(!tfrio::wire::is_utf8(check::unhex(bad)));
  }
}

}  // namespace
