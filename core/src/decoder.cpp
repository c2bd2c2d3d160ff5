// Framed Examples to columns.
#include "tfrio/decoder.hpp"

#include <stdexcept>

namespace tfrio {
namespace {

/// Records predicted at once: as many as stay in the first-level cache while all columns take
/// their values, and enough for the CRC unit's lock step.
constexpr std::size_t kRunRecords = 64;
constexpr std::size_t kRunBytes = 16 << 10;

/// Return how many of the first `most` records of `rest` have the layout.
std::size_t matching_records(const Layout& layout, Bytes rest, std::int64_t most) {
  const std::size_t stride = layout.length() + kFrameSize;
  const std::size_t in_cache = std::clamp<std::size_t>(kRunBytes / stride, 1, kRunRecords);
  const std::size_t limit =
      std::min({rest.size() / stride, static_cast<std::size_t>(most), in_cache});
  std::size_t n = 0;
  for (const std::uint8_t* record = rest.data(); n < limit; ++n, record += stride) {
    if (std::memcmp(record, layout.header(), kHeaderSize) != 0) break;
    if (!layout.matches(record + kHeaderSize)) break;
  }
  return n;
}

/// Return how many of the first `n` records of `rest` match the checksums of their payloads.
std::size_t intact_records(const Layout& layout, Bytes rest, std::size_t n) {
  const std::uint8_t* payload = rest.data() + kHeaderSize;
  const std::size_t stride = layout.length() + kFrameSize;
  std::uint32_t crcs[kRunRecords];
  crc32c_blocks(payload, stride, layout.length(), n, crcs);
  for (std::size_t i = 0; i < n; ++i, payload += stride) {
    if (mask_crc(crcs[i]) != load32(payload + layout.length())) return i;
  }
  return n;
}

void check_spec(const FeatureSpec& spec, const PayloadOptions& options, const Locator& locator) {
  const std::string who = "feature '" + spec.name + "': ";
  if (spec.kind != Kind::bytes && spec.kind != Kind::floats && spec.kind != Kind::int64s) {
    throw std::invalid_argument(who + "the kind must be 1 (bytes), 2 (float) or 3 (int64)");
  }
  if (spec.count < -1 || spec.count > std::int64_t{1} << 40) {
    throw std::invalid_argument(who + "the count must be -1 (any) or the number of values");
  }
  if (spec.place == Place::list && !options.sequence) {
    throw std::invalid_argument(who + "only a SequenceExample has feature lists");
  }
  if (locator.find(spec.name, spec.place) >= 0) {
    throw std::invalid_argument(who + "listed twice");
  }
}

}  // namespace

ExampleDecoder::ExampleDecoder(std::vector<FeatureSpec> features, const PayloadOptions& options)
    : locator_(options) {
  columns_.reserve(features.size());
  for (const FeatureSpec& spec : features) {
    check_spec(spec, options, locator_);
    locator_.list(spec.name, spec.place);
    columns_.emplace_back(spec);
  }
}

void ExampleDecoder::begin() {
  for (Column& column : columns_) column.begin();
}

void ExampleDecoder::roll_back() {
  for (Column& column : columns_) column.truncate(static_cast<std::size_t>(rows_));
}

std::int64_t ExampleDecoder::room(std::int64_t max_records) const {
  const std::int64_t room = capacity_ - rows_;
  return max_records < 0 ? room : std::min(room, max_records);
}

bool ExampleDecoder::add_feature(std::size_t i, Fault& fault) {
  Column& column = columns_[i];
  const int number = static_cast<int>(i);
  if (!locator_.present(number)) {
    column.add_absent();
    return true;
  }
  const Bytes value = locator_.value(number);
  scratch_.error = {};
  const bool fine = column.is_list() ? column.add_feature_list(value, scratch_, fault)
                                     : column.add_feature(value, scratch_, fault);
  if (fine) return true;
  fault.feature = column.spec().name;
  if (scratch_.error.at != nullptr) {
    fault.code = FaultCode::wire;
    fault.at = locator_.offset_of(scratch_.error.at);
    fault.reason = scratch_.error.reason;
  }
  return false;
}

bool ExampleDecoder::add_payload(Bytes payload, Fault& fault) {
  if (!locator_.locate(payload, fault)) return false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!add_feature(i, fault)) return false;
  }
  ++rows_;
  return true;
}

/// Puts the columns back to whole rows when a record faults or memory runs out.
struct RollBack {
  explicit RollBack(ExampleDecoder& decoder, void (ExampleDecoder::*undo)())
      : decoder(decoder), undo(undo) {}
  ~RollBack() { (decoder.*undo)(); }
  ExampleDecoder& decoder;
  void (ExampleDecoder::*undo)();
};

