// Decoding: every rule of the wire format on golden bytes, faults, and whole rows or none.
#include "messages.hpp"

namespace {

using check::Payload;
using check::Shown;
using tfrio::ExampleDecoder;
using tfrio::FaultCode;
using tfrio::FeatureSpec;
using tfrio::Kind;
using tfrio::PayloadOptions;
using tfrio::Place;
using tfrio::Progress;

const FeatureSpec kX{"x", Kind::int64s, -1, Place::context};

struct Result {
  Progress progress;
  std::vector<Shown> columns;
};

Result decode(const Payload& data, const std::vector<FeatureSpec>& features,
              const PayloadOptions& options = {}) {
  ExampleDecoder decoder(features, options);
  Result result{decoder.feed(data, 0, {.final = true}), {}};
  const auto arrays = decoder.take();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    result.columns.push_back(check::show(features[i].kind, arrays[i]));
  }
  return result;
}

std::string values_of_x(const std::string& hex) {
  const Result result = decode(check::record(hex), {kX});
  CHECK(!result.progress.fault);
  return result.columns[0].values;
}

tfrio::Fault fault_of(const std::string& hex, const FeatureSpec& spec,
                      const PayloadOptions& options = {}) {
  const Result result = decode(check::record(hex), {spec}, options);
  CHECK_EQUAL(result.progress.records, 0);
  CHECK_EQUAL(result.columns[0].present, "");
  return result.progress.fault;
}

TEST(decode_golden_payloads) {
  CHECK_EQUAL(values_of_x(check::kNegative), "-1 -9223372036854775808 9223372036854775807");
  CHECK_EQUAL(values_of_x(check::kUnpacked), "3 -4 5");
  CHECK_EQUAL(values_of_x(check::kMixed), "1 2 3 4");
  CHECK_EQUAL(values_of_x(check::kSameKeyTwice), "2");
  CHECK_EQUAL(values_of_x(check::kValueFirst), "9");
  CHECK_EQUAL(values_of_x(check::kUnknownFields), "5");
  CHECK_EQUAL(values_of_x(check::kTwoKinds), "2");
  const FeatureSpec y{"y", Kind::floats, 2, Place::context};
  CHECK_EQUAL(decode(check::record(check::kUnpacked), {y}).columns[0].values, "1.5 -2");
}

TEST(absent_kindless_and_empty_are_kept_apart) {
  for (const auto& [hex, present] : std::vector<std::pair<std::string, std::string>>{
           {"", "0"}, {"0a00", "0"}, {check::kKindless, "0"}, {check::kEmptyInt, "1"}}) {
    const Result result = decode(check::record(hex), {kX});
    CHECK_EQUAL(result.progress.records, 1);
    CHECK_EQUAL(result.columns[0].lists, "0 0");
    CHECK_EQUAL(result.columns[0].present, present);
  }
}

TEST(absent_rows_of_a_fixed_count_are_zeros) {
  const Payload data =
      check::framed({check::unhex(""), check::unhex("0a0c0a0a0a017812051a030a0105")});
  const FeatureSpec one{"x", Kind::int64s, 1, Place::context};
  CHECK_EQUAL(decode(data, {one}).columns[0].values, "0 5");
  const FeatureSpec text{"s", Kind::bytes, 2, Place::context};
  CHECK_EQUAL(decode(data, {text}).columns[0].bytes, "0 0 0 0 0");
}

TEST(decode_sequence) {
  const std::vector<FeatureSpec> features{{"n", Kind::int64s, 1, Place::context},
                                          {"tok", Kind::int64s, -1, Place::list},
                                          {"img", Kind::bytes, 1, Place::list},
                                          {"none", Kind::floats, 3, Place::list}};
  const Result result = decode(check::record(check::kSequence), features, {.sequence = true});
  CHECK_EQUAL(result.columns[0].values, "3");
  CHECK_EQUAL(result.columns[1].values, "0 1 2 3 4");
  CHECK_EQUAL(result.columns[1].lists, "0 2 2 5");
  CHECK_EQUAL(result.columns[1].steps, "0 3");
  CHECK_EQUAL(result.columns[2].values, "ffd86162");
  CHECK_EQUAL(result.columns[2].bytes, "0 2 2 4");
  CHECK_EQUAL(result.columns[2].steps, "0 3");
  CHECK_EQUAL(result.columns[3].steps, "0 0");
  CHECK_EQUAL(result.columns[3].present, "0");
}

