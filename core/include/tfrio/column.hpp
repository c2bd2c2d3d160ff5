// One output column: the values of one feature over many records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tfrio/buffer.hpp"
#include "tfrio/bytes.hpp"
#include "tfrio/fault.hpp"
#include "tfrio/feature.hpp"

namespace tfrio {

/// The arrays of a column. Which offsets are in use follows from the feature:
///
///   step_offsets   feature lists: rows + 1 offsets of the rows into the steps
///   value_offsets  any number of values: offsets of each list (row or step) into the values
///   byte_offsets   bytes: offsets of the values into `values`, one more than there are values
///
///   kindless       feature lists: the steps that carry no kind, ascending; few files have any
///
/// `values` holds float32, int64 or bytes; `present` one byte a row, 0 where the feature is absent.
struct ColumnArrays {
  Buffer<std::uint8_t> values;
  Buffer<std::int64_t> byte_offsets;
  Buffer<std::int64_t> value_offsets;
  Buffer<std::int64_t> step_offsets;
  Buffer<std::uint8_t> present;
  Buffer<std::int64_t> kindless;
};

/// Memory that decoding a feature needs for a moment, and the error it may end with.
struct Scratch {
  FeatureValues values;
  wire::Error error;
};

/// Where the values of one feature lie in a payload: the pieces of each list, list by list. A row
/// of an Example or a context is one list, a row of a feature list one for each step.
struct RowShape {
  struct Piece {
    std::size_t offset, size;
  };
  struct Item {
    std::size_t end;    // number of pieces up to and with this list
    std::size_t count;  // number of values
    bool kindless;      // a Feature that carries no kind
  };
  bool present = false;
  std::vector<Piece> pieces;
  std::vector<Item> items;
};

/// Gathers one feature. A row that faults may leave parts behind; `truncate` removes them.
class Column {
 public:
  explicit Column(const FeatureSpec& spec);

  const FeatureSpec& spec() const { return spec_; }
  bool ragged() const { return spec_.count < 0; }
  bool is_list() const { return spec_.place == Place::list; }
  bool is_bytes() const { return spec_.kind == Kind::bytes; }

  /// Make the column ready for rows; harmless where it is.
  void begin();

  /// Add a row without the feature: zeros or empty byte strings where the count is fixed.
  void add_absent();

  /// Add a row from a Feature message. False, with `fault` filled, where it does not fit; for
  /// malformed bytes `scratch.error` says where.
  bool add_feature(Bytes feature, Scratch& scratch, Fault& fault);

  /// Add a row from a FeatureList message, in the same way.
  bool add_feature_list(Bytes list, Scratch& scratch, Fault& fault);

  /// Add a row from a Feature or FeatureList message of the ordinary form. False where it is of
  /// another form or does not fit: only add_feature can judge that, and parts may be left behind.
  bool add_ordinary_row(Bytes value);

  /// Return how many bytes stand before the values of a Feature message of the ordinary form, where
  /// they settle how it parses; else 0.
  std::size_t ordinary_head() const;

  /// Add a row of which all up to the values is as in a message that was added; only where there is
  /// an ordinary_head(). False where a varint is of another length than it seemed.
  bool add_headed_row(Bytes values);

  /// Add one list of values (a row or a step) taken apart before. Its kind is the column's.
  /// False, with `fault` filled, where the number of values differs from the count asked for.
  bool add_values(const Bytes* pieces, std::size_t n, std::size_t count, Fault& fault);

  /// End a row whose lists were added with add_values; `steps` of them where the feature
  /// is a feature list.
  void end_row(std::int64_t steps) {
    if (is_list()) arrays_.step_offsets.push_back(arrays_.step_offsets.back() + steps);
    arrays_.present.push_back(1);
  }

  /// Add `n` rows of the same shape, the payload of row r at `first + r * stride`. Return how many
  /// were added: fewer where varints turn out to be of another number, which only the general way
  /// can judge.
  std::size_t add_rows(const std::uint8_t* first, std::size_t stride, std::size_t n,
                       const RowShape& shape, Scratch& scratch);

  /// Return the bytes that a row from the Feature message `feature` would copy as they are, where
  /// they are in one piece and fit; else nothing.
  Bytes run_of(Bytes feature, Scratch& scratch) const;

  /// Begin a row of one piece, floats or one byte string, of `size` bytes; return where to write
  /// them. Only for a feature in an Example or context, and only as close_row or truncate follow.
  std::uint8_t* open_row(std::size_t size) { return arrays_.values.extend(size); }
  void close_row();

  /// Keep only the first `rows` rows.
  void truncate(std::size_t rows);

  /// Write the values into `data` from now on; only for a fixed number of numbers, or bytes, before
  /// the first row. Return how many rows fit; of bytes nobody knows: a row too many throws
  /// OutputFull, and leaves parts behind.
  std::int64_t borrow(std::uint8_t* data, std::size_t size);
  bool borrowed() const { return arrays_.values.borrowed(); }

  /// Return whether rows have a place of their own that is known beforehand.
  bool has_places() const { return !ragged() && !is_bytes() && !is_list() && spec_.count > 0; }

  /// Make room for the values of `n` rows and return it; only where has_places(). They become rows
  /// with append().
  std::uint8_t* open_places(std::size_t n) { return arrays_.values.extend(n * fixed_size()); }

  /// Add all rows of `other`. Where has_places(), `other` wrote its values right after the rows of
  /// this column, into places that open_places() gave.
  void append(const Column& other);

  /// Hand the arrays over; the column is as new.
  ColumnArrays take();

  /// Bytes of one row (or step) of a fixed number of numbers.
  std::size_t fixed_size() const {
    return static_cast<std::size_t>(spec_.count) * value_size(spec_.kind);
  }

  ColumnArrays& arrays() { return arrays_; }
  const ColumnArrays& arrays() const { return arrays_; }

 private:
  bool add_ordinary(Bytes feature);
  bool add_ordinary_list(Bytes list);
  bool add_counted_floats(Bytes feature);
  bool add_any_floats(Bytes feature);
  bool add_int64s(Bytes feature);
  bool add_string(Bytes feature);
  bool add_item(Bytes feature, Scratch& scratch, Fault& fault, bool& kindless);
  void add_packed_rows(const std::uint8_t* first, std::size_t stride, std::size_t n,
                       std::size_t size);
  std::size_t add_scalar_varints(const std::uint8_t* first, std::size_t stride, std::size_t n,
                                 std::size_t size);
  void end_rows(std::size_t n, std::size_t count);
  bool add_shaped_row(const std::uint8_t* payload, const RowShape& shape, Scratch& scratch);
  bool fits(std::size_t count, Fault& fault) const;
  void end_item() {
    if (ragged()) arrays_.value_offsets.push_back(static_cast<std::int64_t>(value_count()));
  }
  void note_kindless(std::size_t step);
  void append_offsets(Buffer<std::int64_t>& to, const Buffer<std::int64_t>& from);
  void put_pieces(const Bytes* pieces, std::size_t n);
  void put_varints(const Bytes* pieces, std::size_t n, std::size_t count);
  std::size_t value_count() const {
    return is_bytes() ? arrays_.byte_offsets.size() - 1
                      : arrays_.values.size() / value_size(spec_.kind);
  }

  FeatureSpec spec_;
  ColumnArrays arrays_;
  std::uint8_t header_[12] = {};  // what an ordinary Feature of `count` floats begins with
  std::size_t header_size_ = 0;   // 0 where there is no such header
  std::size_t sizes_[5] = {};     // of the arrays taken last: a good guess for the next ones
};

}  // namespace tfrio
