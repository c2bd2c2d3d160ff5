// The forms in which nearly every writer puts features, taken at once. Each function here either
// adds exactly what the general way would add, or adds nothing and returns false.
#include "tfrio/column.hpp"

namespace tfrio {
namespace {

constexpr std::uint8_t kFirst = wire::tag(1, wire::kLength);  // list contents, steps, bytes_list
constexpr std::uint8_t kFloatList = wire::tag(2, wire::kLength);
constexpr std::uint8_t kInt64List = wire::tag(3, wire::kLength);

/// True where `feature` is `list tag, length, kFirst, length` with one-byte lengths that fit: one
/// list in one piece, as every writer writes short ones.
bool is_short_packed(Bytes feature, std::uint8_t list_tag) {
  return feature.size() >= 4 && feature.size() < 0x80 && feature[0] == list_tag &&
         feature[1] == feature.size() - 2 && feature[2] == kFirst &&
         feature[3] == feature.size() - 4;
}

/// Read one varint that is all of `bytes`; false where it is not.
bool read_whole_varint(Bytes bytes, std::uint64_t& value) {
  if (bytes.size() > 10) return false;
  const std::size_t last = bytes.size() - 1;
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < last; ++i) {
    if (bytes[i] < 0x80) return false;
    result |= static_cast<std::uint64_t>(bytes[i] & 0x7F) << (7 * i);
  }
  value = result | static_cast<std::uint64_t>(bytes[last]) << (7 * last);
  return bytes[last] < 0x80;
}

}  // namespace

bool Column::add_ordinary_row(Bytes value) {
  if (is_list()) return add_ordinary_list(value);
  if (!add_ordinary(value)) return false;
  arrays_.present.push_back(1);
  return true;
}

std::size_t Column::ordinary_head() const {
  if (is_list() || is_bytes()) return 0;
  if (spec_.kind == Kind::int64s) return spec_.count == 1 ? 4 : 0;
  return ragged() ? 4 : header_size_;
}

bool Column::add_headed_row(Bytes values) {
  if (spec_.kind == Kind::int64s) {
    std::uint64_t value;
    if (values.empty() || !read_whole_varint(values, value)) return false;
    store64(arrays_.values.extend(8), value);
  } else if (values.size() == 4) {
    store32(arrays_.values.extend(4), load32(values.data()));
    end_item();
  } else {
    arrays_.values.append(values.data(), values.size());
    end_item();
  }
  arrays_.present.push_back(1);
  return true;
}

bool Column::add_ordinary_list(Bytes list) {
  std::int64_t steps = 0;
  const std::uint8_t* at = list.data();
  const std::uint8_t* const end = at + list.size();
  while (at < end) {
    if (end - at < 2 || at[0] != kFirst) return false;
    const std::uint8_t size = at[1];  // read once: a mapped file may change
    if (size >= 0x80 || size > end - at - 2) return false;
    if (!add_ordinary({at + 2, size})) return false;
    at += 2 + size;
    ++steps;
  }
  end_row(steps);
  return true;
}

bool Column::add_ordinary(Bytes feature) {
  switch (spec_.kind) {
    case Kind::floats:
      return ragged() ? add_any_floats(feature) : add_counted_floats(feature);
    case Kind::int64s:
      return add_int64s(feature);
    default:
      return add_string(feature);
  }
}

bool Column::add_counted_floats(Bytes feature) {
  const std::size_t size = fixed_size();
  if (header_size_ == 0 || feature.size() != header_size_ + size) return false;
  if (header_size_ != 4) {
    if (std::memcmp(feature.data(), header_, header_size_) != 0) return false;
  } else if (load32(feature.data()) != load32(header_)) {
    return false;
  }
  std::uint8_t* out = arrays_.values.extend(size);
  if (size == 4) {
    store32(out, load32(feature.data() + 4));
  } else {
    std::memcpy(out, feature.data() + header_size_, size);
  }
  return true;
}

bool Column::add_any_floats(Bytes feature) {
  if (!is_short_packed(feature, kFloatList) || feature.size() % 4 != 0) return false;
  arrays_.values.append(feature.data() + 4, feature.size() - 4);
  end_item();
  return true;
}

bool Column::add_int64s(Bytes feature) {
  if (!is_short_packed(feature, kInt64List)) return false;
  const Bytes piece = feature.subspan(4);
  if (spec_.count == 1) {
    std::uint64_t value;
    if (piece.empty() || !read_whole_varint(piece, value)) return false;
    store64(arrays_.values.extend(8), value);
    return true;
  }
  wire::Error error;
  const std::size_t count = wire::count_varints(piece, error);
  if (error.at != nullptr) return false;
  if (!ragged() && count != static_cast<std::size_t>(spec_.count)) return false;
  put_varints(&piece, 1, count);
  end_item();
  return true;
}

bool Column::add_string(Bytes feature) {
  if (spec_.count > 1 || spec_.count == 0 || !is_short_packed(feature, kFirst)) return false;
  arrays_.values.append(feature.data() + 4, feature.size() - 4);
  arrays_.byte_offsets.push_back(static_cast<std::int64_t>(arrays_.values.size()));
  end_item();
  return true;
}

}  // namespace tfrio