TEST(steps_without_a_kind_are_kept_and_told) {
  // a: [1], no kind, [], no kind. Enough records that their layout is predicted.
  const Payload payload = check::unhex("12160a140a0161120f0a051a030a01010a000a021a000a00");
  const Payload data = check::framed({payload, payload, check::unhex(""), payload, payload});
  ExampleDecoder decoder({{"a", Kind::int64s, -1, Place::list}}, {.sequence = true});
  CHECK_EQUAL(decoder.feed(data, 0, {.final = true}).records, 5);
  const auto arrays = decoder.take();
  CHECK_EQUAL(check::text(check::vector_of<std::int64_t>(arrays[0].kindless)),
              "1 3 5 7 9 11 13 15");
  CHECK_EQUAL(check::text(check::vector_of<std::int64_t>(arrays[0].step_offsets)), "0 4 8 8 12 16");
}

TEST(an_example_reader_steps_over_feature_lists) {
  const FeatureSpec n{"n", Kind::int64s, 1, Place::context};
  CHECK_EQUAL(decode(check::record(check::kSequence), {n}).columns[0].values, "3");
}

TEST(wrong_kind_is_named) {
  const auto fault = fault_of(check::kTwoKinds, {"x", Kind::floats, -1, Place::context});
  CHECK(fault.code == FaultCode::kind);
  CHECK_EQUAL(fault.expected, 2u);
  CHECK_EQUAL(fault.got, 3u);
  CHECK_EQUAL(fault.feature, "x");
}

TEST(wrong_count_is_named) {
  const auto fault = fault_of(check::kMixed, {"x", Kind::int64s, 2, Place::context});
  CHECK(fault.code == FaultCode::count);
  CHECK_EQUAL(fault.expected, 2u);
  CHECK_EQUAL(fault.got, 4u);
}

TEST(faults_in_steps_name_the_step) {
  const auto count =
      fault_of(check::kSequence, {"tok", Kind::int64s, 2, Place::list}, {.sequence = true});
  CHECK(count.code == FaultCode::count);
  CHECK_EQUAL(count.step, 1);
  const auto kind =
      fault_of(check::kSequence, {"img", Kind::floats, -1, Place::list}, {.sequence = true});
  CHECK(kind.code == FaultCode::kind);
  CHECK_EQUAL(kind.step, 0);
}

TEST(names_must_be_utf8_unless_accepted) {
  const auto fault = fault_of(check::kNameNotUtf8, kX);
  CHECK(fault.code == FaultCode::utf8);
  CHECK_EQUAL(fault.feature, "\xff\xfe");
  CHECK_EQUAL(fault.at, 6);
  const FeatureSpec odd{"\xff\xfe", Kind::int64s, 1, Place::context};
  CHECK(fault_of(check::kNameNotUtf8, odd).code == FaultCode::utf8);
  const Result result = decode(check::record(check::kNameNotUtf8), {odd}, {.any_utf8 = true});
  CHECK_EQUAL(result.columns[0].values, "5");
}

TEST(unlisted_features_are_skipped_or_refused) {
  const FeatureSpec y{"y", Kind::int64s, 1, Place::context};
  CHECK_EQUAL(decode(check::record(check::kKindless), {y}).columns[0].values, "7");
  const auto fault = fault_of(check::kKindless, y, {.unlisted = tfrio::Unlisted::refuse});
  CHECK(fault.code == FaultCode::unknown);
  CHECK_EQUAL(fault.feature, "x");
}

