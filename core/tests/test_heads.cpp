// Entries told by how they begin: the right one, never one that begins otherwise.
#include "check.hpp"
#include "tfrio/heads.hpp"

namespace {

using tfrio::Bytes;
using tfrio::EntryHeads;

/// Return an entry with `values` packed floats of 4 bytes.
std::vector<std::uint8_t> entry_of(const std::string& name, std::size_t values = 1) {
  const std::size_t floats = 4 * values, feature = floats + 4, size = name.size() + feature + 4;
  std::string entry;
  for (std::size_t byte : {std::size_t{0x0A}, size, std::size_t{0x0A}, name.size()}) {
    entry += static_cast<char>(byte);
  }
  entry += name;
  for (std::size_t byte :
       {std::size_t{0x12}, feature, std::size_t{0x12}, floats + 2, std::size_t{0x0A}, floats}) {
    entry += static_cast<char>(byte);
  }
  entry += std::string(floats, 0x3F);
  return {entry.begin(), entry.end()};
}

int column_of(const EntryHeads& heads, const std::vector<std::uint8_t>& data) {
  const Bytes entry = EntryHeads::short_entry(data.data(), data.data() + data.size());
  const EntryHeads::Head* head = entry.empty() ? nullptr : heads.find(entry);
  return head == nullptr ? -1 : head->column;
}

TEST(entries_are_found_by_their_heads) {
  EntryHeads heads(100);
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(std::string(static_cast<std::size_t>(i % 30), 'x'));
  for (std::size_t i = 0; i < names.size(); ++i) names[i] += std::to_string(i);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto entry = entry_of(names[i]);
    CHECK_EQUAL(column_of(heads, entry), -1);
    heads.learn(entry, entry.size() - 4, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto entry = entry_of(names[i]);
    const int known = column_of(heads, entry);
    CHECK(known == static_cast<int>(i) || entry.size() - 4 > EntryHeads::kMost);
    for (std::size_t at = 0; at < entry.size(); ++at) {
      entry[at] ^= 1;  // a byte of the head counts, one of the value does not
      CHECK_EQUAL(column_of(heads, entry), at < entry.size() - 4 ? -1 : known);
      entry[at] ^= 1;
    }
  }
}

TEST(a_cut_entry_is_none) {
  EntryHeads heads(1);
  const auto entry = entry_of("f");
  heads.learn(entry, entry.size() - 4, 0);
  for (std::size_t size = 0; size <= entry.size(); ++size) {
    const std::vector<std::uint8_t> cut(entry.begin(), entry.begin() + static_cast<long>(size));
    CHECK_EQUAL(column_of(heads, cut), size == entry.size() ? 0 : -1);
  }
}

TEST(a_shorter_entry_of_the_same_key_is_not_read_past) {
  // The key adds up two words: 30 less in both lengths is made good by the end of the name.
  const auto known = entry_of("abcd" + std::string(26, 'm') + "aXcZefgh");
  const auto entry = entry_of("abcdefgh");
  EntryHeads heads(1);
  heads.learn(known, known.size() - 4, 0);
  CHECK_EQUAL(column_of(heads, known), 0);
  CHECK_EQUAL(column_of(heads, entry), -1);  // a vector of just its size, watched by ASan
}

TEST(a_column_of_many_heads_keeps_a_few) {
  EntryHeads heads(1);
  int found = 0;
  for (std::size_t values = 0; values < 20; ++values) {
    const auto entry = entry_of("f", values);
    heads.learn(entry, 11, 0);
    found += column_of(heads, entry) == 0;
  }
  CHECK_EQUAL(found, 4);
}

TEST(long_entries_and_long_heads_are_left_out) {
  EntryHeads heads(2);
  auto entry = entry_of(std::string(60, 'n'));
  heads.learn(entry, entry.size() - 4, 0);
  CHECK_EQUAL(column_of(heads, entry), -1);
  entry[1] = 0x81;
  heads.learn(entry, 20, 1);
  CHECK_EQUAL(column_of(heads, entry), -1);
}

}  // namespace
