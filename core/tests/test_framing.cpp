// Framing: golden bytes, every cut, every flipped bit, junk between records.
#include "check.hpp"
#include "tfrio/framing.hpp"

namespace {

using tfrio::Buffer;
using tfrio::Bytes;
using tfrio::FaultCode;

const std::string kEmptyFrame = "000000000000000029039807d8ea82a2";
const std::string kExampleFrame = "0e00000000000000c5e5693f0a0c0a0a0a016112051a030a010139e87850";

std::vector<std::uint8_t> framed(const std::vector<std::vector<std::uint8_t>>& payloads) {
  std::vector<std::uint8_t> data;
  for (const auto& payload : payloads) {
    const std::size_t at = data.size();
    data.resize(at + payload.size() + tfrio::kFrameSize);
    tfrio::write_record(data.data() + at, payload);
  }
  return data;
}

/// Three records of 46 bytes each, the third of them ending at 138.
std::vector<std::uint8_t> three() {
  return framed({std::vector<std::uint8_t>(30, 1), std::vector<std::uint8_t>(30, 2),
                 std::vector<std::uint8_t>(30, 3)});
}

TEST(frame_golden) {
  CHECK_EQUAL(check::hex(framed({{}})), kEmptyFrame);
  CHECK_EQUAL(check::hex(framed({check::unhex("0a0c0a0a0a016112051a030a0101")})), kExampleFrame);
}

TEST(scan_gives_spans) {
  Buffer<tfrio::Span> spans;
  const auto progress = tfrio::scan(three(), 0, {}, spans);
  CHECK(!progress.fault);
  CHECK_EQUAL(progress.consumed, 138);
  CHECK_EQUAL(spans.size(), 3u);
  CHECK_EQUAL(spans[1].offset, 58);
  CHECK_EQUAL(spans[1].length, 30);
}

TEST(scan_starts_and_stops_where_told) {
  Buffer<tfrio::Span> spans;
  const auto progress = tfrio::scan(three(), 46, {.max_records = 1}, spans);
  CHECK_EQUAL(progress.consumed, 46);
  CHECK_EQUAL(progress.records, 1);
  CHECK_EQUAL(spans[0].offset, 58);
  CHECK_EQUAL(tfrio::count(three(), 138, {.final = true}).records, 0);
}

TEST(every_cut_is_named) {
  const auto data = three();
  for (std::size_t k = 1; k < 46; ++k) {
    const Bytes cut = Bytes(data).first(46 + k);
    const auto waiting = tfrio::count(cut, 0, {});
    CHECK(!waiting.fault);
    CHECK_EQUAL(waiting.consumed, 46);
    const auto ended = tfrio::count(cut, 0, {.final = true});
    const auto want = k < 12   ? FaultCode::header_cut
                      : k < 42 ? FaultCode::payload_cut
                               : FaultCode::footer_cut;
    CHECK(ended.fault.code == want);
    CHECK_EQUAL(ended.fault.record, 1);
    CHECK_EQUAL(ended.fault.offset, 46);
    CHECK_EQUAL(ended.fault.got, k < 12 ? k : k < 42 ? k - 12 : k - 42);
    CHECK_EQUAL(ended.fault.expected, k < 12 ? 12u : k < 42 ? 30u : 4u);
  }
}

TEST(every_flipped_bit_is_reported) {
  int reported = 0;
  for (std::size_t bit = 0; bit < 138 * 8; ++bit) {
    auto data = three();
    data[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const auto progress = tfrio::count(data, 0, {.final = true});
    if (progress.fault && progress.records == static_cast<std::int64_t>(bit / 8 / 46)) ++reported;
  }
  CHECK_EQUAL(reported, 1104);
}

TEST(checks_can_be_left_out_for_payloads_only) {
  auto data = three();
  data[60] ^= 1;
  CHECK(tfrio::count(data, 0, {}).fault.code == FaultCode::payload_crc);
  CHECK_EQUAL(tfrio::count(data, 0, {.verify_payload = false}).records, 3);
  data[54] ^= 1;
  const auto progress = tfrio::count(data, 0, {.verify_payload = false});
  CHECK(progress.fault.code == FaultCode::length_crc);
  CHECK_EQUAL(progress.fault.expected ^ progress.fault.got, 1u);
}

TEST(zero_tail_is_no_record) {
  auto data = three();
  data.resize(data.size() + 4096);
  const auto progress = tfrio::count(data, 0, {});
  CHECK_EQUAL(progress.records, 3);
  CHECK(progress.fault.code == FaultCode::length_crc);
  CHECK_EQUAL(progress.fault.expected, 0x07980329u);
}

TEST(absurd_length_is_refused_at_once) {
  for (std::uint64_t length : {std::uint64_t{1} << 50, ~std::uint64_t{0}}) {
    std::vector<std::uint8_t> data(14);
    tfrio::write_header(data.data(), length);
    for (bool final : {false, true}) {
      const auto progress = tfrio::count(data, 0, {.final = final});
      CHECK(progress.fault.code == FaultCode::too_long);
      CHECK_EQUAL(progress.fault.expected, length);
      CHECK_EQUAL(progress.fault.got, 2u);
    }
  }
}

TEST(find_record_steps_over_junk) {
  auto data = three();
  data.insert(data.begin() + 46, 37, 0);
  auto found = tfrio::find_record(data, 1, true);
  CHECK_EQUAL(found.offset, 83);
  CHECK(found.certain);
  found = tfrio::find_record(data, 84, false);
  CHECK_EQUAL(found.offset, 83 + 46);
}

TEST(find_record_needs_a_good_payload) {
  auto data = three();
  data[46 + 20] ^= 1;
  CHECK_EQUAL(tfrio::find_record(data, 1, true).offset, 92);
  const Bytes cut = Bytes(data).first(92 + 30);
  CHECK(!tfrio::find_record(cut, 47, false).certain);
  CHECK_EQUAL(tfrio::find_record(cut, 47, false).offset, 92);
  CHECK_EQUAL(tfrio::find_record(cut, 47, true).offset, -1);
}

TEST(find_record_takes_its_time_but_not_more) {
  // A header at every 12th byte, each with a payload that reaches close to the end: checking each
  // of them byte by byte would take minutes.
  const std::size_t size = 3 << 20;
  std::vector<std::uint8_t> data(size);
  for (std::size_t at = 0; at + 200 < size; at += 12) {
    tfrio::write_header(data.data() + at, size - at - 100);
  }
  CHECK_EQUAL(tfrio::find_record(data, 0, true).offset, -1);
  // The right one among them is still found: the last record, whose checksum is made to fit.
  const std::size_t at = size / 2 / 12 * 12, length = size - at - 100;
  const Bytes payload = Bytes(data).subspan(at + 12, length);
  tfrio::store32(data.data() + at + 12 + length, tfrio::mask_crc(tfrio::crc32c(payload)));
  CHECK_EQUAL(tfrio::find_record(data, 0, true).offset, static_cast<std::int64_t>(at));
}

}  // namespace
