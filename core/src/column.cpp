// Gathering one feature over many records.
#include "tfrio/column.hpp"

#include <stdexcept>

namespace tfrio {
namespace {

constexpr std::uint8_t kFirst = wire::tag(1, wire::kLength);
constexpr std::uint8_t kFloatList = wire::tag(2, wire::kLength);

/// Make room in `buffer` for as many values as the last batch had.
template <class T>
void prepare(Buffer<T>& buffer, std::size_t size) {
  if (buffer.capacity() == 0 && size > 0) buffer.reserve_more(size);
}

template <class T>
void prepare_offsets(Buffer<T>& buffer, std::size_t size) {
  prepare(buffer, size);
  if (buffer.empty()) buffer.push_back(0);
}

}  // namespace

Column::Column(const FeatureSpec& spec) : spec_(spec) {
  const auto count = static_cast<std::uint64_t>(spec.count);
  if (spec.kind != Kind::floats || spec.count <= 0 || count > (1u << 28)) return;
  std::uint8_t* at = header_;
  *at++ = kFloatList;
  at = wire::write_varint(at, 1 + wire::varint_size(4 * count) + 4 * count);
  *at++ = kFirst;
  at = wire::write_varint(at, 4 * count);
  header_size_ = static_cast<std::size_t>(at - header_);
}

void Column::begin() {
  if (!arrays_.values.borrowed()) prepare(arrays_.values, sizes_[0]);
  if (is_bytes()) prepare_offsets(arrays_.byte_offsets, sizes_[1]);
  if (ragged()) prepare_offsets(arrays_.value_offsets, sizes_[2]);
  if (is_list()) prepare_offsets(arrays_.step_offsets, sizes_[3]);
  prepare(arrays_.present, sizes_[4]);
}

void Column::add_absent() {
  if (is_list()) {
    arrays_.step_offsets.push_back(arrays_.step_offsets.back());
  } else if (ragged()) {
    end_item();
  } else if (is_bytes()) {
    const std::int64_t end = arrays_.byte_offsets.back();
    for (std::int64_t i = 0; i < spec_.count; ++i) arrays_.byte_offsets.push_back(end);
  } else {
    arrays_.values.append_zeros(fixed_size());
  }
  arrays_.present.push_back(0);
}

bool Column::add_feature(Bytes feature, Scratch& scratch, Fault& fault) {
  bool kindless = false;
  if (!add_ordinary(feature) && !add_item(feature, scratch, fault, kindless)) return false;
  if (kindless) {
    add_absent();
  } else {
    end_row(0);
  }
  return true;
}

bool Column::add_feature_list(Bytes list, Scratch& scratch, Fault& fault) {
  std::size_t step = 0;
  const bool fine = for_each_step(list, scratch.error, [&](Bytes feature) {
    bool kindless = false;
    if (!add_ordinary(feature) && !add_item(feature, scratch, fault, kindless)) return false;
    if (kindless) {
      if (!add_values(nullptr, 0, 0, fault)) return false;
      note_kindless(step);
    }
    ++step;
    return true;
  });
  if (!fine) {
    fault.step = static_cast<std::int64_t>(step);
    return false;
  }
  end_row(static_cast<std::int64_t>(step));
  return true;
}

void Column::note_kindless(std::size_t step) {
  arrays_.kindless.push_back(arrays_.step_offsets.back() + static_cast<std::int64_t>(step));
}

bool Column::add_item(Bytes feature, Scratch& scratch, Fault& fault, bool& kindless) {
  FeatureValues& values = scratch.values;
  if (!parse_feature(feature, values, scratch.error)) return false;
  kindless = values.kind == Kind::none;
  if (kindless) return true;
  if (values.kind != spec_.kind) {
    fault.code = FaultCode::kind;
    fault.expected = static_cast<std::uint64_t>(spec_.kind);
    fault.got = static_cast<std::uint64_t>(values.kind);
    return false;
  }
  return add_values(values.pieces.data(), values.pieces.size(), values.count, fault);
}

bool Column::fits(std::size_t count, Fault& fault) const {
  if (ragged() || count == static_cast<std::size_t>(spec_.count)) return true;
  fault.code = FaultCode::count;
  fault.expected = static_cast<std::uint64_t>(spec_.count);
  fault.got = count;
  return false;
}

bool Column::add_values(const Bytes* pieces, std::size_t n, std::size_t count, Fault& fault) {
  if (!fits(count, fault)) return false;
  if (spec_.kind == Kind::int64s) {
    put_varints(pieces, n, count);
  } else {
    put_pieces(pieces, n);
  }
  end_item();
  return true;
}

void Column::put_varints(const Bytes* pieces, std::size_t n, std::size_t count) {
  std::uint8_t* const room = arrays_.values.extend(count * sizeof(std::int64_t));
  auto* out = reinterpret_cast<std::int64_t*>(room);
  const std::int64_t* const stop = out + count;
  for (std::size_t i = 0; i < n; ++i) out = wire::read_varints(pieces[i], out, stop);
  for (; out < stop; ++out) *out = 0;  // the bytes changed since they were counted
}

void Column::put_pieces(const Bytes* pieces, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    arrays_.values.append(pieces[i].data(), pieces[i].size());
    if (is_bytes()) {
      arrays_.byte_offsets.push_back(static_cast<std::int64_t>(arrays_.values.size()));
    }
  }
}

