// Taking one Feature apart.
#include "tfrio/feature.hpp"

namespace tfrio {
namespace {

constexpr std::uint32_t kPacked = wire::tag(1, wire::kLength);  // and each value of a BytesList
constexpr std::uint32_t kOneFloat = wire::tag(1, wire::kFixed32);
constexpr std::uint32_t kOneInt64 = wire::tag(1, wire::kVarint);

bool add_floats(Bytes piece, FeatureValues& values, wire::Cursor& cursor) {
  if (piece.size() % 4 != 0) {
    return cursor.fail_at(piece.data(), "a packed float list is no multiple of 4 bytes long");
  }
  values.pieces.push_back(piece);
  values.count += piece.size() / 4;
  return true;
}

bool add_int64s(Bytes piece, FeatureValues& values, wire::Error& error) {
  values.count += wire::count_varints(piece, error);
  values.pieces.push_back(piece);
  return error.at == nullptr;
}

bool parse_bytes_list(Bytes list, FeatureValues& values, wire::Error& error) {
  wire::Cursor cursor(list, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    if (!cursor.tag(tag)) return false;
    if (tag != kPacked) {
      if (!cursor.skip(tag)) return false;
      continue;
    }
    Bytes value;
    if (!cursor.bytes(value)) return false;
    values.pieces.push_back(value);
    ++values.count;
  }
  return true;
}

bool parse_float_list(Bytes list, FeatureValues& values, wire::Error& error) {
  wire::Cursor cursor(list, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    if (!cursor.tag(tag)) return false;
    Bytes piece;
    if (tag == kPacked) {
      if (!cursor.bytes(piece) || !add_floats(piece, values, cursor)) return false;
    } else if (tag == kOneFloat) {
      if (!cursor.raw(4, piece) || !add_floats(piece, values, cursor)) return false;
    } else if (!cursor.skip(tag)) {
      return false;
    }
  }
  return true;
}

bool parse_int64_list(Bytes list, FeatureValues& values, wire::Error& error) {
  wire::Cursor cursor(list, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    if (!cursor.tag(tag)) return false;
    Bytes piece;
    if (tag == kPacked) {
      if (!cursor.bytes(piece) || !add_int64s(piece, values, error)) return false;
    } else if (tag == kOneInt64) {
      const std::uint8_t* start = cursor.at();
      std::uint64_t ignored;
      if (!cursor.varint(ignored)) return false;
      values.pieces.push_back({start, cursor.at()});
      values.loose_int64s = true;
      ++values.count;
    } else if (!cursor.skip(tag)) {
      return false;
    }
  }
  return true;
}

bool parse_list(Kind kind, Bytes list, FeatureValues& values, wire::Error& error) {
  switch (kind) {
    case Kind::bytes:
      return parse_bytes_list(list, values, error);
    case Kind::floats:
      return parse_float_list(list, values, error);
    default:
      return parse_int64_list(list, values, error);
  }
}

void reset(FeatureValues& values, Kind kind) {
  values.kind = kind;
  values.pieces.clear();
  values.count = 0;
}

}  // namespace

bool parse_feature(Bytes feature, FeatureValues& values, wire::Error& error) {
  reset(values, Kind::none);
  values.loose_int64s = false;
  wire::Cursor cursor(feature, error);
  while (!cursor.done()) {
    std::uint32_t tag;
    if (!cursor.tag(tag)) return false;
    const std::uint32_t field = tag >> 3;
    if ((tag & 7) != wire::kLength || field > 3) {
      if (!cursor.skip(tag)) return false;
      continue;
    }
    const Kind kind = static_cast<Kind>(field);
    if (values.kind != kind) reset(values, kind);
    Bytes list;
    if (!cursor.bytes(list) || !parse_list(kind, list, values, error)) return false;
  }
  return true;
}

}  // namespace tfrio