TEST(malformed_payloads_say_where) {
  // A length that reaches past its message; a varint of 11 bytes; a packed float list of 5 bytes.
  auto fault = fault_of("0a0c0a0a0a017812051a030a05", kX);
  CHECK(fault.code == FaultCode::wire);
  CHECK_EQUAL(fault.at, 1);
  fault = fault_of("0a160a140a0178120f1a0d0a0bffffffffffffffffffff01", kX);
  CHECK(fault.code == FaultCode::wire);
  CHECK_EQUAL(fault.feature, "x");
  CHECK_EQUAL(fault.at, 13);
  fault = fault_of("0a100a0e0a0178120912070a050102030405", {"x", Kind::floats, -1, Place::context});
  CHECK(fault.code == FaultCode::wire);
  CHECK_EQUAL(fault.at, 13);
}

TEST(a_malformed_value_that_is_replaced_is_still_refused) {
  const auto fault = fault_of("0a180a0a0a017812051a030a01ff0a0a0a017812051a030a0102", kX);
  CHECK(fault.code == FaultCode::wire);
  CHECK_EQUAL(fault.at, 13);
}

TEST(values_of_one_entry_are_merged) {
  CHECK_EQUAL(values_of_x("0a130a110a017812051a030a010512051a030a0106"), "5 6");
  // Another kind replaces; no kind leaves as it is; a kind set again starts anew.
  CHECK_EQUAL(values_of_x("0a160a140a0178120812060a040000803f12051a030a0106"), "6");
  CHECK_EQUAL(values_of_x("0a0e0a0c0a017812051a030a01051200"), "5");
  CHECK_EQUAL(values_of_x("0a190a170a017812121a030a010112060a040000803f1a030a0103"), "3");
}

TEST(faults_leave_whole_rows) {
  const Payload good = check::unhex("0a0c0a0a0a017812051a030a0105");
  ExampleDecoder decoder({kX}, {.unlisted = tfrio::Unlisted::refuse});
  Payload data = check::framed({good, good, good, check::unhex(check::kKindless), good});
  Progress progress = decoder.feed(data, 0, {});
  CHECK_EQUAL(progress.records, 3);
  CHECK_EQUAL(progress.fault.record, 3);
  CHECK_EQUAL(progress.fault.offset, progress.consumed);
  CHECK_EQUAL(decoder.rows(), 3);
  progress = decoder.feed(data, static_cast<std::size_t>(progress.consumed) + 37, {});
  CHECK_EQUAL(progress.records, 1);
  const auto arrays = decoder.take();
  CHECK_EQUAL(check::show(Kind::int64s, arrays[0]).values, "5 5 5 5");
  CHECK_EQUAL(decoder.rows(), 0);
}

TEST(damage_stops_a_predicted_run) {
  const Payload good = check::unhex("0a0c0a0a0a017812051a030a0105");
  Payload data = check::framed(std::vector<Payload>(100, good));
  for (std::size_t record : {5u, 63u, 64u, 99u}) {
    Payload damaged = data;
    damaged[record * 30 + 12 + 13] ^= 2;
    ExampleDecoder decoder({kX}, {});
    const Progress progress = decoder.feed(damaged, 0, {});
    CHECK_EQUAL(progress.records, static_cast<std::int64_t>(record));
    CHECK(progress.fault.code == FaultCode::payload_crc);
    CHECK_EQUAL(progress.fault.offset, static_cast<std::int64_t>(record * 30));
    CHECK_EQUAL(decoder.feed(damaged, 0, {.verify_payload = false}).records, 100);
  }
}

