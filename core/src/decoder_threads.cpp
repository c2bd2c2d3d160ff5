// Feeding on several threads: each decodes a range of the records, then the ranges are put together
// in order.
#include <algorithm>
#include <system_error>
#include <thread>

#include "decoder_guard.hpp"
#include "tfrio/decoder.hpp"

namespace tfrio {
namespace {

/// Least bytes that are worth a thread of their own: starting one takes some 50 microseconds.
constexpr std::size_t kLeastBytes = 1 << 20;

/// Least records of a shuffled batch that are worth a thread.
constexpr std::size_t kLeastRecords = 64;

/// Return where to cut `spans` into `parts` ranges of about the same number of bytes.
std::vector<std::size_t> cut_by_bytes(const Buffer<Span>& spans, std::size_t parts) {
  const std::int64_t begin = spans[0].offset;
  const auto size = static_cast<double>(spans.data()[spans.size() - 1].offset - begin);
  std::vector<std::size_t> cuts{0};
  for (std::size_t i = 1; i < parts; ++i) {
    const auto at = begin + static_cast<std::int64_t>(size * static_cast<double>(i) /
                                                      static_cast<double>(parts));
    const Span* place =
        std::lower_bound(spans.data() + cuts.back(), spans.data() + spans.size(), at,
                         [](const Span& s, std::int64_t o) { return s.offset < o; });
    cuts.push_back(static_cast<std::size_t>(place - spans.data()));
  }
  cuts.push_back(spans.size());
  return cuts;
}

/// Call `run(0)` to `run(n - 1)`, all but the first on threads of their own, and wait for all.
template <class Run>
void run_all(std::size_t n, Run run) {
  std::vector<std::thread> threads;
  threads.reserve(n);
  std::size_t next = 1;
  try {
    for (; next < n; ++next) threads.emplace_back(run, next);
  } catch (const std::system_error&) {
    // No more threads to be had: the rest is done here.
  }
  run(0);
  for (; next < n; ++next) run(next);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

ExampleDecoder& ExampleDecoder::helper(std::size_t i) {
  while (helpers_.size() <= i) {
    std::vector<FeatureSpec> specs;
    for (const Column& column : columns_) specs.push_back(column.spec());
    helpers_.push_back(std::make_unique<ExampleDecoder>(std::move(specs), locator_.options()));
  }
  return *helpers_[i];
}

void ExampleDecoder::clear() {
  for (Column& column : columns_) {
    if (column.borrowed()) {
      column.take();
    } else {
      column.truncate(0);
    }
  }
  rows_ = 0;
  capacity_ = INT64_MAX;
}

template <class Work>
std::size_t ExampleDecoder::share(std::vector<Part>& parts, Work work) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    helper(p).begin();
    helper(p).clear();
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].has_places()) continue;
    const std::size_t size = columns_[i].fixed_size();
    std::uint8_t* place = columns_[i].open_places(parts.back().last);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::size_t n = parts[p].last - parts[p].first;
      helper(p).set_output(i, place + parts[p].first * size, n * size);
    }
  }
  const auto run = [&](std::size_t p) {
    try {
      parts[p].progress = work(helper(p), parts[p]);
    } catch (...) {
      parts[p].error = std::current_exception();
    }
  };
  run_all(parts.size(), run);
  std::size_t done = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    if (part.error) std::rethrow_exception(part.error);
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].append(helper(p).columns_[i]);
    rows_ += part.progress.records;
    done += static_cast<std::size_t>(part.progress.records);
    if (done < part.last) break;
  }
  return done;
}

Progress ExampleDecoder::feed(Bytes data, std::size_t start, const FrameOptions& options,
                              unsigned threads) {
  const std::size_t worth = (data.size() - start) / kLeastBytes;
  const std::size_t most = std::min<std::size_t>(threads, worth);
  if (most < 2 || writes_bytes_out()) return feed(data, start, options);
  Buffer<Span> spans;
  Progress all = scan(data, start, {room(options.max_records), false, options.final}, spans);
  if (spans.size() < most) return feed(data, start, options);
  const std::vector<std::size_t> cuts = cut_by_bytes(spans, most);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < most; ++i) {
    if (cuts[i] < cuts[i + 1]) parts.push_back({cuts[i], cuts[i + 1], {}, nullptr});
  }
  const auto header = [&](std::size_t record) {
    return static_cast<std::size_t>(spans[record].offset) - kHeaderSize;
  };
  const Guard guard(*this);
  const std::size_t done = share(parts, [&](ExampleDecoder& decoder, const Part& part) {
    const auto n = static_cast<std::int64_t>(part.last - part.first);
    return decoder.feed(data, header(part.first), {n, options.verify_payload, false});
  });
  if (done == spans.size()) return all;
  return stopped(parts, done, header(done) - start);
}

Progress ExampleDecoder::feed_at(std::span<const Bytes> buffers,
                                 std::span<const std::int32_t> which,
                                 std::span<const std::int64_t> starts, bool verify,
                                 unsigned threads) {
  const auto n = static_cast<std::size_t>(std::min(room(-1), std::ssize(starts)));
  const std::size_t most = std::min<std::size_t>(threads, n / kLeastRecords);
  if (most < 2 || writes_bytes_out()) return feed_at(buffers, which, starts, verify);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < most; ++i) {
    parts.push_back({n * i / most, n * (i + 1) / most, {}, nullptr});
  }
  const Guard guard(*this);
  const std::size_t done = share(parts, [&](ExampleDecoder& decoder, const Part& part) {
    const std::size_t size = part.last - part.first;
    return decoder.feed_at(buffers, which.subspan(part.first, size),
                           starts.subspan(part.first, size), verify);
  });
  Progress progress = stopped(parts, done, done);
  return progress;
}

Progress ExampleDecoder::stopped(std::vector<Part>& parts, std::size_t done, std::size_t consumed) {
  Progress progress;
  progress.records = static_cast<std::int64_t>(done);
  progress.consumed = static_cast<std::int64_t>(consumed);
  for (Part& part : parts) {
    if (done < part.first || done >= part.last) continue;
    progress.fault = std::move(part.progress.fault);
    progress.fault.record = progress.records;
  }
  return progress;
}

}  // namespace tfrio
