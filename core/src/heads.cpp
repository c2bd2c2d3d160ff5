// Remembering how entries begin.
#include "tfrio/heads.hpp"

#include <bit>

namespace tfrio {
namespace {

/// Places in the table for each head it may hold: few fall on one another.
constexpr std::size_t kRoom = 4;

}  // namespace

EntryHeads::EntryHeads(std::size_t columns) : known_(columns, 0) {
  const std::size_t places =
      std::bit_ceil(std::max<std::size_t>(columns, 4) * kOfOneColumn * kRoom);
  heads_.resize(places);
  mask_ = places - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(places));
}

void EntryHeads::learn(Bytes entry, std::size_t size, int column) {
  std::uint8_t& known = known_[static_cast<std::size_t>(column)];
  if (known == kOfOneColumn || size < 8 || size > kMost) return;
  if (entry.size() != 2 + std::size_t{entry[1]} || entry[1] >= 0x80) return;
  if (entry.size() < kLeast + std::size_t{entry[kNameSize]} || find(entry) != nullptr) return;
  ++known;
  const std::uint64_t key = key_of(entry.data());
  std::size_t i = place(key);
  while (heads_[i].size != 0) i = (i + 1) & mask_;
  Head& head = heads_[i];
  head.key = key;
  head.size = static_cast<std::uint32_t>(size);
  head.column = column;
  std::memcpy(head.bytes, entry.data(), size);
}

}  // namespace tfrio
