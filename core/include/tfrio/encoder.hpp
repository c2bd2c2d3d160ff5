// Columns to framed tf.train.Examples or SequenceExamples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tfrio/buffer.hpp"
#include "tfrio/feature.hpp"

namespace tfrio {

/// A column to write; the arrays are those of ColumnArrays. Empty spans stand for arrays that are
/// not in use; an empty `present` means that the feature is present in every row, an empty
/// `step_present` that every step carries its kind.
struct ColumnView {
  Bytes values{};  // float32, int64 or bytes, flat
  std::span<const std::int64_t> byte_offsets{};
  std::span<const std::int64_t> value_offsets{};
  std::span<const std::int64_t> step_offsets{};
  std::span<const std::uint8_t> present{};
  std::int64_t count = -1;  // values in each row (or step), -1: see value_offsets
  Bytes step_present{};     // one byte a step, 0 where it carries no kind, nor values
};

/// Framed records, and the offset of the end of each in them.
struct Encoded {
  Buffer<std::uint8_t> data;
  Buffer<std::int64_t> ends;
};

/// Encodes rows of columns. Equal rows give equal bytes: names sorted bytewise (or in the order
/// given, without `sort`), lists packed, shortest varints. A row without any feature becomes an
/// empty payload.
class ExampleEncoder {
 public:
  /// Write `features`, each name and place once; the `count` of a spec is not used. Throws
  /// std::invalid_argument for a list that makes no sense.
  ExampleEncoder(const std::vector<FeatureSpec>& features, bool sequence, bool sort);

  /// Encode `rows` rows of `columns`, which are in the order of the features. Throws
  /// std::invalid_argument, with the feature's name, where arrays do not fit each other; nothing
  /// is read outside them.
  Encoded encode(std::size_t rows, std::span<const ColumnView> columns) const;

  /// Number of features.
  std::size_t size() const { return features_.size(); }

 private:
  struct Feature {
    std::size_t column;  // where its column stands in the list
    FeatureSpec spec;
    std::vector<std::uint8_t> prefix;  // of a map entry, after its length: key and value tag
    std::size_t prefix_size;           // `prefix` itself is padded
  };

  std::size_t likely_size(std::size_t rows, std::span<const ColumnView> columns) const;

  friend class RowWriter;
  std::vector<Feature> features_;  // contexts first, then feature lists, each in writing order
  std::size_t contexts_ = 0;
};

}  // namespace tfrio
