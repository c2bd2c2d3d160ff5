// Framed Examples to columns.
#include "tfrio/decoder.hpp"

#include <stdexcept>
#include <utility>

#include "decoder_guard.hpp"

namespace tfrio {
namespace {

/// Records predicted at once: as many as stay in the first-level cache while all columns take
/// their values, and enough for the CRC unit's lock step.
constexpr std::size_t kRunRecords = 64;
constexpr std::size_t kRunBytes = 16 << 10;

/// Payloads from this size on are checked and copied out in one pass, where they hold runs of
/// values of at least this size.
constexpr std::size_t kLargePayload = 8 << 10;
constexpr std::size_t kLongRun = 4 << 10;

/// Records of a shuffled batch that are asked of the memory before their turn, and how many bytes
/// of each at most: those that follow come by themselves, as they are read in order.
constexpr std::size_t kAhead = 2 * kRunRecords;
constexpr std::size_t kReach = 512;

/// Return how many of the first `most` records of `rest` have the layout.
std::size_t matching_records(const Layout& layout, Bytes rest, std::int64_t most) {
  const std::size_t stride = layout.length() + kFrameSize;
  const std::size_t in_cache = std::clamp<std::size_t>(kRunBytes / stride, 1, kRunRecords);
  const std::size_t limit =
      std::min({rest.size() / stride, static_cast<std::size_t>(most), in_cache});
  return layout.matching(rest.data(), limit);
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
    : locator_(options), heads_(features.size()) {
  columns_.reserve(features.size());
  for (const FeatureSpec& spec : features) {
    check_spec(spec, options, locator_);
    locator_.list(spec.name, spec.place);
    columns_.emplace_back(spec);
  }
  ordinary_seen_.resize(columns_.size());
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
  if (add_ordinary(payload)) return true;
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

ExampleDecoder::Predicted ExampleDecoder::add_predicted(Bytes rest, std::int64_t most,
                                                        bool verify) {
  if (rest.size() < kHeaderSize) return {};
  const Layout* layout = layouts_.find(rest.data());
  if (layout == nullptr) return {};
  std::size_t n = matching_records(*layout, rest, most);
  if (n > 0 && verify) n = intact_records(*layout, rest, n);
  if (n > 0) n = add_rows(*layout, rest.subspan(kHeaderSize), n);
  if (n > 0) {
    layouts_.hit(layout->length());
  } else {
    layouts_.miss();
  }
  return {n, n * (layout->length() + kFrameSize)};
}

std::size_t ExampleDecoder::add_rows(const Layout& layout, Bytes payloads, std::size_t n) {
  const std::size_t stride = layout.length() + kFrameSize;
  std::size_t added = n;
  for (std::size_t i = 0; i < columns_.size() && added > 0; ++i) {
    added = columns_[i].add_rows(payloads.data(), stride, added, layout.shape(i), scratch_);
  }
  rows_ += static_cast<std::int64_t>(added);
  if (added < n) roll_back();
  return added;
}

std::size_t ExampleDecoder::add_record(Bytes data, std::size_t offset, const FrameOptions& options,
                                       Fault& fault) {
  const auto length = whole_record(data, offset, options.final, fault);
  if (!length) return 0;
  const Bytes payload = data.subspan(offset + kHeaderSize, *length);
  bool fine = false;
  if (options.verify_payload && *length >= kLargePayload) {
    fine = add_large(payload, fault);
    // Damage comes first: a damaged payload may well look malformed, too.
    if (!fine && fault.code != FaultCode::payload_crc) {
      Fault damage;
      if (!payload_matches(data, offset, *length, damage)) fault = damage;
    }
  } else {
    fine = (!options.verify_payload || payload_matches(data, offset, *length, fault)) &&
           add_payload(payload, fault);
  }
  if (!fine) return 0;
  layouts_.learn(payload, locator_, columns_);
  return *length + kFrameSize;
}

bool ExampleDecoder::add_large(Bytes payload, Fault& fault) {
  if (!locator_.locate(payload, fault)) return false;
  find_runs(payload);
  if (!copy_runs(payload, fault)) return false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (is_run_[i]) {
      columns_[i].close_row();
    } else if (!add_feature(i, fault)) {
      return false;
    }
  }
  ++rows_;
  return true;
}

void ExampleDecoder::find_runs(Bytes payload) {
  runs_.clear();
  is_run_.assign(columns_.size(), false);
  if (locator_.merged()) return;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const int number = static_cast<int>(i);
    if (!locator_.present(number) || locator_.value(number).size() < kLongRun) continue;
    const Bytes run = columns_[i].run_of(locator_.value(number), scratch_);
    if (run.size() < kLongRun) continue;
    runs_.push_back({static_cast<std::size_t>(run.data() - payload.data()), run.size(), i});
    is_run_[i] = true;
  }
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.offset < b.offset; });
}