TEST(outputs_are_written_in_place_and_stop_when_full) {
  const Payload good = check::unhex("0a0c0a0a0a017812051a030a0105");
  const Payload data = check::framed(std::vector<Payload>(10, good));
  ExampleDecoder decoder({{"x", Kind::int64s, 1, Place::context}}, {});
  std::int64_t out[4] = {};
  decoder.set_output(0, reinterpret_cast<std::uint8_t*>(out), sizeof out);
  const Progress progress = decoder.feed(data, 0, {});
  CHECK_EQUAL(progress.records, 4);
  CHECK(!progress.fault);
  CHECK_EQUAL(out[3], 5);
  CHECK(decoder.take()[0].values.borrowed());
  CHECK_EQUAL(decoder.feed(data, static_cast<std::size_t>(progress.consumed), {}).records, 6);
}

TEST(bytes_are_written_in_place_until_one_does_not_fit) {
  const Payload good = check::unhex("0a100a0e0a017312090a070a056162636465");
  const Payload data = check::framed(std::vector<Payload>(100, good));
  ExampleDecoder decoder({{"s", Kind::bytes, 1, Place::context}}, {});
  std::uint8_t out[84] = {};
  out[80] = 7;
  decoder.set_output(0, out, sizeof out);
  const Progress progress = decoder.feed(data, 0, {}, 2);
  CHECK_EQUAL(progress.records, 16);
  CHECK(!progress.fault);
  CHECK_EQUAL(out[79], 'e');
  CHECK_EQUAL(decoder.take()[0].byte_offsets[16], 80);
  CHECK_EQUAL(decoder.feed(data, static_cast<std::size_t>(progress.consumed), {}).records, 84);
}

/// Enough records of two layouts for several threads, with every column form.
Payload many_records(std::size_t n) {
  const Payload x = check::unhex("0a0c0a0a0a017812051a030a0105");
  const Payload y = check::unhex(check::kEmptyInt);
  const Payload z = check::unhex("0a1a0a0a0a017812051a030a01050a0c0a017312070a050a036162ff");
  std::vector<Payload> payloads;
  for (std::size_t i = 0; i < n; ++i) payloads.push_back(i % 3 == 0 ? z : i % 7 == 0 ? y : x);
  return check::framed(payloads);
}

TEST(threads_change_nothing) {
  const Payload data = many_records(150000);
  const std::vector<FeatureSpec> features{
      kX, {"y", Kind::int64s, 1, Place::context}, {"s", Kind::bytes, -1, Place::context}};
  ExampleDecoder decoder(features, {});
  const Progress alone = decoder.feed(data, 30, {.final = true});
  const auto want = decoder.take();
  for (unsigned threads : {2u, 3u, 8u}) {
    const Progress together = decoder.feed(data, 30, {.final = true}, threads);
    CHECK_EQUAL(together.records, alone.records);
    CHECK_EQUAL(together.consumed, alone.consumed);
    const auto got = decoder.take();
    for (std::size_t i = 0; i < features.size(); ++i) {
      const Shown a = check::show(features[i].kind, got[i]),
                  b = check::show(features[i].kind, want[i]);
      CHECK(a.values == b.values && a.bytes == b.bytes && a.lists == b.lists);
      CHECK(a.present == b.present);
    }
  }
}

TEST(threads_stop_at_the_first_damage) {
  Payload data = many_records(150000);
  ExampleDecoder decoder({{"x", Kind::int64s, -1, Place::context}}, {});
  for (std::size_t damage : {data.size() - 10, data.size() / 2, std::size_t{1000}}) {
    data[damage] ^= 1;
    const Progress alone = decoder.feed(data, 0, {.final = true});
    const std::string want = check::show(Kind::int64s, decoder.take()[0]).lists;
    const Progress together = decoder.feed(data, 0, {.final = true}, 4);
    CHECK(together.fault.code == alone.fault.code);
    CHECK_EQUAL(together.records, alone.records);
    CHECK_EQUAL(together.consumed, alone.consumed);
    CHECK_EQUAL(together.fault.record, alone.fault.record);
    CHECK_EQUAL(together.fault.offset, alone.fault.offset);
    CHECK(check::show(Kind::int64s, decoder.take()[0]).lists == want);
  }
}

