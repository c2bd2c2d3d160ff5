// Payloads of the ordinary form in one pass: every entry a name and then its value, no name twice.
// The names may come in any order. Whatever looks different goes the general way, from the start.
#include "tfrio/decoder.hpp"

namespace tfrio {
namespace {

constexpr std::uint8_t kFirst = wire::tag(1, wire::kLength);   // features, context; entry; name
constexpr std::uint8_t kSecond = wire::tag(2, wire::kLength);  // feature lists; value

/// Read a length of up to 4 bytes that lies within the bytes before `end`; false where it does not.
bool take_length(const std::uint8_t*& at, const std::uint8_t* end, std::size_t& length) {
  length = 0;
  for (int shift = 0; at < end && shift < 28; shift += 7) {
    const std::uint8_t byte = *at++;
    length |= static_cast<std::size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return length <= static_cast<std::size_t>(end - at);
  }
  return false;
}

}  // namespace

bool ExampleDecoder::add_ordinary(Bytes payload) {
  if (ordinary_pause_ > 0) {
    --ordinary_pause_;
    return false;
  }
  if (locator_.has_odd_names()) return false;  // the general way judges them
  if (add_ordinary_maps(payload)) {
    ordinary_failures_ = 0;
    return true;
  }
  roll_back();
  // Where the form is never ordinary, hardly try any more.
  ordinary_failures_ = std::min(ordinary_failures_ + 1, 10u);
  if (ordinary_failures_ > 4) ordinary_pause_ = 1u << (ordinary_failures_ - 4);
  return false;
}

bool ExampleDecoder::add_ordinary_maps(Bytes payload) {
  ++ordinary_stamp_;
  std::size_t found = 0;
  const std::uint8_t* at = payload.data();
  const std::uint8_t* const end = at + payload.size();
  while (at < end) {
    const std::uint8_t tag = *at++;
    std::size_t length;
    if (tag != kFirst && (tag != kSecond || !locator_.options().sequence)) return false;
    if (!take_length(at, end, length)) return false;
    const Place place = tag == kFirst ? Place::context : Place::list;
    if (!add_ordinary_map({at, length}, place, found)) return false;
    at += length;
  }
  for (std::size_t i = 0; found < columns_.size(); ++i) {
    if (ordinary_seen_[i] == ordinary_stamp_) continue;
    columns_[i].add_absent();
    ++found;
  }
  ++rows_;
  return true;
}

bool ExampleDecoder::add_ordinary_map(Bytes map, Place place, std::size_t& found) {
  const std::uint8_t* at = map.data();
  const std::uint8_t* const end = at + map.size();
  while (at < end) {
    std::size_t size, length;
    if (place == Place::context) {
      const Bytes short_entry = EntryHeads::short_entry(at, end);
      if (!short_entry.empty() && add_headed_entry(short_entry, found)) {
        at += short_entry.size();
        continue;
      }
    }
    const std::uint8_t* const entry = at;
    if (*at++ != kFirst || !take_length(at, end, size)) return false;
    const std::uint8_t* const stop = at + size;
    if (size < 4 || at[0] != kFirst) return false;
    const std::size_t name_size = at[1];  // read once: a mapped file may change
    if (name_size >= 0x80 || name_size + 3 > size) return false;
    const Bytes name{at + 2, name_size};
    at += 2 + name_size;
    if (*at++ != kSecond || !take_length(at, stop, length) || at + length != stop) return false;
    if (!add_ordinary_entry({entry, stop}, name, {at, length}, place, found)) return false;
    at = stop;
  }
  return true;
}

bool ExampleDecoder::add_headed_entry(Bytes entry, std::size_t& found) {
  const EntryHeads::Head* const head = heads_.find(entry);
  // The same head tells the same length, unless the bytes changed in between.
  if (head == nullptr || entry.size() != 2 + std::size_t{head->bytes[1]}) return false;
  const auto i = static_cast<std::size_t>(head->column);
  return see(i, found) && columns_[i].add_headed_row(entry.subspan(head->size));
}

bool ExampleDecoder::see(std::size_t i, std::size_t& found) {
  if (ordinary_seen_[i] == ordinary_stamp_) return false;
  ordinary_seen_[i] = ordinary_stamp_;
  ++found;
  return true;
}

bool ExampleDecoder::add_ordinary_entry(Bytes entry, Bytes name, Bytes value, Place place,
                                        std::size_t& found) {
  const int number = locator_.find(name, place);
  if (number < 0) {
    // A feature that nobody asked for: nothing but its name is looked at.
    return locator_.options().unlisted == Unlisted::skip &&
           (locator_.options().any_utf8 || wire::is_utf8(name));
  }
  const auto i = static_cast<std::size_t>(number);
  if (!see(i, found) || !columns_[i].add_ordinary_row(value)) return false;
  if (const std::size_t head = place == Place::context ? columns_[i].ordinary_head() : 0) {
    heads_.learn(entry, static_cast<std::size_t>(value.data() - entry.data()) + head, number);
  }
  return true;
}

}  // namespace tfrio