bool ExampleDecoder::copy_runs(Bytes payload, Fault& fault) {
  std::uint32_t crc = 0;
  std::size_t at = 0;
  for (const Run& run : runs_) {
    crc = crc32c(payload.subspan(at, run.offset - at), crc);
    std::uint8_t* out = columns_[run.column].open_row(run.size);
    crc = copy_with_crc32c(out, payload.subspan(run.offset, run.size), crc);
    at = run.offset + run.size;
  }
  crc = mask_crc(crc32c(payload.subspan(at), crc));
  const std::uint32_t stored = load32(payload.data() + payload.size());
  if (crc == stored) return true;
  fault.code = FaultCode::payload_crc;
  fault.expected = crc;
  fault.got = stored;
  return false;
}

/// Call `add(most)`, which adds records, up to `most` of them at once, until it is done or an
/// output array is full; then return true.
template <class Add>
bool ExampleDecoder::until_full(Add add) {
  for (const std::int64_t at_once : {INT64_MAX, std::int64_t{1}}) {
    try {
      add(at_once);
      return false;
    } catch (const OutputFull&) {
      roll_back();  // of several records at once the first may fit
    }
  }
  return true;
}

Progress ExampleDecoder::feed(Bytes data, std::size_t start, const FrameOptions& options) {
  const Guard guard(*this);
  Progress progress;
  std::size_t offset = start;
  const std::int64_t most = room(options.max_records);
  until_full([&](std::int64_t at_once) {
    while (progress.records < most) {
      const Bytes rest = data.subspan(offset);
      const Predicted added =
          add_predicted(rest, std::min(most - progress.records, at_once), options.verify_payload);
      if (added.records > 0) {
        progress.records += static_cast<std::int64_t>(added.records);
        offset += added.size;
        continue;
      }
      const std::size_t size = add_record(data, offset, options, progress.fault);
      if (size == 0) break;
      offset += size;
      ++progress.records;
    }
  });
  progress.consumed = static_cast<std::int64_t>(offset - start);
  progress.fault.record = progress.records;
  progress.fault.offset = static_cast<std::int64_t>(offset);
  return progress;
}

Progress ExampleDecoder::feed_spans(Bytes data, std::span<const Span> spans,
                                    std::int64_t max_records) {
  const Guard guard(*this);
  Progress progress;
  const std::int64_t most = std::min(room(max_records), std::ssize(spans));
  until_full([&](std::int64_t) {
    for (; progress.records < most; ++progress.records) {
      const Span span = spans[static_cast<std::size_t>(progress.records)];
      const Bytes payload = data.subspan(static_cast<std::size_t>(span.offset),
                                         static_cast<std::size_t>(span.length));
      if (!add_span(payload, progress.fault)) {
        progress.fault.record = progress.records;
        progress.fault.offset = span.offset - static_cast<std::int64_t>(kHeaderSize);
        break;
      }
    }
  });
  progress.consumed = progress.records;
  return progress;
}

bool ExampleDecoder::add_span(Bytes payload, Fault& fault) {
  const Layout* layout = layouts_.find(payload.size());
  if (layout != nullptr) {
    if (layout->matches(payload.data()) && add_rows(*layout, payload, 1) == 1) {
      layouts_.hit(payload.size());
      return true;
    }
    layouts_.miss();
  }
  if (!add_payload(payload, fault)) return false;
  layouts_.learn(payload, locator_, columns_);
  return true;
}

