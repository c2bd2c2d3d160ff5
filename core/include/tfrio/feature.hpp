// One tf.train.Feature: its kind and where its values lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tfrio/bytes.hpp"
#include "tfrio/wire.hpp"

namespace tfrio {

/// Kind of the values: the field number in tf.train.Feature's oneof, 0 where none is set.
enum class Kind : std::uint8_t { none = 0, bytes = 1, floats = 2, int64s = 3 };

/// Return the bytes one value takes in a column: 4, 8, or 1 where values are byte strings.
constexpr std::size_t value_size(Kind kind) {
  return kind == Kind::floats ? 4 : kind == Kind::int64s ? 8 : 1;
}

/// Where a feature is kept.
enum class Place : std::uint8_t {
  context = 0,  // an Example's features, or the context of a SequenceExample
  list = 1,     // the feature lists of a SequenceExample
};

/// A feature that is asked for, or written.
struct FeatureSpec {
  std::string name{};
  Kind kind = Kind::floats;
  std::int64_t count = -1;  // values in every record (or step), -1: any number
  Place place = Place::context;
};

/// The values of one Feature as they lie in the message. Pieces are packed float32s, packed
/// varints, or single byte strings, by kind; put together in order they are all values.
struct FeatureValues {
  Kind kind = Kind::none;
  std::vector<Bytes> pieces;
  std::size_t count = 0;      // number of values
  bool loose_int64s = false;  // some int64 stands alone, its length told by nothing but itself
};

/// Take the Feature message `feature` apart by protobuf's rules: the last kind set wins, the same
/// kind set twice adds up, lists come packed, unpacked or mixed, unknown fields are skipped.
/// Return false, with `error` set, where it is malformed.
bool parse_feature(Bytes feature, FeatureValues& values, wire::Error& error);

/// Call `step(Bytes feature)` for each Feature of the FeatureList message `list`, in order; stop
/// where it returns false. Return false there, or with `error` set where the list is malformed.
template <class Step>
bool for_each_step(Bytes list, wire::Error& error, Step step) {
  constexpr std::uint32_t kFeature = wire::tag(1, wire::kLength);
  wire::Cursor cursor(list, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    if (!cursor.tag(tag)) return false;
    if (tag != kFeature) {
      if (!cursor.skip(tag)) return false;
      continue;
    }
    Bytes feature;
    if (!cursor.bytes(feature) || !step(feature)) return false;
  }
  return true;
}

}  // namespace tfrio
