// Columns to framed Examples.
#include "tfrio/encoder.hpp"

#include <algorithm>
#include <stdexcept>

#include "tfrio/framing.hpp"
#include "tfrio/wire.hpp"

namespace tfrio {
namespace {

constexpr std::uint8_t kFirst = wire::tag(1, wire::kLength);
constexpr std::uint8_t kSecond = wire::tag(2, wire::kLength);

/// Room past the end of what is written, so that short copies may be of a fixed size.
constexpr std::size_t kSlack = 32;

/// Bytes of a length-delimited field of `size` bytes, with a tag of one byte.
constexpr std::size_t field_size(std::size_t size) {
  return 1 + wire::varint_size(size) + size;
}

std::uint8_t* write_field_header(std::uint8_t* out, std::uint8_t tag, std::size_t size) {
  *out = tag;
  return wire::write_varint(out + 1, size);
}

/// Copy `n` bytes, at least 16 when short: a copy of known size needs no call. `to` has slack;
/// `from` must be readable that far.
inline void copy_padded(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
  if (n <= 16) {
    std::memcpy(to, from, 16);
  } else {
    std::memcpy(to, from, n);
  }
}

[[noreturn]] void misfit(const FeatureSpec& spec, const char* what) {
  throw std::invalid_argument("feature '" + spec.name + "': " + what);
}

/// Check that `offsets` has `n` + 1 entries that rise from 0 or more to at most `limit`; return
/// the last.
std::size_t check_offsets(const FeatureSpec& spec, std::span<const std::int64_t> offsets,
                          std::size_t n, const char* what) {
  if (offsets.size() != n + 1) misfit(spec, what);
  bool rising = offsets[0] >= 0;
  for (std::size_t i = 0; i < n; ++i) rising &= offsets[i] <= offsets[i + 1];
  if (!rising) misfit(spec, "offsets must rise from 0");
  return static_cast<std::size_t>(offsets[n]);
}

void check_view(const FeatureSpec& spec, const ColumnView& view, std::size_t rows) {
  if (!view.present.empty() && view.present.size() != rows) {
    misfit(spec, "`present` must have one entry a row");
  }
  std::size_t items = rows;
  if (spec.place == Place::list) {
    items = check_offsets(spec, view.step_offsets, rows, "step offsets must be one more than rows");
  }
  std::size_t values = 0;
  if (view.count < 0) {
    values = check_offsets(spec, view.value_offsets, items,
                           "value offsets must be one more than rows or steps");
  } else if (items > 0 && static_cast<std::size_t>(view.count) > SIZE_MAX / 16 / items) {
    misfit(spec, "more values than memory can hold");
  } else {
    values = items * static_cast<std::size_t>(view.count);
  }
  std::size_t bytes = values * value_size(spec.kind);
  if (spec.kind == Kind::bytes) {
    if (view.byte_offsets.size() <= values) misfit(spec, "too few byte offsets for the values");
    bytes = check_offsets(spec, view.byte_offsets.first(values + 1), values, "byte offsets");
  }
  if (bytes > view.values.size()) misfit(spec, "fewer values than the rows need");
}

}  // namespace

/// Writes the records of one call. Sizes are found first, feature by feature and step by step,
/// and kept in `sizes_`, since a length stands before what it counts.
class RowWriter {
 public:
  RowWriter(const ExampleEncoder& encoder, std::span<const ColumnView> columns)
      : encoder_(encoder), columns_(columns) {}

  void write(std::size_t row, Encoded& out) {
    sizes_.clear();
    const std::size_t context = map_size(row, 0, encoder_.contexts_);
    const std::size_t lists = map_size(row, encoder_.contexts_, encoder_.features_.size());
    const std::size_t payload =
        (context > 0 ? field_size(context) : 0) + (lists > 0 ? field_size(lists) : 0);
    out.data.reserve_more(payload + kFrameSize + kSlack);
    std::uint8_t* const record = out.data.extend(payload + kFrameSize);
    next_size_ = sizes_.data();
    std::uint8_t* at = record + kHeaderSize;
    if (context > 0) at = write_map(at, kFirst, context, row, 0, encoder_.contexts_);
    if (lists > 0) {
      write_map(at, kSecond, lists, row, encoder_.contexts_, encoder_.features_.size());
    }
    write_header(record, payload);
    store32(record + kHeaderSize + payload, mask_crc(crc32c({record + kHeaderSize, payload})));
    out.ends.push_back(static_cast<std::int64_t>(out.data.size()));
  }

