// Predicting a record from the last one: most files repeat one layout, record after record.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tfrio/bytes.hpp"
#include "tfrio/column.hpp"
#include "tfrio/locator.hpp"
#include "tfrio/stencil.hpp"

namespace tfrio {

/// The layout of one payload: its length, the bytes that shape it (tags, lengths, names) and where
/// the values of each listed feature lie. A payload of the same length with the same shaping bytes
/// parses in the same way, step by step, so its values can be taken from the same places. What
/// protobuf would read differently differs in a shaping byte; varint lists are counted again.
class Layout {
 public:
  /// Learn the layout of `payload`, which `locator` has just located and `columns` can decode.
  /// Nothing where it is too small, too scattered or of a rare form: then it is not worth it.
  static std::optional<Layout> learn(Bytes payload, const Locator& locator,
                                     const std::vector<Column>& columns);

  /// Length of the payload.
  std::size_t length() const { return length_; }

  /// The first 12 bytes of the framed record, which the length alone determines.
  const std::uint8_t* header() const { return header_; }

  /// Return whether `payload`, of length() bytes, has the same shaping bytes.
  bool matches(const std::uint8_t* payload) const { return stencil_.fits(payload); }

  /// Return how many of the `n` framed records from `first` on, all of this length, have this
  /// layout, up to the first that has not.
  std::size_t matching(const std::uint8_t* first, std::size_t n) const;

  /// What column `i` finds in a payload.
  const RowShape& shape(std::size_t i) const { return shapes_[i]; }

 private:
  using Range = std::pair<std::size_t, std::size_t>;

  bool add_feature(Bytes payload, Bytes feature, RowShape& shape, std::vector<Range>& values);
  bool add_slot(Bytes payload, Bytes value, bool is_list, RowShape& shape,
                std::vector<Range>& values);
  void shape_bytes(Bytes payload, std::vector<Range>& values);

  explicit Layout(std::size_t length) : length_(length), stencil_(length) {}

  std::size_t length_;
  std::uint8_t header_[12] = {};
  Stencil stencil_;  // the bytes that shape the payload
  std::vector<RowShape> shapes_;
};

/// The layouts seen last, by payload length, and the judgement whether predicting pays.
class LayoutCache {
 public:
  /// Return the layout to try on a record that begins with the 12 bytes at `header`, or nullptr.
  const Layout* find(const std::uint8_t* header) {
    const Entry& entry = entries_[place(load64(header))];
    if (!entry.layout || std::memcmp(entry.layout->header(), header, 12) != 0) return nullptr;
    return try_one(entry);
  }

  /// Return the layout to try on a payload of `length` bytes, or nullptr.
  const Layout* find(std::size_t length) {
    const Entry& entry = entries_[place(length)];
    return entry.layout && entry.length == length ? try_one(entry) : nullptr;
  }

  /// Note that the layout for payloads of `length` bytes fitted a record.
  void hit(std::size_t length) {
    entries_[place(length)].misses = 0;
    misses_ = useless_ = 0;
  }

  /// Note that a layout was tried and did not fit; after a row of misses few are tried.
  void miss() {
    misses_ = std::min(misses_ + 1, 10u);
    if (misses_ > 4) skipping_ = 1u << (misses_ - 4);
  }

  /// A payload came through the general way. Learn its layout where its length was seen before
  /// and what is known for that length keeps missing, but ever more rarely as long as nothing
  /// learnt turns out useful. `locator` lists the features of `columns`, in order.
  void learn(Bytes payload, Locator& locator, const std::vector<Column>& columns);

 private:
  struct Entry {
    std::size_t length = SIZE_MAX;
    unsigned misses = 0;  // records of this length since the layout fitted last
    std::optional<Layout> layout;
  };
  const Layout* try_one(const Entry& entry) {
    if (skipping_ == 0) return &*entry.layout;
    --skipping_;
    return nullptr;
  }
  static std::size_t place(std::uint64_t length) { return (length ^ length >> 3) % kEntries; }

  static constexpr std::size_t kEntries = 16;
  Entry entries_[kEntries];
  unsigned misses_ = 0;        // tries in a row that did not fit
  unsigned skipping_ = 0;      // tries to leave out
  std::uint64_t waiting_ = 0;  // records to let pass before learning again
  unsigned useless_ = 0;       // layouts learnt since one fitted
};

}  // namespace tfrio