std::size_t Column::add_rows(const std::uint8_t* first, std::size_t stride, std::size_t n,
                             const RowShape& shape, Scratch& scratch) {
  if (!shape.present) {
    for (std::size_t r = 0; r < n; ++r) add_absent();
    return n;
  }
  if (!is_list() && shape.pieces.size() == 1) {
    const RowShape::Piece piece = shape.pieces[0];
    if (spec_.kind == Kind::floats) {
      add_packed_rows(first + piece.offset, stride, n, piece.size);
      return n;
    }
    if (spec_.kind == Kind::int64s && shape.items[0].count == 1) {
      return add_scalar_varints(first + piece.offset, stride, n, piece.size);
    }
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (!add_shaped_row(first + r * stride, shape, scratch)) return r;
  }
  return n;
}

void Column::add_packed_rows(const std::uint8_t* first, std::size_t stride, std::size_t n,
                             std::size_t size) {
  std::uint8_t* out = arrays_.values.extend(n * size);
  if (size == 4) {
    for (std::size_t r = 0; r < n; ++r) store32(out + 4 * r, load32(first + r * stride));
  } else {
    for (std::size_t r = 0; r < n; ++r) std::memcpy(out + r * size, first + r * stride, size);
  }
  end_rows(n, size / 4);
}

void Column::append(const Column& other) {
  const ColumnArrays& from = other.arrays_;
  arrays_.present.append(from.present.data(), from.present.size());
  if (has_places()) return;
  arrays_.values.append(from.values.data(), from.values.size());
  append_offsets(arrays_.byte_offsets, from.byte_offsets);
  append_offsets(arrays_.value_offsets, from.value_offsets);
  for (std::size_t i = 0; i < from.kindless.size(); ++i) {
    note_kindless(static_cast<std::size_t>(from.kindless[i]));
  }
  append_offsets(arrays_.step_offsets, from.step_offsets);
}

void Column::append_offsets(Buffer<std::int64_t>& to, const Buffer<std::int64_t>& from) {
  if (from.empty()) return;  // not in use
  const std::int64_t base = to.back();
  std::int64_t* out = to.extend(from.size() - 1);
  for (std::size_t i = 1; i < from.size(); ++i) *out++ = base + from[i];
}

Bytes Column::run_of(Bytes feature, Scratch& scratch) const {
  if (is_list() || spec_.kind == Kind::int64s) return {};
  const FeatureValues& values = scratch.values;
  scratch.error = {};
  if (!parse_feature(feature, scratch.values, scratch.error)) return {};
  if (values.kind != spec_.kind || values.pieces.size() != 1) return {};
  if (!ragged() && values.count != static_cast<std::size_t>(spec_.count)) return {};
  return values.pieces[0];
}

void Column::close_row() {
  if (is_bytes()) {
    arrays_.byte_offsets.push_back(static_cast<std::int64_t>(arrays_.values.size()));
  }
  end_item();
  end_row(0);
}

