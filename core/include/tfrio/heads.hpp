// The beginnings of map entries met before: what begins alike parses alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tfrio/bytes.hpp"

namespace tfrio {

/// Remembers entries of a feature map (name, then value) by their head: all bytes up to the values,
/// the lengths among them. An entry with the same head holds as many bytes of values for the same
/// feature, in whatever order entries come.
class EntryHeads {
 public:
  static constexpr std::size_t kMost = 48;  // bytes of the longest head kept

  struct Head {
    std::uint64_t key = 0;
    std::uint32_t size = 0;  // 0: free
    int column = -1;
    std::uint8_t bytes[kMost] = {};
  };

  /// For entries of up to `columns` features.
  explicit EntryHeads(std::size_t columns);

  /// Return the entry, of 2 to 129 bytes, that begins at `at`; nothing where it is another kind of
  /// entry, or reaches past `end`. How long it is follows from its second byte alone, so that the
  /// next one can be looked at before this one is known.
  static Bytes short_entry(const std::uint8_t* at, const std::uint8_t* end) {
    if (end - at < kLeast) return {};
    const std::uint8_t size = at[1];  // read once: a mapped file may change
    if (size >= 0x80 || end - at < 2 + size) return {};
    return {at, std::size_t{2} + size};
  }

  /// Return the head with which a short entry begins; nullptr where none is known.
  const Head* find(Bytes entry) const {
    const std::uint8_t* const at = entry.data();
    if (entry.size() < kLeast + std::size_t{at[kNameSize]}) return nullptr;
    const std::uint64_t key = key_of(at);
    for (std::size_t i = place(key);; i = (i + 1) & mask_) {
      const Head& head = heads_[i];
      if (head.size == 0) return nullptr;
      // Names can be made up so that a longer entry has the same key: never read past this one.
      if (head.key == key && head.size <= entry.size() && same(at, head)) return &head;
    }
  }

  /// Remember a short entry, whose values begin at `size`, for a column. Where enough is known
  /// nothing happens: heads that change all the time are not worth it.
  void learn(Bytes entry, std::size_t size, int column);

 private:
  /// Where an ordinary short entry tells how long its name is, and what every entry has at least
  /// behind that.
  static constexpr std::ptrdiff_t kNameSize = 3, kLeast = 10;
  static constexpr std::size_t kOfOneColumn = 4;

  /// Mix the first 8 bytes with the 8 that end with the name, if it is an ordinary short entry.
  /// Only bytes within the 8 + at[kNameSize] first ones are read.
  static std::uint64_t key_of(const std::uint8_t* at) {
    const std::size_t name = std::max<std::size_t>(at[kNameSize], 4);
    return load64(at) + 3 * load64(at + name - 4);
  }

  static bool same(const std::uint8_t* at, const Head& head) {
    std::size_t i = 0;
    std::uint64_t different = 0;
    for (; i + 8 < head.size; i += 8) different |= load64(at + i) ^ load64(head.bytes + i);
    // A head has 8 bytes at least.
    const std::size_t last = head.size - std::size_t{8};
    return (different | (load64(at + last) ^ load64(head.bytes + last))) == 0;
  }

  std::size_t place(std::uint64_t key) const {
    return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15u >> shift_);
  }

  std::vector<Head> heads_;
  std::vector<std::uint8_t> known_;  // by column: heads remembered
  std::size_t mask_;
  unsigned shift_;
};

}  // namespace tfrio