TEST(threads_fill_outputs) {
  const Payload data =
      check::framed(std::vector<Payload>(100000, check::unhex("0a0c0a0a0a017812051a030a0105")));
  std::vector<std::int64_t> out(90000);
  ExampleDecoder decoder({{"x", Kind::int64s, 1, Place::context}}, {});
  decoder.set_output(0, reinterpret_cast<std::uint8_t*>(out.data()), out.size() * 8);
  CHECK_EQUAL(decoder.feed(data, 0, {}, 3).records, 90000);
  CHECK(out == std::vector<std::int64_t>(90000, 5));
  const std::vector<tfrio::Bytes> buffers{data};
  const std::vector<std::int32_t> which(1000, 0);
  std::vector<std::int64_t> starts(1000);
  for (std::size_t i = 0; i < 1000; ++i)
    starts[i] = static_cast<std::int64_t>((i * 37 % 1000) * 30);
  decoder.take();
  CHECK_EQUAL(decoder.feed_at(buffers, which, starts, true, 4).records, 1000);
  starts[700] = 1;
  const Progress stopped = decoder.feed_at(buffers, which, starts, true, 4);
  CHECK_EQUAL(stopped.records, 700);
  CHECK_EQUAL(stopped.fault.record, 700);
  CHECK_EQUAL(stopped.fault.offset, 1);
  CHECK_EQUAL(decoder.rows(), 1700);
}

TEST(forgotten_rows_leave_no_trace) {
  ExampleDecoder decoder({kX}, {});
  decoder.feed(check::record(check::kUnpacked), 0, {});
  CHECK_EQUAL(decoder.take_values(0).size(), 24u);
  decoder.forget();
  CHECK_EQUAL(decoder.rows(), 0);
  decoder.feed(check::record(check::kValueFirst), 0, {});
  CHECK_EQUAL(decoder.rows(), 1);
  CHECK_EQUAL(check::show(Kind::int64s, decoder.take()[0]).values, "9");
}

template <class Call>
void check_refused(Call call) {
  bool refused = false;
  try {
    call();
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

TEST(senseless_requests_are_refused) {
  check_refused([] { ExampleDecoder({kX, kX}, {}); });
  check_refused([] { ExampleDecoder({{"x", Kind::none, 1, Place::context}}, {}); });
  check_refused([] { ExampleDecoder({{"x", Kind::bytes, -2, Place::context}}, {}); });
  check_refused([] { ExampleDecoder({{"x", Kind::bytes, 1, Place::list}}, {}); });
  check_refused([] {
    ExampleDecoder decoder({kX}, {});
    decoder.set_output(0, nullptr, 0);
  });
}

TEST(feed_spans_and_feed_at) {
  const Payload one = check::unhex("0a0c0a0a0a017812051a030a0101");
  const Payload two = check::unhex("0a0c0a0a0a017812051a030a0102");
  const Payload first = check::framed({one, two}), second = check::framed({two, two, one});
  ExampleDecoder decoder({kX}, {});
  const tfrio::Span spans[] = {{42, 14}, {12, 14}};
  CHECK_EQUAL(decoder.feed_spans(first, spans, -1).records, 2);
  const std::vector<tfrio::Bytes> buffers{first, second};
  const std::int32_t which[] = {1, 0, 1};
  const std::int64_t starts[] = {60, 30, 0};
  CHECK_EQUAL(decoder.feed_at(buffers, which, starts, true).records, 3);
  CHECK_EQUAL(check::show(Kind::int64s, decoder.take()[0]).values, "2 1 1 2 2");
  for (std::int64_t outside : {std::int64_t{-1}, std::int64_t{90}, std::int64_t{1} << 40}) {
    const std::int64_t places[] = {outside};
    const Progress progress = decoder.feed_at(buffers, std::span(which, 1), places, true);
    CHECK(progress.fault.code == FaultCode::header_cut);
    CHECK_EQUAL(progress.fault.offset, outside);
  }
}

}  // namespace
