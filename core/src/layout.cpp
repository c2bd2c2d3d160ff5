// Predicting a record from the last one.
#include "tfrio/layout.hpp"

#include <algorithm>

#include "tfrio/framing.hpp"

namespace tfrio {
namespace {

/// Layouts of more words than this cost more than they save, and hold memory.
constexpr std::size_t kMostWords = 4096;

/// Payloads from this size on are not predicted: next to moving their bytes, taking them apart
/// costs nothing.
constexpr std::size_t kLargePayload = 32 << 10;

/// Records of one length that must miss in a row before their layout is learnt anew.
constexpr unsigned kPatience = 4;

/// Longest wait, in records, between two attempts to learn.
constexpr unsigned kLongestWait = 10;  // 2^10

}  // namespace

bool Layout::add_feature(Bytes payload, Bytes feature, RowShape& shape,
                         std::vector<Range>& values) {
  FeatureValues parsed;
  wire::Error error;
  if (!parse_feature(feature, parsed, error) || parsed.loose_int64s) return false;
  for (Bytes piece : parsed.pieces) {
    const auto offset = static_cast<std::size_t>(piece.data() - payload.data());
    shape.pieces.push_back({offset, piece.size()});
    values.emplace_back(offset, offset + piece.size());
  }
  shape.present = shape.present || parsed.kind != Kind::none;
  shape.items.push_back({shape.pieces.size(), parsed.count});
  return shape.pieces.size() <= kMostWords;
}

bool Layout::add_slot(Bytes payload, Bytes value, bool is_list, RowShape& shape,
                      std::vector<Range>& values) {
  if (!is_list) return add_feature(payload, value, shape, values);
  shape.present = true;
  wire::Error error;
  return for_each_step(value, error,
                       [&](Bytes feature) { return add_feature(payload, feature, shape, values); });
}

std::optional<Layout> Layout::learn(Bytes payload, const Locator& locator,
                                    const std::vector<Column>& columns) {
  Layout layout;
  layout.length_ = payload.size();
  if (payload.size() < 8 || payload.size() >= kLargePayload || locator.merged()) {
    return std::nullopt;
  }
  write_header(layout.header_, payload.size());
  std::vector<Range> values;
  for (Bytes value : locator.unlisted_values()) {
    const auto offset = static_cast<std::size_t>(value.data() - payload.data());
    values.emplace_back(offset, offset + value.size());
  }
  layout.shapes_.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int number = static_cast<int>(i);
    if (locator.present(number) &&
        !layout.add_slot(payload, locator.value(number), columns[i].is_list(), layout.shapes_[i],
                         values)) {
      return std::nullopt;
    }
  }
  if (!layout.shape_bytes(payload, values)) return std::nullopt;
  layout.gather(payload);
  return layout;
}

bool Layout::shape_bytes(Bytes payload, std::vector<Range>& values) {
  // Everything that is not a value shapes the payload.
  std::sort(values.begin(), values.end());
  std::size_t at = 0;
  for (const auto& [begin, end] : values) {
    cover(at, begin);
    at = std::max(at, end);
    if (places_.size() > kMostWords) return false;
  }
  cover(at, payload.size());
  return places_.size() <= kMostWords;
}

void Layout::cover(std::size_t begin, std::size_t end) {
  while (begin < end && places_.size() <= kMostWords) {
    // The last word of a payload reaches back, so that no word reaches past the end.
    const std::size_t place = std::min(begin / 8 * 8, length_ - 8);
    const std::size_t stop = std::min(end, place + 8);
    if (places_.empty() || places_.back() != place) {
      places_.push_back(place);
      masks_.push_back(0);
    }
    for (; begin < stop; ++begin) masks_.back() |= std::uint64_t{0xFF} << (8 * (begin - place));
  }
}

void Layout::gather(Bytes payload) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    words_.push_back(load64(payload.data() + places_[i]) & masks_[i]);
    if (i > 0 && places_[i] == places_[i - 1] + 8) {
      ++runs_.back().size;
    } else {
      runs_.push_back({places_[i], i, 1});
    }
  }
}

bool Layout::matches(const std::uint8_t* payload) const {
  for (const Run& run : runs_) {
    const std::uint8_t* at = payload + run.offset;
    const std::uint64_t* const words = words_.data() + run.first;
    const std::uint64_t* const masks = masks_.data() + run.first;
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < run.size; ++i) {
      different |= (load64(at + 8 * i) & masks[i]) ^ words[i];
    }
    if (different != 0) return false;
  }
  return true;
}

void LayoutCache::learn(Bytes payload, Locator& locator, const std::vector<Column>& columns) {
  Entry& entry = entries_[place(payload.size())];
  if (entry.length != payload.size()) {
    entry.length = payload.size();
    entry.misses = 0;
    entry.layout.reset();
    return;
  }
  if (entry.layout && ++entry.misses < kPatience) return;
  if (waiting_ > 0) {
    --waiting_;
    return;
  }
  entry.layout.reset();
  Fault ignored;
  if (locator.locate(payload, ignored)) entry.layout = Layout::learn(payload, locator, columns);
  entry.misses = 0;
  waiting_ = (std::uint64_t{1} << useless_) - 1;
  useless_ = std::min(useless_ + 1, kLongestWait);
}

}  // namespace tfrio