Progress ExampleDecoder::feed(Bytes data, std::size_t start, const FrameOptions& options) {
  begin();
  const RollBack guard(*this, &ExampleDecoder::roll_back);
  Progress progress;
  std::size_t offset = start;
  const std::int64_t most = room(options.max_records);
  while (progress.records < most) {
    const Bytes rest = data.subspan(offset);
    if (const std::size_t n =
            add_predicted(rest, most - progress.records, options.verify_payload)) {
      progress.records += static_cast<std::int64_t>(n);
      offset += n * (static_cast<std::size_t>(load64(rest.data())) + kFrameSize);
      continue;
    }
    const auto length = whole_record(data, offset, options.final, progress.fault);
    if (!length) break;
    if (options.verify_payload && !payload_matches(data, offset, *length, progress.fault)) break;
    const Bytes payload = data.subspan(offset + kHeaderSize, *length);
    if (!add_payload(payload, progress.fault)) break;
    layouts_.learn(payload, locator_, columns_);
    offset += *length + kFrameSize;
    ++progress.records;
  }
  progress.consumed = static_cast<std::int64_t>(offset - start);
  progress.fault.record = progress.records;
  progress.fault.offset = static_cast<std::int64_t>(offset);
  return progress;
}

std::size_t ExampleDecoder::add_predicted(Bytes rest, std::int64_t most, bool verify) {
  if (rest.size() < kHeaderSize) return 0;
  const Layout* layout = layouts_.find(rest.data());
  if (layout == nullptr) return 0;
  std::size_t n = matching_records(*layout, rest, most);
  if (verify && n > 0) n = intact_records(*layout, rest, n);
  const std::size_t added = n > 0 ? add_records(*layout, rest, n) : 0;
  if (added > 0) {
    layouts_.hit(layout->length());
  } else {
    layouts_.miss();
  }
  return added;
}

std::size_t ExampleDecoder::add_records(const Layout& layout, Bytes records, std::size_t n) {
  const std::uint8_t* payload = records.data() + kHeaderSize;
  const std::size_t stride = layout.length() + kFrameSize;
  std::size_t added = n;
  for (std::size_t i = 0; i < columns_.size() && added > 0; ++i) {
    added = columns_[i].add_rows(payload, stride, added, layout.shape(i), scratch_);
  }
  rows_ += static_cast<std::int64_t>(added);
  if (added < n) roll_back();
  return added;
}

Progress ExampleDecoder::feed_spans(Bytes data, std::span<const Span> spans,
                                    std::int64_t max_records) {
  begin();
  const RollBack guard(*this, &ExampleDecoder::roll_back);
  Progress progress;
  const std::int64_t most =
      std::min<std::int64_t>(room(max_records), static_cast<std::int64_t>(spans.size()));
  for (; progress.records < most; ++progress.records) {
    const Span span = spans[static_cast<std::size_t>(progress.records)];
    const Bytes payload =
        data.subspan(static_cast<std::size_t>(span.offset), static_cast<std::size_t>(span.length));
    if (!add_payload(payload, progress.fault)) {
      progress.fault.record = progress.records;
      progress.fault.offset = span.offset - static_cast<std::int64_t>(kHeaderSize);
      break;
    }
  }
  progress.consumed = progress.records;
  return progress;
}

Progress ExampleDecoder::feed_at(std::span<const Bytes> buffers,
                                 std::span<const std::int32_t> which,
                                 std::span<const std::int64_t> starts, bool verify) {
  begin();
  const RollBack guard(*this, &ExampleDecoder::roll_back);
  Progress progress;
  const std::int64_t most =
      std::min<std::int64_t>(room(-1), static_cast<std::int64_t>(starts.size()));
  for (; progress.records < most; ++progress.records) {
    const auto k = static_cast<std::size_t>(progress.records);
    const Bytes data = buffers[static_cast<std::size_t>(which[k])];
    const std::size_t offset =
        starts[k] < 0 ? data.size() : std::min<std::size_t>(starts[k], data.size());
    const auto length = whole_record(data, offset, true, progress.fault);
    if (!length || (verify && !payload_matches(data, offset, *length, progress.fault)) ||
        !add_payload(data.subspan(offset + kHeaderSize, *length), progress.fault)) {
      if (!progress.fault) {
        progress.fault.code = FaultCode::header_cut;
        progress.fault.expected = kHeaderSize;
      }
      progress.fault.record = progress.records;
      progress.fault.offset = starts[k];
      break;
    }
  }
  progress.consumed = progress.records;
  return progress;
}

void ExampleDecoder::set_output(std::size_t i, std::uint8_t* data, std::size_t size) {
  if (rows_ > 0) {
    throw std::invalid_argument("take() the rows gathered so far before setting an output array");
  }
  const std::size_t rows = columns_.at(i).borrow(data, size);
  capacity_ = std::min(capacity_, static_cast<std::int64_t>(rows));
}

std::vector<ColumnArrays> ExampleDecoder::take() {
  std::vector<ColumnArrays> arrays;
  arrays.reserve(columns_.size());
  for (Column& column : columns_) arrays.push_back(column.take());
  rows_ = 0;
  capacity_ = INT64_MAX;
  return arrays;
}

}  // namespace tfrio
