// Finding the features of an Example or SequenceExample before any value is decoded.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tfrio/bytes.hpp"
#include "tfrio/fault.hpp"
#include "tfrio/feature.hpp"
#include "tfrio/keys.hpp"
#include "tfrio/wire.hpp"

namespace tfrio {

/// What to do about a feature that is not listed.
enum class Unlisted : std::uint8_t {
  skip,    // step over it, without looking into its values
  refuse,  // a fault
  learn,   // list it from now on
};

/// How payloads are read.
struct PayloadOptions {
  bool sequence = false;  // payloads are SequenceExamples, not Examples
  bool any_utf8 = false;  // accept feature names that are not UTF-8
  Unlisted unlisted = Unlisted::skip;
};

/// Walks a payload and notes where the message of each listed feature lies, so that protobuf's
/// rules hold whatever the order: keys in any order, value before key, the last of two equal keys
/// wins, a missing key is "", several values of one entry are merged. Nothing is allocated while
/// the payload is an ordinary one.
class Locator {
 public:
  explicit Locator(const PayloadOptions& options) : options_(options) {}

  const PayloadOptions& options() const { return options_; }

  /// List a feature and return its number, counting over both places from 0.
  int list(std::string_view name, Place place);

  /// Return the number of a listed feature, or -1.
  int find(std::string_view name, Place place) const;
  int find(Bytes name, Place place) const { return tables_[static_cast<int>(place)].find(name); }

  /// Return whether some listed name is not UTF-8.
  bool has_odd_names() const { return odd_names_; }

  /// Number of listed features.
  std::size_t size() const { return values_.size(); }
  const std::string& name(int number) const {
    return slots_[static_cast<std::size_t>(number)].name;
  }
  Place place(int number) const { return slots_[static_cast<std::size_t>(number)].place; }

  /// Find all features of `payload`; false, with `fault` filled, where it is malformed.
  bool locate(Bytes payload, Fault& fault);

  /// Return whether the feature stands in the payload last located.
  bool present(int number) const {
    return values_[static_cast<std::size_t>(number)].stamp == stamp_;
  }

  /// Return its Feature (or FeatureList) message; only where it is present. The bytes lie in the
  /// payload, or, for values merged from several fields, in memory kept until the next locate().
  Bytes value(int number) const { return values_[static_cast<std::size_t>(number)].bytes; }

  /// Return the value messages of unlisted features of the payload last located.
  const std::vector<Bytes>& unlisted_values() const { return unlisted_; }

  /// Return whether a value of the payload last located was merged from several fields.
  bool merged() const { return !merged_.empty(); }

  /// Return the offset of `at` within the payload last located; where `at` lies in merged memory,
  /// the offset of the entry that was merged last.
  std::int64_t offset_of(const std::uint8_t* at) const;

 private:
  struct Slot {
    std::string name;
    Place place;
  };
  struct Value {
    Bytes bytes;
    std::uint64_t stamp = 0;
  };

  bool walk_payload(Bytes payload, Fault& fault);
  bool walk_map(Bytes map, Place place, Fault& fault);
  bool walk_entry(Bytes entry, Place place, Fault& fault);
  bool walk_odd_entry(Bytes entry, Place place, Fault& fault);
  bool store(Bytes key, Bytes value, Place place, Fault& fault);
  bool store_unlisted(Bytes key, Bytes value, Place place, Fault& fault);
  bool check_replaced(int number, Fault& fault);
  bool check_name(Bytes key, Fault& fault);
  Bytes merge(const std::vector<Bytes>& values);
  bool wire_fault(Fault& fault) const;

  PayloadOptions options_;
  KeyTable tables_[2];  // by place
  std::vector<Slot> slots_;
  std::vector<Value> values_;
  std::vector<Bytes> unlisted_;
  std::deque<std::vector<std::uint8_t>> merged_;
  FeatureValues scratch_;
  wire::Error error_;
  Bytes payload_;
  const std::uint8_t* merged_entry_ = nullptr;
  std::uint64_t stamp_ = 0;
  bool odd_names_ = false;  // a listed name is not UTF-8
};

}  // namespace tfrio
