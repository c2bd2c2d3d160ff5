// Surveying payloads.
#include "tfrio/survey.hpp"

#include <algorithm>

namespace tfrio {
namespace {

void widen(std::int64_t& low, std::int64_t& high, std::int64_t value) {
  low = low < 0 ? value : std::min(low, value);
  high = std::max(high, value);
}

}  // namespace

SchemaScanner::SchemaScanner(bool sequence, bool any_utf8)
    : locator_({.sequence = sequence, .any_utf8 = any_utf8, .unlisted = Unlisted::learn}) {}

bool SchemaScanner::wire_fault(Fault& fault, int number, std::int64_t step) const {
  fault.code = FaultCode::wire;
  fault.feature = locator_.name(number);
  fault.step = step;
  fault.at = locator_.offset_of(error_.at);
  fault.reason = error_.reason;
  return false;
}

bool SchemaScanner::add_value(Bytes feature) {
  if (!parse_feature(feature, values_, error_)) return false;
  items_.push_back({values_.kind, static_cast<std::int64_t>(values_.count)});
  return true;
}

bool SchemaScanner::check(Bytes payload, Fault& fault) {
  items_.clear();
  ends_.clear();
  error_ = {};
  if (!locator_.locate(payload, fault)) return false;
  for (int number = 0; number < static_cast<int>(locator_.size()); ++number) {
    const std::size_t first = items_.size();
    if (locator_.present(number)) {
      const Bytes value = locator_.value(number);
      const bool is_list = locator_.place(number) == Place::list;
      const auto add = [this](Bytes feature) { return add_value(feature); };
      if (is_list ? !for_each_step(value, error_, add) : !add_value(value)) {
        return wire_fault(fault, number,
                          is_list ? static_cast<std::int64_t>(items_.size() - first) : -1);
      }
    }
    ends_.push_back(items_.size());
  }
  return true;
}

void SchemaScanner::count(FeatureSurvey& survey, std::size_t first, std::size_t last) {
  ++survey.present;
  if (survey.place == Place::list) {
    widen(survey.min_steps, survey.max_steps, static_cast<std::int64_t>(last - first));
  }
  bool seen[4] = {};
  for (std::size_t i = first; i < last; ++i) {
    const Item& item = items_[i];
    if (item.kind == Kind::none) {
      ++survey.kindless;
      continue;
    }
    survey.empty += item.length == 0;
    widen(survey.min_length, survey.max_length, item.length);
    seen[static_cast<int>(item.kind)] = true;
  }
  for (int kind = 1; kind < 4; ++kind) {
    if (!seen[kind]) continue;
    if (survey.kinds[kind]++ == 0) survey.first_record[kind] = records_;
  }
}

bool SchemaScanner::add_payload(Bytes payload, Fault& fault) {
  if (!check(payload, fault)) return false;
  while (surveys_.size() < locator_.size()) {
    const int number = static_cast<int>(surveys_.size());
    surveys_.push_back({.name = locator_.name(number), .place = locator_.place(number)});
  }
  for (std::size_t i = 0, first = 0; i < ends_.size(); first = ends_[i++]) {
    if (locator_.present(static_cast<int>(i))) count(surveys_[i], first, ends_[i]);
  }
  ++records_;
  return true;
}

Progress SchemaScanner::feed(Bytes data, std::size_t start, const FrameOptions& options) {
  return walk_records(data, start, options, options.max_records,
                      [this](Bytes payload, Fault& fault) { return add_payload(payload, fault); });
}

namespace {

/// What was met in a message: entries of a map, and fields that tf.train never had.
struct Met {
  std::size_t entries = 0;
  bool strange = false;

  /// Any bytes may read as fields that nobody knows; a message of these alone is another one.
  bool likely() const { return entries > 0 || !strange; }
};

enum class Verdict { fine, unknown, malformed };

Verdict fine_if(bool fine) {
  return fine ? Verdict::fine : Verdict::malformed;
}

/// Call `visit(field number, bytes)` for each length-delimited field of `message` and step over
/// the others, as protobuf does; false where the message, or what `visit` sees, is malformed.
template <class Visit>
bool walk_fields(Bytes message, Met& met, Visit visit) {
  wire::Error error;
  wire::Cursor cursor(message, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    if (!cursor.tag(tag)) return false;
    Verdict verdict = Verdict::unknown;
    if ((tag & 7) != wire::kLength) {
      if (!cursor.skip(tag)) return false;
    } else {
      Bytes bytes;
      if (!cursor.bytes(bytes)) return false;
      verdict = visit(tag >> 3, bytes);
    }
    if (verdict == Verdict::malformed) return false;
    met.strange = met.strange || verdict == Verdict::unknown;
  }
  return true;
}

bool is_feature(Bytes bytes, Met& met) {
  FeatureValues values;
  wire::Error error;
  const auto known = [](std::uint32_t field, Bytes) {
    return field <= 3 ? Verdict::fine : Verdict::unknown;
  };
  return walk_fields(bytes, met, known) && parse_feature(bytes, values, error);
}

bool is_feature_list(Bytes bytes, Met& met) {
  return walk_fields(bytes, met, [&](std::uint32_t field, Bytes feature) {
    return field == 1 ? fine_if(is_feature(feature, met)) : Verdict::unknown;
  });
}

/// True where `bytes` is a map from names to what `is_value` accepts.
template <class IsValue>
bool is_map(Bytes bytes, Met& met, IsValue is_value) {
  const auto part = [&](std::uint32_t field, Bytes content) {
    met.entries += field <= 2;
    if (field == 2) return fine_if(is_value(content, met));
    return field == 1 ? Verdict::fine : Verdict::unknown;
  };
  return walk_fields(bytes, met, [&](std::uint32_t field, Bytes entry) {
    return field == 1 ? fine_if(walk_fields(entry, met, part)) : Verdict::unknown;
  });
}

}  // namespace

PayloadClass classify(Bytes payload) {
  bool features = false, lists = false, strange = false;
  wire::Error error;
  wire::Cursor cursor(payload, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    Bytes bytes;
    if (!cursor.tag(tag)) return PayloadClass::other;
    if (tag == wire::tag(1, wire::kLength)) {
      Met met;
      if (!cursor.bytes(bytes) || !is_map(bytes, met, is_feature) || !met.likely()) {
        return PayloadClass::other;
      }
      features = true;
    } else if (tag == wire::tag(2, wire::kLength)) {
      if (!cursor.bytes(bytes)) return PayloadClass::other;
      Met met;
      const bool is_lists = is_map(bytes, met, is_feature_list) && met.likely();
      (is_lists ? lists : strange) = true;
    } else {
      if (!cursor.skip(tag)) return PayloadClass::other;
      strange = true;
    }
  }
  if (lists && (features || !strange)) return PayloadClass::sequence;
  return features || !strange ? PayloadClass::example : PayloadClass::other;
}

}  // namespace tfrio
