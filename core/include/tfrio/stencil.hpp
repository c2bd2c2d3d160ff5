// What some bytes of a message must be: compared many at a time, under a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tfrio/bytes.hpp"

namespace tfrio {

/// Bytes that messages of one length must hold in given places, whatever lies between them.
class Stencil {
 public:
  /// For messages of `length` bytes, at least 8.
  explicit Stencil(std::size_t length) : length_(length) {}

  /// Ask for what `message` holds from `begin` up to `end`, which must not lie before the places
  /// asked for so far.
  void cover(const std::uint8_t* message, std::size_t begin, std::size_t end);

  /// Return whether `message` holds all that is asked for.
  bool fits(const std::uint8_t* message) const { return count(message, 0, 1) == 1; }

  /// Return how many of `n` messages, the first at `first` and `stride` bytes from one to the
  /// next, fit, up to the first that does not.
  std::size_t count(const std::uint8_t* first, std::size_t stride, std::size_t n) const;

  /// As count(), by the instructions that every machine has.
  std::size_t count_plain(const std::uint8_t* first, std::size_t stride, std::size_t n) const;

  /// Bytes compared at once.
  static constexpr std::size_t kBlock = 32;

  struct Block {
    std::size_t offset;
    std::uint8_t bytes[kBlock], mask[kBlock];
  };

 private:
  std::size_t length_;
  std::vector<Block> blocks_;
};

}  // namespace tfrio
