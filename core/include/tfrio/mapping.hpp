// Files mapped into memory, read safely even while somebody else cuts them short.
//
// To touch a page of a mapping that its file no longer has, or that the disk cannot deliver, raises
// SIGBUS, which ends a process. While a FileMap lives, such a page reads as zeros instead, and the
// map remembers it: whoever used its bytes asks `whole` afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tfrio/bytes.hpp"

namespace tfrio {

class FileMap {
 public:
  /// Whether this platform has what FileMap needs.
  static bool supported();

  /// Map `size` bytes (at least 1) from `offset` of the open file `descriptor`, of which a
  /// duplicate is kept. Pages come as they are touched: Linux then maps many at once, and reads
  /// 25 GB/s from its cache where filling the whole mapping first comes to 15.
  /// On failure `error` holds the number of the system's error, and there are no bytes.
  FileMap(int descriptor, std::uint64_t offset, std::size_t size);
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  Bytes bytes() const { return bytes_; }

  /// Number of the system's error that kept the file from being mapped, 0 for none.
  int error() const { return error_; }

  /// Return whether the file still has the first `end` bytes mapped, and had them whenever they
  /// were used.
  bool whole(std::size_t end) const;

 private:
  Bytes bytes_;
  std::uint64_t offset_ = 0;
  std::size_t skipped_ = 0;  // bytes between the start of a page and that of bytes_
  int descriptor_ = -1;
  int error_ = 0;
  struct Guarded* guarded_ = nullptr;
};

}  // namespace tfrio
