// decode(encode(columns)) == columns, for columns made up from the fuzzer's bytes.
#include <cstdlib>

#include "tfrio/decoder.hpp"
#include "tfrio/encoder.hpp"

namespace {

using namespace tfrio;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Hands out the fuzzer's bytes, then zeros.
class Source {
 public:
  Source(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), left_(size) {}
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *bytes_++;
  }
  std::int64_t below(std::int64_t n) { return byte() % n; }

 private:
  const std::uint8_t* bytes_;
  std::size_t left_;
};

template <class T>
std::span<const T> span_of(const Buffer<T>& buffer) {
  return {buffer.data(), buffer.size()};
}

FeatureSpec make_spec(Source& source, std::size_t i) {
  return {std::string(1 + i * 7, static_cast<char>('a' + i)),
          static_cast<Kind>(1 + source.below(3)), source.below(5) - 1,
          static_cast<Place>(source.below(2))};
}

void add_values(Source& source, const FeatureSpec& spec, ColumnArrays& arrays) {
  const std::int64_t n = spec.count < 0 ? source.below(4) : spec.count;
  for (std::int64_t i = 0; i < n; ++i) {
    if (spec.kind == Kind::bytes) {
      for (std::int64_t k = source.below(3); k > 0; --k) arrays.values.push_back(source.byte());
      arrays.byte_offsets.push_back(static_cast<std::int64_t>(arrays.values.size()));
    } else if (spec.kind == Kind::floats) {
      store32(arrays.values.extend(4), source.byte() * 0x01000101u);
    } else {
      store64(arrays.values.extend(8), std::uint64_t{source.byte()} << source.below(64));
    }
  }
  const std::size_t values = spec.kind == Kind::bytes
                                 ? arrays.byte_offsets.size() - 1
                                 : arrays.values.size() / value_size(spec.kind);
  if (spec.count < 0) arrays.value_offsets.push_back(static_cast<std::int64_t>(values));
}

/// Add a list of values: a row, or step number `step`, which may be without a kind.
void add_list(Source& source, const FeatureSpec& spec, ColumnArrays& arrays, std::int64_t step) {
  if (spec.place != Place::list || spec.count > 0 || source.below(4) != 3) {
    add_values(source, spec, arrays);
    return;
  }
  if (spec.count < 0) arrays.value_offsets.push_back(arrays.value_offsets.back());
  arrays.kindless.push_back(step);
}

/// Make up a column as a decoder would hand it over.
ColumnArrays make_column(Source& source, const FeatureSpec& spec, std::size_t rows) {
  ColumnArrays arrays;
  if (spec.kind == Kind::bytes) arrays.byte_offsets.push_back(0);
  if (spec.count < 0) arrays.value_offsets.push_back(0);
  if (spec.place == Place::list) arrays.step_offsets.push_back(0);
  for (std::size_t row = 0; row < rows; ++row) {
    arrays.present.push_back(1);
    const std::int64_t lists = spec.place == Place::list ? source.below(4) : 1;
    const std::int64_t first = spec.place == Place::list ? arrays.step_offsets.back() : 0;
    for (std::int64_t i = 0; i < lists; ++i) add_list(source, spec, arrays, first + i);
    if (spec.place == Place::list) {
      arrays.step_offsets.push_back(arrays.step_offsets.back() + lists);
    }
  }
  return arrays;
}

/// Return which steps carry a kind, one byte each.
std::vector<std::uint8_t> step_present(const FeatureSpec& spec, const ColumnArrays& arrays) {
  if (spec.place != Place::list) return {};
  const std::size_t steps = arrays.step_offsets.size() - 1;
  std::vector<std::uint8_t> carry(static_cast<std::size_t>(arrays.step_offsets[steps]), 1);
  for (std::size_t i = 0; i < arrays.kindless.size(); ++i) {
    carry[static_cast<std::size_t>(arrays.kindless[i])] = 0;
  }
  return carry;
}

template <class T>
void require_same(const Buffer<T>& a, const Buffer<T>& b) {
  require(a.size() == b.size());
  require(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Source source(bytes, size);
  const auto rows = static_cast<std::size_t>(source.below(12));
  std::vector<FeatureSpec> specs;
  std::vector<ColumnArrays> columns;
  std::vector<ColumnView> views;
  std::vector<std::vector<std::uint8_t>> carry;
  for (std::int64_t n = source.below(5); n > 0; --n) {
    specs.push_back(make_spec(source, specs.size()));
    columns.push_back(make_column(source, specs.back(), rows));
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnArrays& c = columns[i];
    carry.push_back(step_present(specs[i], c));
    views.push_back({span_of(c.values), span_of(c.byte_offsets), span_of(c.value_offsets),
                     span_of(c.step_offsets), span_of(c.present), specs[i].count, carry.back()});
  }
  const Encoded encoded = ExampleEncoder(specs, true, true).encode(rows, views);
  ExampleDecoder decoder(specs, {.sequence = true});
  const Progress progress =
      decoder.feed({encoded.data.data(), encoded.data.size()}, 0, {.final = true});
  require(!progress.fault && progress.records == static_cast<std::int64_t>(rows));
  const std::vector<ColumnArrays> back = decoder.take();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    require_same(back[i].values, columns[i].values);
    require_same(back[i].byte_offsets, columns[i].byte_offsets);
    require_same(back[i].value_offsets, columns[i].value_offsets);
    require_same(back[i].step_offsets, columns[i].step_offsets);
    require_same(back[i].kindless, columns[i].kindless);
    require_same(back[i].present, columns[i].present);
  }
  return 0;
}
