// Mapped files, and their records by number.
#pragma once

#include "_core_shared.hpp"
#include "tfrio/mapping.hpp"

namespace tfrio::python {

using RecordOffsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// A mapped file that knows what it is called.
class PyFileMap : public FileMap {
 public:
  PyFileMap(std::string name, int descriptor, std::uint64_t offset, std::size_t size)
      : FileMap(descriptor, offset, size), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// See the docstring in bind_payloads.
class RecordMap {
 public:
  RecordMap(nb::object data, RecordOffsets offsets, std::int64_t end)
      : map_(nb::cast<const PyFileMap*>(data)),
        data_(std::move(data)),
        offsets_(std::move(offsets)),
        end_(static_cast<std::size_t>(end)) {
    if (end < 0 || end_ > map_->bytes().size()) {
      throw nb::value_error("`end` lies outside the mapping");
    }
  }

  Bytes bytes() const { return map_->bytes().first(end_); }

  /// Return whether what was read of the records is what the file held.
  bool whole() const { return map_->whole(end_); }

  /// Return the offset of the header of a record.
  std::int64_t start_of(std::int64_t number) const {
    if (number < 0 || static_cast<std::size_t>(number) >= offsets_.shape(0)) {
      throw nb::index_error("there is no such record");
    }
    return offsets_.data()[number];
  }

 private:
  const PyFileMap* map_;
  nb::object data_;  // keeps the map
  RecordOffsets offsets_;
  std::size_t end_;
};

}  // namespace tfrio::python
