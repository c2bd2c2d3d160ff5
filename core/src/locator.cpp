// Finding the features of a payload.
#include "tfrio/locator.hpp"

namespace tfrio {
namespace {

constexpr std::uint32_t kFirst = wire::tag(1, wire::kLength);   // features, context; entry; key
constexpr std::uint32_t kSecond = wire::tag(2, wire::kLength);  // feature_lists; value

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

int Locator::list(std::string_view name, Place place) {
  const int number = static_cast<int>(slots_.size());
  tables_[static_cast<int>(place)].add(name, number);
  slots_.push_back({std::string(name), place});
  values_.emplace_back();
  odd_names_ = odd_names_ || !wire::is_utf8(bytes_of(name));
  return number;
}

int Locator::find(std::string_view name, Place place) const {
  return tables_[static_cast<int>(place)].find(bytes_of(name));
}

bool Locator::locate(Bytes payload, Fault& fault) {
  ++stamp_;
  payload_ = payload;
  unlisted_.clear();
  if (!merged_.empty()) merged_.clear();
  error_ = {};
  return walk_payload(payload, fault);
}

std::int64_t Locator::offset_of(const std::uint8_t* at) const {
  const std::uint8_t* begin = payload_.data();
  // Compared as numbers: `at` may lie in another allocation.
  const auto inside =
      reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(begin);
  if (inside <= payload_.size()) return static_cast<std::int64_t>(inside);
  return merged_entry_ == nullptr ? 0 : merged_entry_ - begin;
}

bool Locator::wire_fault(Fault& fault) const {
  fault.code = FaultCode::wire;
  fault.at = offset_of(error_.at);
  fault.reason = error_.reason;
  return false;
}

bool Locator::walk_payload(Bytes payload, Fault& fault) {
  wire::Cursor cursor(payload, error_);
  while (!cursor.done()) {
    std::uint32_t tag;
    Bytes map;
    if (!cursor.tag(tag)) return wire_fault(fault);
    if (tag == kFirst) {
      if (!cursor.bytes(map)) return wire_fault(fault);
      if (!walk_map(map, Place::context, fault)) return false;
    } else if (tag == kSecond && options_.sequence) {
      if (!cursor.bytes(map)) return wire_fault(fault);
      if (!walk_map(map, Place::list, fault)) return false;
    } else if (!cursor.skip(tag)) {
      return wire_fault(fault);
    }
  }
  return true;
}

bool Locator::walk_map(Bytes map, Place place, Fault& fault) {
  wire::Cursor cursor(map, error_);
  while (!cursor.done()) {
    std::uint32_t tag;
    Bytes entry;
    if (!cursor.tag(tag)) return wire_fault(fault);
    if (tag == kFirst) {
      if (!cursor.bytes(entry)) return wire_fault(fault);
      if (!walk_entry(entry, place, fault)) return false;
    } else if (!cursor.skip(tag)) {
      return wire_fault(fault);
    }
  }
  return true;
}

bool Locator::walk_entry(Bytes entry, Place place, Fault& fault) {
  // The ordinary entry is a key and a value and nothing else.
  if (entry.size() < 4 || entry[0] != kFirst) return walk_odd_entry(entry, place, fault);
  const std::size_t size = entry[1], rest = entry.size() - 2;
  if (size >= 0x80 || size + 2 > rest || entry[2 + size] != kSecond) {
    return walk_odd_entry(entry, place, fault);
  }
  wire::Error ignored;
  wire::Cursor cursor(entry.subspan(3 + size), ignored);
  Bytes value;
  if (!cursor.bytes(value) || !cursor.done()) return walk_odd_entry(entry, place, fault);
  return store(entry.subspan(2, size), value, place, fault);
}

bool Locator::walk_odd_entry(Bytes entry, Place place, Fault& fault) {
  wire::Cursor cursor(entry, error_);
  Bytes key;
  std::vector<Bytes> values;
  while (!cursor.done()) {
    std::uint32_t tag;
    Bytes field;
    if (!cursor.tag(tag)) return wire_fault(fault);
    if (tag != kFirst && tag != kSecond) {
      if (!cursor.skip(tag)) return wire_fault(fault);
      continue;
    }
    if (!cursor.bytes(field)) return wire_fault(fault);
    if (tag == kSecond) {
      values.push_back(field);
    } else {
      key = field;
      if (!check_name(key, fault)) return false;
    }
  }
  merged_entry_ = entry.data();
  return store(key, values.size() == 1 ? values[0] : merge(values), place, fault);
}

Bytes Locator::merge(const std::vector<Bytes>& values) {
  // Messages put one after the other are the merged message; that is protobuf's own rule.
  std::vector<std::uint8_t>& all = merged_.emplace_back();
  for (Bytes value : values) all.insert(all.end(), value.begin(), value.end());
  return all;
}

bool Locator::store(Bytes key, Bytes value, Place place, Fault& fault) {
  const int number = tables_[static_cast<int>(place)].find(key);
  if (number < 0) return store_unlisted(key, value, place, fault);
  if (odd_names_ && !check_name(key, fault)) return false;
  Value& slot = values_[static_cast<std::size_t>(number)];
  if (slot.stamp == stamp_ && !check_replaced(number, fault)) return false;
  slot = {value, stamp_};
  return true;
}

bool Locator::store_unlisted(Bytes key, Bytes value, Place place, Fault& fault) {
  if (!check_name(key, fault)) return false;
  if (options_.unlisted == Unlisted::skip) {
    unlisted_.push_back(value);
    return true;
  }
  if (options_.unlisted == Unlisted::refuse) {
    fault.code = FaultCode::unknown;
    fault.feature = text_of(key);
    return false;
  }
  const int number = list(text_of(key), place);
  values_[static_cast<std::size_t>(number)] = {value, stamp_};
  return true;
}

bool Locator::check_name(Bytes key, Fault& fault) {
  if (options_.any_utf8 || wire::is_utf8(key)) return true;
  fault.code = FaultCode::utf8;
  fault.feature = text_of(key);
  fault.at = offset_of(key.data());
  fault.reason = "a feature name is not UTF-8";
  return false;
}

bool Locator::check_replaced(int number, Fault& fault) {
  // Rare, so there is time to refuse what protobuf refuses: a malformed value nobody will read.
  const bool is_list = place(number) == Place::list;
  std::int64_t step = 0;
  const auto well_formed = [&](Bytes feature) {
    if (!parse_feature(feature, scratch_, error_)) return false;
    ++step;
    return true;
  };
  if (is_list ? for_each_step(value(number), error_, well_formed) : well_formed(value(number))) {
    return true;
  }
  fault.feature = name(number);
  if (is_list) fault.step = step;
  return wire_fault(fault);
}

}  // namespace tfrio
