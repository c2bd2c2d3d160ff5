// Encoding: golden bytes, and columns back again.
#include <stdexcept>

#include "messages.hpp"
#include "tfrio/encoder.hpp"

namespace {

using check::Payload;
using tfrio::ColumnView;
using tfrio::ExampleEncoder;
using tfrio::FeatureSpec;
using tfrio::Kind;
using tfrio::Place;

template <class T>
tfrio::Bytes bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

std::string payload_of(const tfrio::Encoded& encoded) {
  const std::size_t size = encoded.data.size() - tfrio::kFrameSize;
  return check::hex({encoded.data.data() + tfrio::kHeaderSize, size});
}

TEST(encode_golden_example) {
  const std::vector<std::int64_t> one{1};
  const ExampleEncoder encoder({{"a", Kind::int64s, 1, Place::context}}, false, true);
  const ColumnView column{.values = bytes_of(one), .count = 1};
  const auto encoded = encoder.encode(1, std::span(&column, 1));
  CHECK_EQUAL(check::hex({encoded.data.data(), encoded.data.size()}),
              "0e00000000000000c5e5693f0a0c0a0a0a016112051a030a010139e87850");
  CHECK_EQUAL(encoded.ends[0], 30);
}

TEST(encode_negative_numbers) {
  const std::vector<std::int64_t> values{-1, INT64_MIN, INT64_MAX};
  const ExampleEncoder encoder({{"x", Kind::int64s, 3, Place::context}}, false, true);
  const ColumnView column{.values = bytes_of(values), .count = 3};
  CHECK_EQUAL(payload_of(encoder.encode(1, std::span(&column, 1))), check::kNegative);
}

TEST(encode_absent_and_empty) {
  const std::vector<std::int64_t> seven{7}, none{0, 0};
  const std::vector<std::uint8_t> absent{0};
  const ExampleEncoder encoder(
      {{"y", Kind::int64s, 1, Place::context}, {"x", Kind::int64s, -1, Place::context}}, false,
      true);
  ColumnView columns[] = {{.values = bytes_of(seven), .count = 1}, {.value_offsets = none}};
  CHECK_EQUAL(payload_of(encoder.encode(1, columns)), check::kEmptyInt);
  columns[0].present = columns[1].present = absent;
  CHECK_EQUAL(payload_of(encoder.encode(1, columns)), "");
}

TEST(encode_golden_sequence) {
  const std::vector<std::int64_t> three{3}, tokens{0, 1, 2, 3, 4}, lists{0, 2, 2, 5}, steps{0, 3},
      strings{0, 2, 2, 4};
  const Payload text = check::unhex("ffd86162");
  const ExampleEncoder encoder({{"n", Kind::int64s, 1, Place::context},
                                {"tok", Kind::int64s, -1, Place::list},
                                {"img", Kind::bytes, 1, Place::list}},
                               true, false);
  const ColumnView columns[] = {
      {.values = bytes_of(three), .count = 1},
      {.values = bytes_of(tokens), .value_offsets = lists, .step_offsets = steps},
      {.values = text, .byte_offsets = strings, .step_offsets = steps, .count = 1}};
  CHECK_EQUAL(payload_of(encoder.encode(1, columns)), check::kSequence);
}

TEST(steps_without_a_kind_are_empty_features) {
  const std::vector<std::int64_t> none{0, 0, 0, 0}, steps{0, 2, 3};
  const ExampleEncoder encoder({{"a", Kind::none, -1, Place::list}}, true, true);
  const ColumnView column{.value_offsets = none, .step_offsets = steps};
  const auto encoded = encoder.encode(2, std::span(&column, 1));
  const auto first = static_cast<std::size_t>(encoded.ends[0]) - tfrio::kFrameSize;
  CHECK_EQUAL(check::hex({encoded.data.data() + tfrio::kHeaderSize, first}),
              "120b0a090a016112040a000a00");
}

TEST(some_steps_may_carry_no_kind) {
  const std::vector<std::int64_t> values{1}, lists{0, 1, 1, 1, 1}, steps{0, 4}, strings{0, 1};
  const std::vector<std::uint8_t> carry{1, 0, 1, 0}, letter{'x'};
  const ColumnView numbers{.values = bytes_of(values),
                           .value_offsets = lists,
                           .step_offsets = steps,
                           .step_present = carry};
  const ExampleEncoder encoder({{"a", Kind::int64s, -1, Place::list}}, true, true);
  CHECK_EQUAL(payload_of(encoder.encode(1, std::span(&numbers, 1))),
              "12160a140a0161120f0a051a030a01010a000a021a000a00");
  const ColumnView texts{.values = letter,
                         .byte_offsets = strings,
                         .value_offsets = lists,
                         .step_offsets = steps,
                         .step_present = carry};
  const ExampleEncoder other({{"a", Kind::bytes, -1, Place::list}}, true, true);
  CHECK_EQUAL(payload_of(other.encode(1, std::span(&texts, 1))),
              "12160a140a0161120f0a050a030a01780a000a020a000a00");
}

TEST(names_are_sorted_unless_told_otherwise) {
  const std::vector<std::int64_t> one{1};
  const std::vector<FeatureSpec> features{{"b", Kind::int64s, 1, Place::context},
                                          {"a", Kind::int64s, 1, Place::context}};
  const ColumnView columns[] = {{.values = bytes_of(one), .count = 1},
                                {.values = bytes_of(one), .count = 1}};
  const std::string a = "0a0a0a016112051a030a0101", b = "0a0a0a016212051a030a0101";
  CHECK_EQUAL(payload_of(ExampleEncoder(features, false, true).encode(1, columns)), "0a18" + a + b);
  CHECK_EQUAL(payload_of(ExampleEncoder(features, false, false).encode(1, columns)),
              "0a18" + b + a);
}

/// Encode what was decoded and expect the same bytes.
TEST(rows_of_equal_and_other_layouts_come_back) {
  std::vector<Payload> payloads;
  for (int i = 0; i < 300; ++i) {
    // Lengths change now and then, so that copies of the last record and fresh ones mix.
    const std::string value = i % 7 == 0 ? "8001" : i % 11 == 0 ? "01" : "05";
    const std::string size = i % 7 == 0 ? "02" : "01";
    const auto byte = [](std::size_t n) {
      const auto b = static_cast<std::uint8_t>(n);
      return check::hex({&b, 1});
    };
    const std::size_t n = value.size() / 2;
    const std::string list = "0a" + size + value;
    const std::string feature = "1a" + byte(n + 2) + list;
    const std::string entry =
        "0a0178"
        "12" +
        byte(n + 4) + feature;
    payloads.push_back(check::unhex("0a" + byte(n + 11) + "0a" + byte(n + 9) + entry));
  }
  const Payload data = check::framed(payloads);
  tfrio::ExampleDecoder decoder({{"x", Kind::int64s, -1, Place::context}}, {});
  CHECK_EQUAL(decoder.feed(data, 0, {.final = true}).records, 300);
  const auto arrays = decoder.take();
  const auto span = [](const auto& buffer) { return std::span(buffer.data(), buffer.size()); };
  const ColumnView column{.values = span(arrays[0].values),
                          .value_offsets = span(arrays[0].value_offsets),
                          .present = span(arrays[0].present)};
  const ExampleEncoder encoder({{"x", Kind::int64s, -1, Place::context}}, false, true);
  const auto encoded = encoder.encode(300, std::span(&column, 1));
  CHECK_EQUAL(check::hex({encoded.data.data(), encoded.data.size()}), check::hex(data));
}

bool refuses(const FeatureSpec& spec, std::size_t rows, const ColumnView& column) {
  try {
    ExampleEncoder({spec}, true, true).encode(rows, std::span(&column, 1));
  } catch (const std::invalid_argument& error) {
    return std::string(error.what()).find(spec.name) != std::string::npos;
  }
  return false;
}

TEST(arrays_that_do_not_fit_are_refused) {
  const std::vector<std::int64_t> values{1, 2, 3}, falling{0, 2, 1}, short_offsets{0}, wide{0, 9},
      negative{-1, 1}, good{0, 1};
  const std::vector<std::uint8_t> present{1, 1};
  const FeatureSpec x{"x", Kind::int64s, -1, Place::context};
  const FeatureSpec text{"text", Kind::bytes, -1, Place::context};
  const FeatureSpec steps{"steps", Kind::int64s, -1, Place::list};
  const auto view = bytes_of(values);
  CHECK(refuses(x, 4, {.values = view, .count = 1}));
  CHECK(refuses(x, 2, {.values = view, .value_offsets = falling}));
  CHECK(refuses(x, 2, {.values = view, .value_offsets = short_offsets}));
  CHECK(refuses(x, 1, {.values = view, .value_offsets = wide}));
  CHECK(refuses(x, 1, {.values = view, .value_offsets = negative}));
  CHECK(refuses(x, 1, {.values = view, .present = present, .count = 1}));
  CHECK(refuses(x, 1, {.values = view}));
  CHECK(refuses(x, std::size_t{1} << 62, {.values = view, .count = 9}));
  CHECK(refuses(text, 1, {.values = view, .count = 1}));
  CHECK(refuses({"none", Kind::none, -1, Place::context}, 1, {.values = view, .count = 1}));
  CHECK(refuses(text, 1, {.values = view, .byte_offsets = good, .count = 2}));
  CHECK(refuses(steps, 1, {.values = view, .value_offsets = good}));
  CHECK(refuses(steps, 1, {.values = view, .value_offsets = good, .step_offsets = wide}));
  const std::vector<std::uint8_t> bare{0};
  CHECK(
      refuses(steps, 1,
              {.values = view, .value_offsets = good, .step_offsets = good, .step_present = bare}));
  CHECK(refuses(
      steps, 1,
      {.values = view, .value_offsets = good, .step_offsets = good, .step_present = present}));
  CHECK(refuses(x, 1, {.values = view, .value_offsets = good, .step_present = present}));
}

}  // namespace
