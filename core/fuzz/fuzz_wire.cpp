// Decoding any payload: no crash, whole rows or none, and prediction changes nothing.
#include <cstdlib>

#include "tfrio/decoder.hpp"
#include "tfrio/survey.hpp"

namespace {

using namespace tfrio;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<FeatureSpec> features(std::uint8_t choice, bool sequence) {
  const auto count = static_cast<std::int64_t>(choice >> 4 & 3) - 1;
  std::vector<FeatureSpec> specs;
  for (const char* name : {"a", "b", "", "x", "img"}) {
    const auto kind = static_cast<Kind>(1 + (choice + specs.size()) % 3);
    specs.push_back({name, kind, count, Place::context});
    if (sequence) specs.push_back({name, kind, -1, Place::list});
  }
  return specs;
}

struct Decoded {
  std::size_t records;
  std::vector<ColumnArrays> columns;
};

/// Decode the payloads, one after the other, with one decoder.
Decoded decode(const std::vector<Bytes>& payloads, std::uint8_t choice) {
  const bool sequence = choice & 1;
  const PayloadOptions options{sequence, (choice & 2) != 0,
                               choice & 4 ? Unlisted::refuse : Unlisted::skip};
  Buffer<std::uint8_t> data;
  for (Bytes payload : payloads) {
    write_record(data.extend(payload.size() + kFrameSize), payload);
  }
  ExampleDecoder decoder(features(choice, sequence), options);
  const Progress progress = decoder.feed({data.data(), data.size()}, 0, {.final = true});
  require(static_cast<bool>(progress.fault) == (progress.records < std::ssize(payloads)));
  require(progress.fault.at <= static_cast<std::int64_t>(payloads[0].size()));
  require(decoder.rows() == progress.records);
  return {static_cast<std::size_t>(progress.records), decoder.take()};
}

/// Two payloads of one length: later records are predicted from the first ones, and must come out
/// as they do alone.
void compare(Bytes a, Bytes b, std::uint8_t choice) {
  const std::vector<Bytes> order{a, a, a, b, a, b, b};
  const Decoded alone[] = {decode({a}, choice), decode({b}, choice)};
  const Decoded together = decode(order, choice);
  std::vector<std::size_t> at(together.columns.size());
  for (std::size_t r = 0; r < order.size(); ++r) {
    const Decoded& one = alone[order[r].data() == b.data() && !b.empty()];
    if (one.records == 0) return require(together.records == r);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Buffer<std::uint8_t>&want = one.columns[i].values, &got = together.columns[i].values;
      require(at[i] + want.size() <= got.size());
      require(want.empty() || std::memcmp(got.data() + at[i], want.data(), want.size()) == 0);
      require(together.columns[i].present[r] == one.columns[i].present[0]);
      at[i] += want.size();
    }
  }
  require(together.records == order.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const Bytes payload(bytes + 1, size - 1);
  decode({payload}, bytes[0]);
  compare(payload.first(payload.size() / 2), payload.last(payload.size() / 2), bytes[0]);
  SchemaScanner scanner(bytes[0] & 1, bytes[0] & 2);
  Buffer<std::uint8_t> framed;
  write_record(framed.extend(payload.size() + kFrameSize), payload);
  scanner.feed({framed.data(), framed.size()}, 0, {.final = true});
  classify(payload);
  return 0;
}
