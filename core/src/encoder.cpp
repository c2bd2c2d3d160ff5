// Columns to framed Examples.
#include "tfrio/encoder.hpp"

#include <algorithm>
#include <stdexcept>

#include "encoder_views.hpp"
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

}  // namespace

/// Writes the records of one call. Sizes are found first, since a length stands before what it
/// counts, and kept: a row whose sizes are those of the row before has its layout too, so its
/// record is a copy of the last one with other values.
class RowWriter {
 public:
  RowWriter(const ExampleEncoder& encoder, std::span<const ColumnView> columns, Encoded& out)
      : encoder_(encoder), columns_(columns), out_(out) {}

  void write(std::size_t row) {
    sizes_.swap(last_sizes_);
    sizes_.clear();
    gather(row);
    const bool repeats = run_ > 0 && stride_ <= kShortRecord && sizes_ == last_sizes_;
    if (repeats) {
      write_again(row);
    } else {
      write_fresh(row);
    }
    out_.ends.push_back(static_cast<std::int64_t>(out_.data.size()));
  }

  /// Put the checksums of the records since the last call in place, several in lock step.
  void finish() {
    const std::size_t payload = stride_ - kFrameSize;
    std::uint8_t* record = out_.data.data() + out_.data.size() - run_ * stride_;
    while (run_ > 0) {
      std::uint32_t crcs[16];
      const std::size_t n = std::min<std::size_t>(run_, std::size(crcs));
      crc32c_blocks(record + kHeaderSize, stride_, payload, n, crcs);
      for (std::size_t i = 0; i < n; ++i, record += stride_) {
        store32(record + kHeaderSize + payload, mask_crc(crcs[i]));
      }
      run_ -= n;
    }
  }

 private:
  using Feature = ExampleEncoder::Feature;

  /// Longest record that is made from a copy of the one before: the copy must be cheap.
  static constexpr std::size_t kShortRecord = 2048;
  /// Most bytes whose checksums are put off, so that they are still in the first-level cache.
  static constexpr std::size_t kRunBytes = 16 << 10;
  /// Shortest run of values that is checked while it is copied. A record with one is longer than
  /// kShortRecord.
  static constexpr std::size_t kLongRun = 4 << 10;
  static constexpr std::size_t kAbsent = SIZE_MAX;
  static constexpr std::size_t kKindless = SIZE_MAX - 1;

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

  static std::uint64_t int64_at(const ColumnView& view, std::size_t i) {
    return load64(view.values.data() + 8 * i);
  }

  static Bytes string_at(const ColumnView& view, std::size_t i) {
    const auto begin = static_cast<std::size_t>(view.byte_offsets[i]);
    return view.values.subspan(begin, static_cast<std::size_t>(view.byte_offsets[i + 1]) - begin);
  }

  std::pair<std::size_t, std::size_t> steps_of(const Feature& feature, std::size_t row) const {
    const auto offsets = view_of(feature).step_offsets;
    return {static_cast<std::size_t>(offsets[row]), static_cast<std::size_t>(offsets[row + 1])};
  }

  /// Collect everything that shapes the record of `row`: for each feature kAbsent, or the number of
  /// its steps where it is a feature list and then the sizes of its lists.
  void gather(std::size_t row) {
    for (const Feature& feature : encoder_.features_) {
      if (!present(feature, row)) {
        sizes_.push_back(kAbsent);
      } else if (feature.spec.place == Place::context) {
        gather_list(feature, row);
      } else {
        const auto [first, last] = steps_of(feature, row);
        sizes_.push_back(last - first);
        for (std::size_t step = first; step < last; ++step) gather_step(feature, step);
      }
    }
  }

  void gather_step(const Feature& feature, std::size_t step) {
    const Bytes with_kind = view_of(feature).step_present;
    if (with_kind.empty() || with_kind[step] != 0) return gather_list(feature, step);
    if (feature.spec.kind == Kind::bytes) sizes_.push_back(0);
    sizes_.push_back(kKindless);
  }

  /// Collect the bytes inside the list message of item `i`, without its tag and length; before
  /// it, for byte strings, their number and the size of each.
  void gather_list(const Feature& feature, std::size_t i) {
    const ColumnView& view = view_of(feature);
    const auto [first, last] = values_of(view, i);
    std::size_t size = 0;
    if (feature.spec.kind == Kind::floats) {
      size = 4 * (last - first);
    } else if (feature.spec.kind == Kind::int64s) {
      for (std::size_t k = first; k < last; ++k) size += wire::varint_size(int64_at(view, k));
    } else if (feature.spec.kind == Kind::bytes) {
      sizes_.push_back(last - first);
      for (std::size_t k = first; k < last; ++k) {
        sizes_.push_back(string_at(view, k).size());
        size += field_size(sizes_.back());
      }
    }
    sizes_.push_back(size);
  }

  /// Step over the sizes of one list and return the last: that of the whole, or kKindless.
  std::size_t take_size(const Feature& feature) {
    if (feature.spec.kind == Kind::bytes) next_size_ += 1 + *next_size_;
    return *next_size_++;
  }

