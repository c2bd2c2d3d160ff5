// Feature names to numbers, without allocating while looking up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tfrio/bytes.hpp"

namespace tfrio {

/// A hash table from names to numbers of the caller's choice. A name of up to 16 bytes is told
/// apart by its length and two words; only longer ones are compared byte by byte.
class KeyTable {
 public:
  KeyTable();

  /// Return the number of `name`, or -1.
  int find(Bytes name) const {
    const Words words = words_of(name);
    for (std::size_t i = place(words);; i = (i + 1) & mask_) {
      const Entry& entry = entries_[i];
      if (entry.name < 0) return -1;
      if (entry.words == words && (name.size() <= 16 || same_text(entry.name, name))) {
        return entry.number;
      }
    }
  }

  /// Add `name`, which must be new, with its number, 0 or more.
  void add(std::string_view name, int number);

 private:
  /// Length, and the first and last 8 bytes; short names fold into the words, still one to one.
  struct Words {
    std::uint64_t first, last, size;
    bool operator==(const Words&) const = default;
  };
  struct Entry {
    Words words;
    int name;  // place in names_, -1 where the entry is free
    int number;
  };

  static Words words_of(Bytes name) {
    const std::uint8_t* p = name.data();
    const std::size_t size = name.size();
    if (size >= 8) return {load64(p), load64(p + size - 8), size};
    if (size >= 4) return {load32(p), load32(p + size - 4), size};
    if (size == 0) return {0, 0, 0};
    return {p[0], static_cast<std::uint64_t>(p[size / 2]) << 8 | p[size - 1], size};
  }

  std::size_t place(const Words& words) const {
    const std::uint64_t mixed =
        (words.first ^ (words.size << 56)) * 0x9E3779B97F4A7C15u + words.last * 0xC2B2AE3D27D4EB4Fu;
    return static_cast<std::size_t>((mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15u >> shift_);
  }

  bool same_text(int place, Bytes name) const;
  void insert(int place);
  void resize(std::size_t entries);

  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::vector<int> numbers_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

}  // namespace tfrio
