// Walking deflate blocks: Huffman codes are decoded, literals and matches only counted.
#include "tfrio/deflate.hpp"

#include <array>
#include <span>

namespace tfrio {
namespace {

constexpr unsigned kLongestCode = 15;
constexpr unsigned kTableBits = 11;  // longer codes are rare and take the slow way
constexpr std::size_t kLiteralCodes = 286, kDistanceCodes = 30, kLengthCodes = 19;

/// What a symbol means: literals put out 1 byte and have no extra bits.
struct Meaning {
  std::uint16_t base;
  std::uint8_t extra;
  std::uint8_t kind;
};
constexpr std::uint8_t kLiteral = 0, kMatch = 1, kEnd = 2, kInvalid = 3;

// RFC 1951, section 3.2.5: lengths of matches, and extra bits of distances.
constexpr std::array<std::uint16_t, 29> kLengthBase = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                       15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                       67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<std::uint8_t, 29> kLengthExtra = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
// Section 3.2.7: the order in which the lengths of the code of code lengths stand.
constexpr std::array<std::uint8_t, kLengthCodes> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                           11, 4,  12, 3, 13, 2, 14, 1, 15};

Meaning literal_meaning(unsigned symbol) {
  if (symbol < 256) return {1, 0, kLiteral};
  if (symbol == 256) return {0, 0, kEnd};
  if (symbol >= kLiteralCodes) return {0, 0, kInvalid};
  return {kLengthBase[symbol - 257], kLengthExtra[symbol - 257], kMatch};
}

Meaning distance_meaning(unsigned symbol) {
  if (symbol >= kDistanceCodes) return {0, 0, kInvalid};
  const unsigned extra = symbol < 4 ? 0 : symbol / 2 - 1;
  return {0, static_cast<std::uint8_t>(extra), kMatch};
}

Meaning plain_meaning(unsigned symbol) {
  return {static_cast<std::uint16_t>(symbol), 0, kLiteral};
}

/// Bits in order, lowest first. Past the end zeros come, and `overrun` tells.
class Bits {
 public:
  Bits(Bytes data, std::uint64_t bit) : data_(data), next_(bit / 8) {
    if (next_ > data.size()) next_ = data.size();
    fill();
    drop(bit % 8);
  }

  /// Have at least 48 bits at hand.
  void fill() {
    if (data_.size() - next_ >= 8 && count_ <= 63) {
      held_ |= load64(data_.data() + next_) << count_;
      const unsigned bytes = (63 - count_) / 8;
      next_ += bytes;
      count_ += bytes * 8;
      return;
    }
    while (count_ <= 56) {
      if (next_ < data_.size()) {
        held_ |= std::uint64_t{data_[next_++]} << count_;
      } else {
        padding_ += 8;
      }
      count_ += 8;
    }
  }

  std::uint64_t peek() const { return held_; }
  void drop(unsigned n) {
    held_ >>= n;
    count_ -= n;
  }
  unsigned take(unsigned n) {
    const auto value = static_cast<unsigned>(held_ & ((std::uint64_t{1} << n) - 1));
    drop(n);
    return value;
  }

  bool overrun() const { return count_ < padding_; }
  std::uint64_t position() const { return next_ * 8 + padding_ - count_; }

  /// Move to the next whole byte and `n` bytes on; false where there are not so many.
  bool skip_bytes(std::size_t n) {
    const std::uint64_t at = (position() + 7) / 8;
    if (overrun() || at > data_.size() || data_.size() - at < n) return false;
    *this = Bits(data_, (at + n) * 8);
    return true;
  }

 private:
  Bytes data_;
  std::uint64_t next_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
  unsigned padding_ = 0;
};

/// A Huffman code as a table over the next bits.
class Code {
 public:
  /// Set up from the length of each symbol's code; false where they overlap.
  bool set(std::span<const std::uint8_t> lengths, Meaning (*meaning)(unsigned)) {
    count_.fill(0);
    for (const std::uint8_t length : lengths) ++count_[length];
    count_[0] = 0;
    int left = 1;
    for (unsigned length = 1; length <= kLongestCode; ++length) {
      left = left * 2 - count_[length];
      if (left < 0) return false;
    }
    std::array<std::uint16_t, kLongestCode + 2> at{};
    for (unsigned n = 1; n <= kLongestCode; ++n) {
      at[n + 1] = static_cast<std::uint16_t>(at[n] + count_[n]);
    }
    for (unsigned symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) sorted_[at[lengths[symbol]]++] = meaning(symbol);
    }
    fill_table();
    return true;
  }

  /// Decode one symbol; kInvalid where the bits are no code.
  Meaning next(Bits& bits) const {
    const Entry entry = table_[bits.peek() & (kTableSize - 1)];
    if (entry.length != 0) {
      bits.drop(entry.length);
      return entry.meaning;
    }
    return slow(bits);
  }

 private:
  struct Entry {
    Meaning meaning;
    std::uint8_t length;
  };
  static constexpr std::size_t kTableSize = std::size_t{1} << kTableBits;

  void fill_table() {
    table_.fill({{0, 0, kInvalid}, 0});
    unsigned code = 0, index = 0;
    for (unsigned length = 1; length <= kTableBits; ++length, code <<= 1) {
      for (unsigned i = 0; i < count_[length]; ++i, ++code, ++index) {
        unsigned reversed = 0;
        for (unsigned b = 0; b < length; ++b) reversed |= (code >> b & 1) << (length - 1 - b);
        for (std::size_t k = reversed; k < kTableSize; k += std::size_t{1} << length) {
          table_[k] = {sorted_[index], static_cast<std::uint8_t>(length)};
        }
      }
    }
  }