void Column::end_rows(std::size_t n, std::size_t count) {
  std::memset(arrays_.present.extend(n), 1, n);
  if (!ragged()) return;
  std::int64_t end = arrays_.value_offsets.back();
  std::int64_t* ends = arrays_.value_offsets.extend(n);
  for (std::size_t r = 0; r < n; ++r) ends[r] = end += static_cast<std::int64_t>(count);
}

std::size_t Column::add_scalar_varints(const std::uint8_t* first, std::size_t stride, std::size_t n,
                                       std::size_t size) {
  std::uint8_t* out = arrays_.values.extend(n * 8);
  std::size_t r = 0;
  for (; r < n; ++r, first += stride, out += 8) {
    // One varint of `size` bytes: all but the last say that another follows.
    std::uint64_t value = 0;
    std::uint8_t more = 0x80;
    for (std::size_t i = 0; i + 1 < size; ++i) {
      more &= first[i];
      value |= static_cast<std::uint64_t>(first[i] & 0x7F) << (7 * i);
    }
    const std::uint8_t last = first[size - 1];
    if (more == 0 || last >= 0x80) break;
    store64(out, value | static_cast<std::uint64_t>(last) << (7 * (size - 1)));
  }
  arrays_.values.truncate(arrays_.values.size() - 8 * (n - r));
  end_rows(r, 1);
  return r;
}

bool Column::add_shaped_row(const std::uint8_t* payload, const RowShape& shape, Scratch& scratch) {
  std::vector<Bytes>& pieces = scratch.values.pieces;
  pieces.clear();
  for (const RowShape::Piece& piece : shape.pieces) {
    pieces.push_back({payload + piece.offset, piece.size});
  }
  std::size_t begin = 0, step = 0;
  Fault ignored;
  wire::Error error;
  for (const RowShape::Item& item : shape.items) {
    if (item.kindless) note_kindless(step);
    ++step;
    std::size_t count = item.count;
    if (spec_.kind == Kind::int64s) {
      count = 0;
      for (std::size_t i = begin; i < item.end; ++i) count += wire::count_varints(pieces[i], error);
    }
    if (error.at != nullptr) return false;
    if (!add_values(pieces.data() + begin, item.end - begin, count, ignored)) return false;
    begin = item.end;
  }
  end_row(static_cast<std::int64_t>(shape.items.size()));
  return true;
}

void Column::truncate(std::size_t rows) {
  arrays_.present.truncate(rows);
  std::size_t items = rows;
  if (is_list()) {
    arrays_.step_offsets.truncate(rows + 1);
    items = static_cast<std::size_t>(arrays_.step_offsets.back());
    Buffer<std::int64_t>& kindless = arrays_.kindless;
    while (!kindless.empty() && kindless.back() >= arrays_.step_offsets.back()) {
      kindless.truncate(kindless.size() - 1);
    }
  }
  std::size_t values = ragged() ? 0 : items * static_cast<std::size_t>(spec_.count);
  if (ragged()) {
    arrays_.value_offsets.truncate(items + 1);
    values = static_cast<std::size_t>(arrays_.value_offsets.back());
  }
  if (is_bytes()) {
    arrays_.byte_offsets.truncate(values + 1);
    arrays_.values.truncate(static_cast<std::size_t>(arrays_.byte_offsets.back()));
  } else {
    arrays_.values.truncate(values * value_size(spec_.kind));
  }
}

std::int64_t Column::borrow(std::uint8_t* data, std::size_t size) {
  if (!has_places() && !is_bytes()) {
    throw std::invalid_argument("feature '" + spec_.name +
                                "': only bytes and a fixed number of numbers per record can be"
                                " written into an output array");
  }
  if (!arrays_.present.empty()) {
    throw std::invalid_argument("take() the rows gathered so far before setting an output array");
  }
  arrays_.values.borrow(data, size);
  return is_bytes() ? INT64_MAX : static_cast<std::int64_t>(size / fixed_size());
}

ColumnArrays Column::take() {
  begin();
  if (!arrays_.values.borrowed()) sizes_[0] = arrays_.values.size();
  sizes_[1] = arrays_.byte_offsets.size();
  sizes_[2] = arrays_.value_offsets.size();
  sizes_[3] = arrays_.step_offsets.size();
  sizes_[4] = arrays_.present.size();
  return std::exchange(arrays_, ColumnArrays{});
}

}  // namespace tfrio
