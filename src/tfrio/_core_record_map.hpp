// A mapped file whose records are asked for by number.
#pragma once

#include "_core_shared.hpp"

namespace tfrio::python {

using RecordOffsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// See the docstring in bind_payloads.
class RecordMap {
 public:
  RecordMap(nb::object data, RecordOffsets offsets, nb::callable size, std::int64_t end)
      : offsets_(std::move(offsets)), size_(std::move(size)), end_(end) {
    if (!data_.take(data.ptr())) throw nb::type_error("`data` must be a C-contiguous buffer");
    if (end > static_cast<std::int64_t>(data_.bytes().size())) {
      throw nb::value_error("`end` lies outside the buffer");
    }
  }

  Bytes bytes() const { return data_.bytes().first(static_cast<std::size_t>(end_)); }

  /// Return the offset of the header of a record, or nothing where the file was cut short since
  /// it was mapped: reading past its end would kill the process.
  std::optional<std::int64_t> start_of(std::int64_t number) const {
    if (number < 0 || static_cast<std::size_t>(number) >= offsets_.shape(0)) {
      throw nb::index_error("there is no such record");
    }
    if (nb::cast<std::int64_t>(size_()) < end_) return std::nullopt;
    return offsets_.data()[number];
  }

 private:
  BytesArgument data_;
  RecordOffsets offsets_;
  nb::callable size_;
  std::int64_t end_;
};

}  // namespace tfrio::python