  /// Bytes of the list message that holds `size` bytes of values.
  static std::size_t list_message(const Feature& feature, std::size_t size) {
    return feature.spec.kind == Kind::bytes || size == 0 ? size : field_size(size);
  }

  /// Bytes of the feature message around that list; one without a kind is empty.
  static std::size_t feature_size(const Feature& feature, std::size_t size) {
    if (feature.spec.kind == Kind::none || size == kKindless) return 0;
    return field_size(list_message(feature, size));
  }

  /// Find the bytes of a map of features from the sizes gathered; keeps those of feature lists.
  std::size_t map_size(std::size_t begin, std::size_t end) {
    std::size_t size = 0;
    for (std::size_t f = begin; f < end; ++f) {
      const Feature& feature = encoder_.features_[f];
      if (*next_size_ == kAbsent) {
        ++next_size_;
        continue;
      }
      std::size_t value = 0;
      if (feature.spec.place == Place::context) {
        value = feature_size(feature, take_size(feature));
      } else {
        for (std::size_t steps = *next_size_++; steps > 0; --steps) {
          value += field_size(feature_size(feature, take_size(feature)));
        }
        list_sizes_.push_back(value);
      }
      size += field_size(entry_size(feature, value));
    }
    return size;
  }

  static std::size_t entry_size(const Feature& feature, std::size_t value) {
    return feature.prefix_size + wire::varint_size(value) + value;
  }

  std::uint8_t* extend(std::size_t size) {
    stride_ = size;
    out_.data.reserve_more(size + kSlack);
    return out_.data.extend(size);
  }

  void write_again(std::size_t row) {
    if (run_ * stride_ >= kRunBytes) finish();
    std::uint8_t* const record = extend(stride_);
    std::memcpy(record, record - stride_, stride_ - kFooterSize);
    fill(row, record);
    ++run_;
  }

  void write_fresh(std::size_t row) {
    finish();
    list_sizes_.clear();
    places_.clear();
    next_size_ = sizes_.data();
    const std::size_t context = map_size(0, encoder_.contexts_);
    const std::size_t lists = map_size(encoder_.contexts_, encoder_.features_.size());
    const std::size_t payload =
        (context > 0 ? field_size(context) : 0) + (lists > 0 ? field_size(lists) : 0);
    record_ = extend(payload + kFrameSize);
    write_header(record_, payload);
    next_size_ = sizes_.data();
    next_list_ = list_sizes_.data();
    std::uint8_t* at = record_ + kHeaderSize;
    crc_ = 0;
    checked_ = at;
    if (context > 0) at = write_field_header(at, kFirst, context);
    at = write_map(at, row, 0, encoder_.contexts_);
    if (lists > 0) at = write_field_header(at, kSecond, lists);
    at = write_map(at, row, encoder_.contexts_, encoder_.features_.size());
    if (checked_ == record_ + kHeaderSize) {
      ++run_;
    } else {
      store32(at, mask_crc(crc32c({checked_, at}, crc_)));
    }
  }

  std::uint8_t* write_map(std::uint8_t* at, std::size_t row, std::size_t begin, std::size_t end) {
    for (std::size_t f = begin; f < end; ++f) {
      const Feature& feature = encoder_.features_[f];
      if (!present(feature, row)) {
        ++next_size_;
      } else if (feature.spec.place == Place::context) {
        at = write_context(at, feature, row);
      } else {
        at = write_list(at, feature, row);
      }
    }
    return at;
  }

  static std::uint8_t* write_entry(std::uint8_t* at, const Feature& feature, std::size_t value) {
    at = write_field_header(at, kFirst, entry_size(feature, value));
    copy_padded(at, feature.prefix.data(), feature.prefix_size);
    return wire::write_varint(at + feature.prefix_size, value);
  }

  std::uint8_t* write_context(std::uint8_t* at, const Feature& feature, std::size_t row) {
    const std::size_t size = take_size(feature);
    at = write_entry(at, feature, feature_size(feature, size));
    return write_feature(at, feature, row, size);
  }

  std::uint8_t* write_list(std::uint8_t* at, const Feature& feature, std::size_t row) {
    const auto [first, last] = steps_of(feature, row);
    at = write_entry(at, feature, *next_list_++);
    ++next_size_;
    for (std::size_t step = first; step < last; ++step) {
      const std::size_t size = take_size(feature);
      at = write_field_header(at, kFirst, feature_size(feature, size));
      at = write_feature(at, feature, step, size);
    }
    return at;
  }

  std::uint8_t* write_feature(std::uint8_t* at, const Feature& feature, std::size_t item,
                              std::size_t size) {
    if (feature.spec.kind == Kind::none || size == kKindless) {
      if (feature.spec.kind != Kind::bytes) remember(at);
      return at;
    }
    const auto kind = static_cast<std::uint8_t>(feature.spec.kind);
    at = write_field_header(at, static_cast<std::uint8_t>(kind << 3 | wire::kLength),
                            list_message(feature, size));
    if (feature.spec.kind == Kind::bytes) return write_strings(at, view_of(feature), item);
    if (size > 0) at = write_field_header(at, kFirst, size);
    remember(at);
    return write_numbers(at, feature, item);
  }

