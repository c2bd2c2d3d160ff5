// What is in these payloads: every feature with its kinds and lengths, and which message it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tfrio/feature.hpp"
#include "tfrio/framing.hpp"
#include "tfrio/locator.hpp"

namespace tfrio {

/// What a survey found out about one feature. Records are counted from the survey's start.
struct FeatureSurvey {
  std::string name{};
  Place place = Place::context;
  std::int64_t present = 0;                       // records in which the feature stands
  std::int64_t kindless = 0;                      // values (records, or steps) without a kind
  std::int64_t empty = 0;                         // values with a kind and no values in it
  std::int64_t kinds[4] = {};                     // by kind number: records that carry it
  std::int64_t first_record[4] = {};              // by kind number: the first of them
  std::int64_t min_length = -1, max_length = -1;  // values in one list; -1 before the first
  std::int64_t min_steps = -1, max_steps = -1;    // steps of one feature list
};

/// Gathers the features of framed records. Every value is checked, so a record that comes through
/// decodes. One object serves one thread at a time.
class SchemaScanner {
 public:
  /// Survey SequenceExamples or Examples; `any_utf8` accepts names that are not UTF-8.
  SchemaScanner(bool sequence, bool any_utf8);

  /// Survey the framed records of `data` from `start`, as ExampleDecoder::feed walks them.
  Progress feed(Bytes data, std::size_t start, const FrameOptions& options);

  /// Return what is known, in the order in which features were first seen.
  const std::vector<FeatureSurvey>& result() const { return surveys_; }

 private:
  bool add_payload(Bytes payload, Fault& fault);
  bool check(Bytes payload, Fault& fault);
  bool add_value(Bytes feature);
  bool add_list(Bytes list);
  bool wire_fault(Fault& fault, int number, std::int64_t step) const;

  struct Item {
    Kind kind;
    std::int64_t length;
  };
  void count(FeatureSurvey& survey, std::size_t first, std::size_t last);

  Locator locator_;
  FeatureValues values_;
  wire::Error error_;
  std::vector<Item> items_;        // of the record in hand: every list of values
  std::vector<std::size_t> ends_;  // of the record in hand: where each feature's items end
  std::vector<FeatureSurvey> surveys_;
  std::int64_t records_ = 0;
};

/// Which message a payload is.
enum class PayloadClass : std::uint8_t { example, sequence, other };

/// Tell which message `payload` is by its content. An Example has well-formed features, a
/// SequenceExample has feature lists besides; fields that tf.train never had are stepped over, as
/// protobuf does, but do not make a message alone. An empty payload is an Example without features.
/// Names need not be UTF-8: decoding says so more clearly.
PayloadClass classify(Bytes payload);

}  // namespace tfrio