 private:
  using Feature = ExampleEncoder::Feature;

  const ColumnView& view_of(const Feature& feature) const { return columns_[feature.column]; }

  bool present(const Feature& feature, std::size_t row) const {
    const ColumnView& view = view_of(feature);
    return view.present.empty() || view.present[row] != 0;
  }

  /// The range of values of item `i` (a row or a step).
  static std::pair<std::size_t, std::size_t> values_of(const ColumnView& view, std::size_t i) {
    if (view.count < 0) {
      return {static_cast<std::size_t>(view.value_offsets[i]),
              static_cast<std::size_t>(view.value_offsets[i + 1])};
    }
    const auto count = static_cast<std::size_t>(view.count);
    return {i * count, (i + 1) * count};
  }

  static std::int64_t int64_at(const ColumnView& view, std::size_t i) {
    return static_cast<std::int64_t>(load64(view.values.data() + 8 * i));
  }

  /// Bytes inside the list message of item `i`, without its tag and length. Keeps the number that
  /// the writing needs again.
  std::size_t list_size(const Feature& feature, std::size_t i) {
    const ColumnView& view = view_of(feature);
    const auto [first, last] = values_of(view, i);
    std::size_t size = 0;
    switch (feature.spec.kind) {
      case Kind::floats:
        size = 4 * (last - first);
        break;
      case Kind::int64s:
        for (std::size_t k = first; k < last; ++k) {
          size += wire::varint_size(static_cast<std::uint64_t>(int64_at(view, k)));
        }
        break;
      default:
        for (std::size_t k = first; k < last; ++k) {
          size +=
              field_size(static_cast<std::size_t>(view.byte_offsets[k + 1] - view.byte_offsets[k]));
        }
    }
    sizes_.push_back(size);
    return size;
  }

  /// Bytes of the list message that holds `size` bytes of values.
  static std::size_t list_message(const Feature& feature, std::size_t size) {
    return feature.spec.kind == Kind::bytes || size == 0 ? size : field_size(size);
  }

  std::size_t value_message(const Feature& feature, std::size_t row) {
    if (feature.spec.place == Place::context) {
      return field_size(list_message(feature, list_size(feature, row)));
    }
    const ColumnView& view = view_of(feature);
    std::size_t size = 0;
    for (std::int64_t s = view.step_offsets[row]; s < view.step_offsets[row + 1]; ++s) {
      const std::size_t values = list_size(feature, static_cast<std::size_t>(s));
      size += field_size(field_size(list_message(feature, values)));
    }
    sizes_.push_back(size);
    return size;
  }

  std::size_t map_size(std::size_t row, std::size_t begin, std::size_t end) {
    std::size_t size = 0;
    for (std::size_t f = begin; f < end; ++f) {
      const Feature& feature = encoder_.features_[f];
      if (!present(feature, row)) continue;
      const std::size_t value = value_message(feature, row);
      size += field_size(entry_size(feature, value));
    }
    return size;
  }

  static std::size_t entry_size(const Feature& feature, std::size_t value) {
    return feature.prefix_size + wire::varint_size(value) + value;
  }

  std::uint8_t* write_map(std::uint8_t* at, std::uint8_t tag, std::size_t size, std::size_t row,
                          std::size_t begin, std::size_t end) {
    at = write_field_header(at, tag, size);
    for (std::size_t f = begin; f < end; ++f) {
      const Feature& feature = encoder_.features_[f];
      if (!present(feature, row)) continue;
      at = feature.spec.place == Place::context ? write_context(at, feature, row)
                                                : write_list(at, feature, row);
    }
    return at;
  }

  static std::uint8_t* write_entry(std::uint8_t* at, const Feature& feature, std::size_t value) {
    at = write_field_header(at, kFirst, entry_size(feature, value));
    copy_padded(at, feature.prefix.data(), feature.prefix_size);
    return wire::write_varint(at + feature.prefix_size, value);
  }

  std::uint8_t* write_context(std::uint8_t* at, const Feature& feature, std::size_t row) {
    const std::size_t size = *next_size_++;
    at = write_entry(at, feature, field_size(list_message(feature, size)));
    return write_feature(at, feature, row, size);
  }

