// Names to numbers: every length, look-alikes, many names.
#include "check.hpp"
#include "tfrio/keys.hpp"

namespace {

using tfrio::KeyTable;

TEST(keys_of_every_length_are_told_apart) {
  // Names of one length that differ in one byte only, at each place in turn.
  for (std::size_t length = 0; length <= 40; ++length) {
    KeyTable table;
    std::vector<std::string> names{std::string(length, 'a')};
    for (std::size_t i = 0; i < length; ++i) {
      names.push_back(names[0]);
      names.back()[i] = 'b';
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      CHECK_EQUAL(table.find(check::bytes_of(names[i])), -1);
      table.add(names[i], static_cast<int>(10 * i));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      CHECK_EQUAL(table.find(check::bytes_of(names[i])), static_cast<int>(10 * i));
    }
    CHECK_EQUAL(table.find(check::bytes_of(std::string(length + 1, 'a'))), -1);
  }
}

TEST(many_keys) {
  KeyTable table;
  for (int i = 0; i < 5000; ++i) table.add("feature number " + std::to_string(i), i);
  for (int i = 0; i < 5000; ++i) {
    CHECK_EQUAL(table.find(check::bytes_of("feature number " + std::to_string(i))), i);
  }
  CHECK_EQUAL(table.find(check::bytes_of("feature number 5000")), -1);
}

TEST(zero_bytes_are_part_of_a_key) {
  KeyTable table;
  const std::string one(1, '\0'), two(2, '\0');
  table.add(one, 1);
  table.add(two, 2);
  table.add("", 0);
  CHECK_EQUAL(table.find(check::bytes_of(one)), 1);
  CHECK_EQUAL(table.find(check::bytes_of(two)), 2);
  CHECK_EQUAL(table.find({}), 0);
}

}  // namespace
