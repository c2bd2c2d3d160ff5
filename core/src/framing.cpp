// Walking, finding and writing framed records.
#include "tfrio/framing.hpp"

namespace tfrio {
namespace {

void set(Fault& fault, FaultCode code, std::uint64_t expected, std::uint64_t got) {
  fault.code = code;
  fault.expected = expected;
  fault.got = got;
}

bool header_matches(const std::uint8_t* p) {
  return mask_crc(crc32c_word(load64(p))) == load32(p + 8);
}

/// Checks payloads in time that does not grow with their number. A crafted buffer can hold a
/// header at every 12th byte, each claiming all that follows: once that has cost more than a few
/// passes over the buffer, the CRC of a payload is had from those of its two ends instead.
class PayloadCheck {
 public:
  explicit PayloadCheck(Bytes data) : data_(data), allowance_(8 * data.size()) {}

  bool matches(std::size_t offset, std::size_t length) {
    if (length <= allowance_) {
      allowance_ -= length;
      Fault fault;
      return payload_matches(data_, offset, length, fault);
    }
    const std::size_t first = offset + kHeaderSize, last = first + length;
    const std::uint32_t crc = crc32c_of_rest(crc_until(first), crc_until(last), length);
    return mask_crc(crc) == load32(data_.data() + last);
  }

 private:
  static constexpr std::size_t kStep = 4096;

  std::uint32_t crc_until(std::size_t end) {
    while (steps_.size() * kStep <= end) {
      const std::size_t at = steps_.size() * kStep;
      steps_.push_back(at == 0 ? 0 : crc32c(data_.subspan(at - kStep, kStep), steps_.back()));
    }
    const std::size_t at = end / kStep * kStep;
    return crc32c(data_.subspan(at, end - at), steps_[end / kStep]);
  }

  Bytes data_;
  std::size_t allowance_;             // bytes that may still be checked directly
  std::vector<std::uint32_t> steps_;  // CRC of the first i * kStep bytes
};

}  // namespace

std::optional<std::size_t> whole_record(Bytes data, std::size_t offset, bool final, Fault& fault) {
  const std::size_t rest = data.size() - offset;
  if (rest < kHeaderSize) {
    if (final && rest > 0) set(fault, FaultCode::header_cut, kHeaderSize, rest);
    return std::nullopt;
  }
  const std::uint8_t* header = data.data() + offset;
  const std::uint64_t length = load64(header);
  const std::uint32_t crc = mask_crc(crc32c_word(length)), stored = load32(header + 8);
  if (crc != stored) {
    set(fault, FaultCode::length_crc, crc, stored);
    return std::nullopt;
  }
  const std::uint64_t here = rest - kHeaderSize;
  if (length <= here && here - length >= kFooterSize) return length;
  if (length > kMaxPayload) {
    set(fault, FaultCode::too_long, length, here);
  } else if (final && length > here) {
    set(fault, FaultCode::payload_cut, length, here);
  } else if (final) {
    set(fault, FaultCode::footer_cut, kFooterSize, here - length);
  }
  return std::nullopt;
}

bool payload_matches(Bytes data, std::size_t offset, std::size_t length, Fault& fault) {
  const std::uint8_t* payload = data.data() + offset + kHeaderSize;
  const std::uint32_t crc = mask_crc(crc32c({payload, length})), stored = load32(payload + length);
  if (crc == stored) return true;
  set(fault, FaultCode::payload_crc, crc, stored);
  return false;
}

Progress scan(Bytes data, std::size_t start, const FrameOptions& options, Buffer<Span>& spans) {
  return walk_records(data, start, options, options.max_records, [&](Bytes payload, Fault&) {
    spans.push_back({payload.data() - data.data(), static_cast<std::int64_t>(payload.size())});
    return true;
  });
}

Progress count(Bytes data, std::size_t start, const FrameOptions& options) {
  return walk_records(data, start, options, options.max_records,
                      [](Bytes, Fault&) { return true; });
}

Found find_record(Bytes data, std::size_t start, bool final) {
  PayloadCheck check(data);
  for (std::size_t at = start; at + kHeaderSize <= data.size(); ++at) {
    const std::uint64_t length = load64(data.data() + at);
    if (length > kMaxPayload || !header_matches(data.data() + at)) continue;
    const std::uint64_t here = data.size() - at - kHeaderSize;
    if (length + kFooterSize > here) {
      if (!final) return {static_cast<std::int64_t>(at), false};
      continue;
    }
    if (check.matches(at, length)) return {static_cast<std::int64_t>(at), true};
  }
  return {-1, true};
}

void write_header(std::uint8_t* out, std::uint64_t length) {
  store64(out, length);
  store32(out + 8, mask_crc(crc32c_word(length)));
}

void write_record(std::uint8_t* out, Bytes payload) {
  write_header(out, payload.size());
  if (!payload.empty()) std::memcpy(out + kHeaderSize, payload.data(), payload.size());
  store32(out + kHeaderSize + payload.size(), mask_crc(crc32c(payload)));
}

}  // namespace tfrio
