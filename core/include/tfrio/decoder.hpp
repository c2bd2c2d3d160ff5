// Framed tf.train.Examples or SequenceExamples to columns.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "tfrio/column.hpp"
#include "tfrio/framing.hpp"
#include "tfrio/heads.hpp"
#include "tfrio/layout.hpp"
#include "tfrio/locator.hpp"

namespace tfrio {

/// Decodes records into columns that live until take(). Every record is whole or not there: a
/// record at fault adds nothing to any column. One object serves one thread at a time.
class ExampleDecoder {
 public:
  /// Ask for `features`, each name and place once. Throws std::invalid_argument for a list that
  /// makes no sense. `options.unlisted` is skip or refuse.
  ExampleDecoder(std::vector<FeatureSpec> features, const PayloadOptions& options);

  /// Decode the framed records of `data` from `start` until the data ends, a record is at fault,
  /// options.max_records are decoded or an output array is full.
  Progress feed(Bytes data, std::size_t start, const FrameOptions& options);

  /// Decode the payloads at `spans` of `data`, whose checksums the caller has checked. In the
  /// result `consumed` is the number of spans done, and a fault's offset is that of the header 12
  /// bytes before the payload. Spans must lie within `data`.
  Progress feed_spans(Bytes data, std::span<const Span> spans, std::int64_t max_records);

  /// Decode framed records in any order: record k has its header at offset starts[k] of
  /// buffers[which[k]]. `consumed` is the number of records done; a fault's record is k, its
  /// offset starts[k]. A place outside its buffer is a cut record.
  Progress feed_at(std::span<const Bytes> buffers, std::span<const std::int32_t> which,
                   std::span<const std::int64_t> starts, bool verify);

  /// As feed(), on up to `threads` threads where there is enough to do. The result is the same.
  Progress feed(Bytes data, std::size_t start, const FrameOptions& options, unsigned threads);

  /// As feed_at(), on up to `threads` threads. The result is the same.
  Progress feed_at(std::span<const Bytes> buffers, std::span<const std::int32_t> which,
                   std::span<const std::int64_t> starts, bool verify, unsigned threads);

  /// Number of rows gathered since the last take().
  std::int64_t rows() const { return rows_; }

  /// Write feature `i`, bytes or a fixed number of numbers in an Example or a context, straight
  /// into the `size` bytes at `data` until the next take(). Feeding stops before a record that does
  /// not fit an output. Throws std::invalid_argument for another kind of feature, or where rows are
  /// waiting already.
  void set_output(std::size_t i, std::uint8_t* data, std::size_t size);

  /// Hand over the columns, in the order of the features; the decoder is empty afterwards.
  std::vector<ColumnArrays> take();

  /// Forget the rows gathered; their memory stays for the next ones.
  void forget();

  /// Hand over the values of feature `i` alone; to be followed by forget().
  Buffer<std::uint8_t> take_values(std::size_t i) { return std::move(columns_[i].arrays().values); }

  std::size_t size() const { return columns_.size(); }
  const Column& column(std::size_t i) const { return columns_[i]; }

 private:
  class Guard;

  /// A range of the records of a call, and what came of it.
  struct Part {
    std::size_t first, last;
    Progress progress;
    std::exception_ptr error;
  };

  /// Records taken under the layout of the last ones, and the bytes they fill with their frames.
  struct Predicted {
    std::size_t records = 0, size = 0;
  };

  /// Framed records in any order over several buffers.
  struct Places {
    std::span<const Bytes> buffers;
    std::span<const std::int32_t> which;
    std::span<const std::int64_t> starts;

    std::size_t size() const { return starts.size(); }
    /// Return the buffer of record `k` from its header on; nothing where that lies outside.
    Bytes rest(std::size_t k) const;
  };

  bool add_payload(Bytes payload, Fault& fault);
  bool add_feature(std::size_t i, Fault& fault);
  std::size_t add_record(Bytes data, std::size_t offset, const FrameOptions& options, Fault& fault);
  bool add_ordinary(Bytes payload);
  bool add_ordinary_maps(Bytes payload);
  bool add_ordinary_map(Bytes map, Place place, std::size_t& found);
  bool add_headed_entry(Bytes entry, std::size_t& found);
  bool add_ordinary_entry(Bytes entry, Bytes name, Bytes value, Place place, std::size_t& found);
  bool see(std::size_t i, std::size_t& found);
  bool add_span(Bytes payload, Fault& fault);
  Predicted add_predicted(Bytes rest, std::int64_t most, bool verify);
  std::size_t add_scattered(const Places& places, std::size_t k, std::size_t most, bool verify);
  std::size_t add_rows(const Layout& layout, Bytes payloads, std::size_t n);
  bool add_large(Bytes payload, Fault& fault);
  void find_runs(Bytes payload);
  bool copy_runs(Bytes payload, Fault& fault);
  void roll_back();
  template <class Add>
  bool until_full(Add add);
  bool writes_bytes_out() const;
  std::int64_t room(std::int64_t max_records) const;
  static Progress stopped(std::vector<Part>& parts, std::size_t done, std::size_t consumed);
  ExampleDecoder& helper(std::size_t i);
  void begin();
  void clear();
  template <class Work>
  std::size_t share(std::vector<Part>& parts, Work work);

  /// A long run of values that makes up a whole row of a column and is copied as it is.
  struct Run {
    std::size_t offset, size, column;
  };

  std::vector<Column> columns_;
  Locator locator_;
  LayoutCache layouts_;
  EntryHeads heads_;
  Scratch scratch_;
  std::vector<std::uint64_t> ordinary_seen_;  // by column: stamp of the payload that had it last
  std::uint64_t ordinary_stamp_ = 0;
  unsigned ordinary_failures_ = 0;  // payloads in a row that were not ordinary
  unsigned ordinary_pause_ = 0;     // payloads not to try
  Buffer<std::uint8_t> gathered_;   // records from many places, side by side
  std::size_t gathered_most_ = 1;   // records to gather next: as many as had one layout lately
  std::vector<Run> runs_;           // of the payload in hand, in the order in which they lie
  std::vector<bool> is_run_;        // by column
  std::vector<std::unique_ptr<ExampleDecoder>> helpers_;  // for other threads, kept over calls
  std::int64_t rows_ = 0;
  std::int64_t capacity_ = INT64_MAX;  // rows that fit the output arrays
};

}  // namespace tfrio