Bytes ExampleDecoder::Places::rest(std::size_t k) const {
  const Bytes data = buffers[static_cast<std::size_t>(which[k])];
  const auto start = static_cast<std::uint64_t>(starts[k]);  // below 0 is beyond the end
  return data.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(start, data.size())));
}

std::size_t ExampleDecoder::add_scattered(const Places& places, std::size_t k, std::size_t most,
                                          bool verify) {
  const Bytes rest = places.rest(k);
  if (rest.size() < kFrameSize) return 0;
  const std::uint64_t length = load64(rest.data());
  if (length > rest.size() - kFrameSize) return 0;
  const std::size_t stride = static_cast<std::size_t>(length) + kFrameSize;
  const std::size_t limit =
      std::clamp<std::size_t>(kRunBytes / stride, 1, std::min(most, gathered_most_));
  std::size_t n = 0;
  if (limit < 2) {
    n = add_predicted(rest, 1, verify).records;
  } else {
    gathered_.clear();
    std::uint8_t* const records = gathered_.extend(limit * stride);
    std::size_t count = 0;
    for (; count < limit; ++count) {
      const Bytes next = places.rest(k + count);
      if (next.size() < stride || std::memcmp(next.data(), rest.data(), kHeaderSize) != 0) break;
      std::memcpy(records + count * stride, next.data(), stride);
    }
    n = add_predicted({records, count * stride}, static_cast<std::int64_t>(count), verify).records;
  }
  gathered_most_ = n == limit ? std::min(2 * limit, kRunRecords) : std::max<std::size_t>(n, 1);
  return n;
}

Progress ExampleDecoder::feed_at(std::span<const Bytes> buffers,
                                 std::span<const std::int32_t> which,
                                 std::span<const std::int64_t> starts, bool verify) {
  const Guard guard(*this);
  const FrameOptions options{1, verify, true};
  const Places places{buffers, which, starts};
  Progress progress;
  const std::int64_t most = std::min(room(-1), std::ssize(starts));
  std::size_t asked = 0, size = kReach;
  const bool full = until_full([&](std::int64_t at_once) {
    while (progress.records < most) {
      const auto k = static_cast<std::size_t>(progress.records);
      const std::size_t soon = std::min(k + kAhead, places.size());
      prefetch(std::exchange(asked, soon), soon, std::min(size, kReach),
               [&](std::size_t i) { return places.rest(i); });
      const Bytes rest = places.rest(k);
      const auto limit = static_cast<std::size_t>(std::min(most - progress.records, at_once));
      std::size_t n = add_scattered(places, k, limit, verify);
      if (n == 0) {
        const Bytes data = buffers[static_cast<std::size_t>(which[k])];
        if (add_record(data, data.size() - rest.size(), options, progress.fault) == 0) break;
        n = 1;
      }
      progress.records += static_cast<std::int64_t>(n);
      size = static_cast<std::size_t>(load64(rest.data())) + kFrameSize;
    }
  });
  progress.consumed = progress.records;
  if (progress.records < most && !full) {
    if (!progress.fault) {  // the place is the very end of its buffer, or outside
      progress.fault.code = FaultCode::header_cut;
      progress.fault.expected = kHeaderSize;
    }
    progress.fault.record = progress.records;
    progress.fault.offset = starts[static_cast<std::size_t>(progress.records)];
  }
  return progress;
}

void ExampleDecoder::set_output(std::size_t i, std::uint8_t* data, std::size_t size) {
  if (rows_ > 0) {
    throw std::invalid_argument("take() the rows gathered so far before setting an output array");
  }
  capacity_ = std::min(capacity_, columns_.at(i).borrow(data, size));
}

bool ExampleDecoder::writes_bytes_out() const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [](const Column& c) { return c.is_bytes() && c.borrowed(); });
}

void ExampleDecoder::forget() {
  rows_ = 0;
  roll_back();
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