  /// Decode bit by bit: codes of one length are consecutive numbers.
  Meaning slow(Bits& bits) const {
    unsigned code = 0, first = 0, index = 0;
    std::uint64_t held = bits.peek();
    for (unsigned length = 1; length <= kLongestCode; ++length, held >>= 1) {
      code |= static_cast<unsigned>(held & 1);
      if (code < first + count_[length]) {
        bits.drop(length);
        return sorted_[index + code - first];
      }
      index += count_[length];
      first = (first + count_[length]) << 1;
      code <<= 1;
    }
    return {0, 0, kInvalid};
  }

  std::array<std::uint16_t, kLongestCode + 1> count_{};
  std::array<Meaning, 320> sorted_{};
  std::array<Entry, kTableSize> table_{};
};

/// The two codes of a block.
struct Codes {
  Code literals, distances;
};

bool set_fixed(Codes& codes) {
  std::array<std::uint8_t, 288> lengths{};
  for (unsigned i = 0; i < lengths.size(); ++i) {
    lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  }
  std::array<std::uint8_t, kDistanceCodes> distances{};
  distances.fill(5);
  return codes.literals.set(lengths, literal_meaning) &&
         codes.distances.set(distances, distance_meaning);
}

/// Read the run-length coded lengths of both codes; false where they do not fit.
bool read_lengths(Bits& bits, const Code& code, std::span<std::uint8_t> lengths) {
  std::size_t n = 0;
  while (n < lengths.size()) {
    bits.fill();
    const Meaning meaning = code.next(bits);
    if (meaning.kind == kInvalid || bits.overrun()) return false;
    if (meaning.base < 16) {
      lengths[n++] = static_cast<std::uint8_t>(meaning.base);
      continue;
    }
    std::uint8_t value = 0;
    unsigned repeat = 0;
    if (meaning.base == 16) {
      if (n == 0) return false;
      value = lengths[n - 1];
      repeat = 3 + bits.take(2);
    } else {
      repeat = meaning.base == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    }
    if (repeat > lengths.size() - n) return false;
    for (; repeat > 0; --repeat) lengths[n++] = value;
  }
  return true;
}

bool set_dynamic(Bits& bits, Codes& codes) {
  const std::size_t literals = bits.take(5) + 257, distances = bits.take(5) + 1;
  const unsigned n = bits.take(4) + 4;
  if (literals > kLiteralCodes || distances > kDistanceCodes) return false;
  std::array<std::uint8_t, kLengthCodes> small{};
  for (unsigned i = 0; i < n; ++i) {
    bits.fill();
    small[kOrder[i]] = static_cast<std::uint8_t>(bits.take(3));
  }
  std::array<std::uint8_t, kLiteralCodes + kDistanceCodes> lengths{};
  const auto used = std::span(lengths).first(literals + distances);
  return codes.distances.set(small, plain_meaning) && read_lengths(bits, codes.distances, used) &&
         codes.literals.set(used.first(literals), literal_meaning) &&
         codes.distances.set(used.subspan(literals), distance_meaning);
}

/// Step over the symbols of a block; the number of bytes they put out, or -1 for damage.
std::int64_t count_symbols(Bits& bits, const Codes& codes) {
  std::int64_t out = 0;
  while (!bits.overrun()) {
    bits.fill();
    Meaning meaning = codes.literals.next(bits);
    if (meaning.kind == kLiteral) {  // three literals take at most 45 of the 56 bits
      ++out;
      meaning = codes.literals.next(bits);
      if (meaning.kind == kLiteral) {
        ++out;
        meaning = codes.literals.next(bits);
        if (meaning.kind == kLiteral) {
          ++out;
          continue;
        }
      }
      if (meaning.kind == kEnd) return bits.overrun() ? -1 : out;
      bits.fill();
    }
    if (meaning.kind == kEnd) return bits.overrun() ? -1 : out;
    if (meaning.kind == kInvalid) return -1;
    out += meaning.base + bits.take(meaning.extra);
    const Meaning distance = codes.distances.next(bits);
    if (distance.kind == kInvalid) return -1;
    bits.drop(distance.extra);
  }
  return -1;
}

/// Step over a stored block; the number of its bytes, or -1 for damage.
std::int64_t skip_stored(Bits& bits) {
  if (!bits.skip_bytes(0)) return -1;
  bits.fill();
  const unsigned length = bits.take(16), complement = bits.take(16);
  if (bits.overrun() || (length ^ complement) != 0xFFFF || !bits.skip_bytes(length)) return -1;
  return length;
}

}  // namespace

DeflateWalk walk_deflate(Bytes data, std::uint64_t bit, std::int64_t spacing,
                         Buffer<DeflatePoint>& points) {
  DeflateWalk walk{static_cast<std::int64_t>(bit), 0, false};
  Codes codes;
  Bits bits(data, bit);
  std::int64_t last = 0;
  while (!walk.ended) {
    bits.fill();
    const bool final = bits.take(1) == 1;
    const unsigned type = bits.take(2);
    std::int64_t out = -1;
    if (type == 0) {
      out = skip_stored(bits);
    } else if (type != 3 && (type == 1 ? set_fixed(codes) : set_dynamic(bits, codes))) {
      out = count_symbols(bits, codes);
    }
    if (out < 0 || bits.overrun()) return walk;
    if (walk.out - last >= spacing) {
      points.push_back({walk.bit, walk.out});
      last = walk.out;
    }
    walk.out += out;
    walk.bit = static_cast<std::int64_t>(bits.position());
    walk.ended = final;
  }
  return walk;
}

}  // namespace tfrio