  std::uint8_t* write_list(std::uint8_t* at, const Feature& feature, std::size_t row) {
    const ColumnView& view = view_of(feature);
    const std::int64_t first = view.step_offsets[row], last = view.step_offsets[row + 1];
    at = write_entry(at, feature, next_size_[last - first]);
    for (std::int64_t step = first; step < last; ++step) {
      const std::size_t size = *next_size_++;
      at = write_field_header(at, kFirst, field_size(list_message(feature, size)));
      at = write_feature(at, feature, static_cast<std::size_t>(step), size);
    }
    ++next_size_;
    return at;
  }

  std::uint8_t* write_feature(std::uint8_t* at, const Feature& feature, std::size_t item,
                              std::size_t size) {
    const ColumnView& view = view_of(feature);
    const auto [first, last] = values_of(view, item);
    const auto kind = static_cast<std::uint8_t>(feature.spec.kind);
    at = write_field_header(at, static_cast<std::uint8_t>(kind << 3 | wire::kLength),
                            list_message(feature, size));
    if (size == 0) return at;
    if (feature.spec.kind == Kind::bytes) return write_bytes(at, view, first, last);
    at = write_field_header(at, kFirst, size);
    if (feature.spec.kind == Kind::floats) {
      std::memcpy(at, view.values.data() + 4 * first, size);
      return at + size;
    }
    for (std::size_t k = first; k < last; ++k) {
      at = wire::write_varint(at, static_cast<std::uint64_t>(int64_at(view, k)));
    }
    return at;
  }

  static std::uint8_t* write_bytes(std::uint8_t* at, const ColumnView& view, std::size_t first,
                                   std::size_t last) {
    for (std::size_t k = first; k < last; ++k) {
      const auto begin = static_cast<std::size_t>(view.byte_offsets[k]);
      const std::size_t size = static_cast<std::size_t>(view.byte_offsets[k + 1]) - begin;
      at = write_field_header(at, kFirst, size);
      if (size > 0) std::memcpy(at, view.values.data() + begin, size);
      at += size;
    }
    return at;
  }

  const ExampleEncoder& encoder_;
  std::span<const ColumnView> columns_;
  std::vector<std::size_t> sizes_;
  const std::size_t* next_size_ = nullptr;
};

ExampleEncoder::ExampleEncoder(const std::vector<FeatureSpec>& features, bool sequence, bool sort) {
  for (std::size_t i = 0; i < features.size(); ++i) {
    const FeatureSpec& spec = features[i];
    if (spec.kind == Kind::none || spec.kind > Kind::int64s) {
      misfit(spec, "the kind must be 1 (bytes), 2 (float) or 3 (int64)");
    }
    if (spec.place == Place::list && !sequence) {
      misfit(spec, "only a SequenceExample has feature lists");
    }
    Feature feature{i, spec, {}, 0};
    feature.prefix.resize(spec.name.size() + 16 + kSlack);
    std::uint8_t* at = write_field_header(feature.prefix.data(), kFirst, spec.name.size());
    at = std::copy(spec.name.begin(), spec.name.end(), at);
    *at++ = kSecond;
    feature.prefix_size = static_cast<std::size_t>(at - feature.prefix.data());
    features_.push_back(std::move(feature));
    contexts_ += spec.place == Place::context;
  }
  const auto place = [](const Feature& f) { return static_cast<int>(f.spec.place); };
  std::stable_sort(features_.begin(), features_.end(), [&](const Feature& a, const Feature& b) {
    if (place(a) != place(b)) return place(a) < place(b);
    return sort && a.spec.name < b.spec.name;
  });
  std::vector<std::pair<int, std::string>> names;
  for (const Feature& feature : features_) names.emplace_back(place(feature), feature.spec.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw std::invalid_argument("feature '" + twice->second + "': listed twice");
}

Encoded ExampleEncoder::encode(std::size_t rows, std::span<const ColumnView> columns) const {
  if (columns.size() != features_.size()) {
    throw std::invalid_argument("one column a feature is needed");
  }
  for (const Feature& feature : features_) check_view(feature.spec, columns[feature.column], rows);
  Encoded out;
  out.ends.reserve_more(rows);
  RowWriter writer(*this, columns);
  for (std::size_t row = 0; row < rows; ++row) writer.write(row, out);
  return out;
}

}  // namespace tfrio
