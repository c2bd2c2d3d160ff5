// Growing arrays of plain values that are not zeroed, and that can be handed over whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "tfrio/memory.hpp"

namespace tfrio {

/// Thrown where borrowed memory has no room for more values.
struct OutputFull {};

/// A vector of trivially copyable values for output: growing moves pages instead of copying where
/// the system can, new room is not zeroed, and `release` hands the memory to whoever gives it back
/// with memory::release. Throws std::bad_alloc when memory runs out.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (!borrowed_) memory::release(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  /// Make room for `more` values after the present ones, growing at least by half.
  void reserve_more(std::size_t more) {
    if (more > capacity_ - size_) grow(more);
  }

  /// Add `more` values without setting them; return where they start.
  T* extend(std::size_t more) {
    reserve_more(more);
    T* place = data_ + size_;
    size_ += more;
    return place;
  }

  void push_back(T value) { *extend(1) = value; }

  void append(const T* values, std::size_t n) {
    if (n > 0) std::memcpy(extend(n), values, n * sizeof(T));
  }

  void append_zeros(std::size_t n) {
    if (n > 0) std::memset(extend(n), 0, n * sizeof(T));
  }

  /// Forget all values after the first `size`.
  void truncate(std::size_t size) { size_ = std::min(size, size_); }
  void clear() { size_ = 0; }

  /// Give the memory away; the buffer is empty afterwards. May return nullptr.
  T* release() {
    size_ = capacity_ = 0;
    borrowed_ = false;
    return std::exchange(data_, nullptr);
  }

  /// Write into `capacity` values of somebody else's memory from now on, and never beyond them.
  void borrow(T* data, std::size_t capacity) {
    Buffer().swap(*this);
    data_ = data;
    capacity_ = capacity;
    borrowed_ = true;
  }
  bool borrowed() const { return borrowed_; }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(borrowed_, other.borrowed_);
  }

 private:
  void grow(std::size_t more) {
    constexpr std::size_t kMost = SIZE_MAX / 2 / sizeof(T);
    if (borrowed_) throw OutputFull();
    if (more > kMost - size_) throw std::bad_alloc();
    std::size_t bytes = std::max({size_ + more, capacity_ + capacity_ / 2, kLeast}) * sizeof(T);
    void* data = memory::enlarge(data_, size_ * sizeof(T), bytes);
    if (data == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(data);
    capacity_ = bytes / sizeof(T);
  }

  static constexpr std::size_t kLeast = sizeof(T) >= 64 ? 1 : 64 / sizeof(T);
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  bool borrowed_ = false;
};

}  // namespace tfrio