  void remember(std::uint8_t* at) { places_.push_back(static_cast<std::size_t>(at - record_)); }

  std::uint8_t* write_numbers(std::uint8_t* at, const Feature& feature, std::size_t item) {
    const ColumnView& view = view_of(feature);
    const auto [first, last] = values_of(view, item);
    if (feature.spec.kind == Kind::int64s) {
      for (std::size_t k = first; k < last; ++k) at = wire::write_varint(at, int64_at(view, k));
      return at;
    }
    const std::uint8_t* from = view.values.data() + 4 * first;
    if (last - first != 1) return write_run(at, {from, 4 * (last - first)});
    store32(at, load32(from));
    return at + 4;
  }

  std::uint8_t* write_strings(std::uint8_t* at, const ColumnView& view, std::size_t item) {
    const auto [first, last] = values_of(view, item);
    for (std::size_t k = first; k < last; ++k) {
      const Bytes string = string_at(view, k);
      at = write_field_header(at, kFirst, string.size());
      remember(at);
      at = write_run(at, string);
    }
    return at;
  }

  /// Copy `run` to `at`; a long one is checked on the way, which saves a pass over the memory.
  std::uint8_t* write_run(std::uint8_t* at, Bytes run) {
    if (run.size() >= kLongRun) {
      crc_ = crc32c({checked_, at}, crc_);
      crc_ = copy_with_crc32c(at, run, crc_);
      checked_ = at + run.size();
    } else if (!run.empty()) {
      std::memcpy(at, run.data(), run.size());
    }
    return at + run.size();
  }

  /// Put the values of `row` into `record`, a copy of a record of the same layout.
  void fill(std::size_t row, std::uint8_t* record) {
    const std::size_t* place = places_.data();
    for (const Feature& feature : encoder_.features_) {
      if (!present(feature, row)) continue;
      if (feature.spec.place == Place::context) {
        fill_item(feature, row, record, place);
        continue;
      }
      const auto [first, last] = steps_of(feature, row);
      for (std::size_t step = first; step < last; ++step) fill_item(feature, step, record, place);
    }
  }

  void fill_item(const Feature& feature, std::size_t item, std::uint8_t* record,
                 const std::size_t*& place) {
    if (feature.spec.kind != Kind::bytes) {
      write_numbers(record + *place++, feature, item);
      return;
    }
    const ColumnView& view = view_of(feature);
    const auto [first, last] = values_of(view, item);
    for (std::size_t k = first; k < last; ++k) {
      const Bytes string = string_at(view, k);
      if (!string.empty()) std::memcpy(record + *place, string.data(), string.size());
      ++place;
    }
  }

  const ExampleEncoder& encoder_;
  std::span<const ColumnView> columns_;
  Encoded& out_;
  std::vector<std::size_t> sizes_, last_sizes_;  // what shapes the record, in writing order
  std::vector<std::size_t> list_sizes_;          // bytes of each FeatureList message
  std::vector<std::size_t> places_;              // where values stand in the last fresh record
  const std::size_t* next_size_ = nullptr;
  const std::size_t* next_list_ = nullptr;
  std::uint8_t* record_ = nullptr;
  std::uint32_t crc_ = 0;  // of the payload in hand up to `checked_`
  const std::uint8_t* checked_ = nullptr;
  std::size_t run_ = 0;     // records at the end whose checksums are still to come
  std::size_t stride_ = 0;  // bytes of each of them
};

ExampleEncoder::ExampleEncoder(const std::vector<FeatureSpec>& features, bool sequence, bool sort) {
  for (std::size_t i = 0; i < features.size(); ++i) {
    const FeatureSpec& spec = features[i];
    if (spec.kind > Kind::int64s) {
      misfit(spec, "the kind must be 0 (none), 1 (bytes), 2 (float) or 3 (int64)");
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

std::size_t ExampleEncoder::likely_size(std::size_t rows,
                                        std::span<const ColumnView> columns) const {
  std::size_t size = rows * kFrameSize;
  for (const Feature& feature : features_) {
    // Most integers are small. What is wrong here only costs another allocation.
    const std::size_t used = used_bytes(feature.spec, columns[feature.column], rows);
    size +=
        rows * (feature.prefix_size + 12) + (feature.spec.kind == Kind::int64s ? used / 2 : used);
  }
  return size;
}

Encoded ExampleEncoder::encode(std::size_t rows, std::span<const ColumnView> columns) const {
  if (columns.size() != features_.size()) {
    throw std::invalid_argument("one column a feature is needed");
  }
  for (const Feature& feature : features_) check_view(feature.spec, columns[feature.column], rows);
  Encoded out;
  out.ends.reserve_more(rows);
  out.data.reserve_more(likely_size(rows, columns));
  RowWriter writer(*this, columns, out);
  for (std::size_t row = 0; row < rows; ++row) writer.write(row);
  writer.finish();
  return out;
}

}  // namespace tfrio
