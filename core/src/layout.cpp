// Predicting a record from the last one.
#include "tfrio/layout.hpp"

#include <algorithm>

#include "tfrio/framing.hpp"

namespace tfrio {
namespace {

/// Layouts of more pieces of values than this cost more than they save, and hold memory.
constexpr std::size_t kMostPieces = 4096;

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
  shape.items.push_back({shape.pieces.size(), parsed.count, parsed.kind == Kind::none});
  return shape.pieces.size() <= kMostPieces;
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
  if (payload.size() < 8 || payload.size() >= kLargePayload || locator.merged()) {
    return std::nullopt;
  }
  Layout layout(payload.size());
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
  layout.shape_bytes(payload, values);
  return layout;
}

void Layout::shape_bytes(Bytes payload, std::vector<Range>& values) {
  // Everything that is not a value shapes the payload.
  std::sort(values.begin(), values.end());
  std::size_t at = 0;
  for (const auto& [begin, end] : values) {
    if (begin > at) stencil_.cover(payload.data(), at, begin);
    at = std::max(at, end);
  }
  stencil_.cover(payload.data(), at, payload.size());
}

std::size_t Layout::matching(const std::uint8_t* first, std::size_t n) const {
  const std::size_t stride = length_ + kFrameSize;
  std::size_t same = 0;
  while (same < n && std::memcmp(first + same * stride, header_, kHeaderSize) == 0) ++same;
  return stencil_.count(first + kHeaderSize, stride, same);
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
