// What the binding files share: buffer arguments, faults and handing memory over to NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>

#include "tfrio/buffer.hpp"
#include "tfrio/bytes.hpp"
#include "tfrio/decoder.hpp"
#include "tfrio/fault.hpp"
#include "tfrio/framing.hpp"

namespace tfrio::python {

namespace nb = nanobind;

/// Work without the GIL while this lives.
///
/// Python ends a daemon thread that asks for the GIL while the interpreter shuts down by unwinding
/// its stack, which the destructors of nanobind do not let pass: the process would abort. Such a
/// thread waits here instead, for the end of the process (as Python 3.14 does itself).
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }

 private:
  PyThreadState* state_;
};

/// The bytes of any C-contiguous object with the buffer protocol, held while this lives.
class BytesArgument {
 public:
  BytesArgument() = default;
  BytesArgument(BytesArgument&& other) noexcept
      : view_(other.view_), held_(std::exchange(other.held_, false)) {}
  BytesArgument& operator=(BytesArgument&&) = delete;
  ~BytesArgument() {
    if (held_) PyBuffer_Release(&view_);
  }

  /// Take hold of the bytes of `object`; false where it has none.
  bool take(PyObject* object) {
    held_ = PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) == 0;
    if (!held_) PyErr_Clear();
    return held_;
  }

  Bytes bytes() const {
    return {static_cast<const std::uint8_t*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

/// Return `start` as an offset within `data`; IndexError where it lies outside.
inline std::size_t checked_start(std::int64_t start, Bytes data) {
  if (start < 0 || static_cast<std::uint64_t>(start) > data.size()) {
    throw nb::index_error("start lies outside the buffer");
  }
  return static_cast<std::size_t>(start);
}

/// The types of array items that the core hands out.
enum class ItemType : std::uint8_t { uint8, float32, int64 };

template <class T>
constexpr ItemType item_type() {
  if constexpr (std::is_same_v<T, float>) return ItemType::float32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ItemType::int64;
  static_assert(sizeof(T) == 1 || std::is_same_v<T, float> || std::is_same_v<T, std::int64_t>);
  return ItemType::uint8;
}

using Shape = std::span<const std::size_t>;

/// Get hold of NumPy; before any of the functions below.
void import_numpy();

/// Return a NumPy array over `memory`, which memory::release frees with the array.
nb::object array_over(void* memory, ItemType type, Shape shape);

/// Return a NumPy array of its own memory, not set, and in `memory` where that lies.
nb::object new_array(ItemType type, Shape shape, void*& memory);

/// Return a NumPy array over `memory`, which `owner` keeps.
nb::object array_within(nb::handle owner, void* memory, ItemType type, Shape shape);

/// Return a NumPy array of its own memory with a copy of the values at `values`.
nb::object array_of(const void* values, ItemType type, Shape shape);

/// Return the NumPy scalar at `value`.
nb::object scalar_of(const void* value, ItemType type);

/// Return the values of `buffer` as an array of `shape`: few are copied, many handed over.
template <class T, class From>
nb::object to_array(Buffer<From>&& buffer, std::initializer_list<std::size_t> shape) {
  constexpr std::size_t kCopied = 2048;  // bytes; copying these is quicker than an owner
  const Shape axes(shape.begin(), shape.size());
  Buffer<From> taken = std::move(buffer);
  if (taken.size() * sizeof(From) <= kCopied) return array_of(taken.data(), item_type<T>(), axes);
  return array_over(taken.release(), item_type<T>(), axes);
}

/// Return the values of `buffer` as a flat array.
template <class T>
nb::object to_array(Buffer<T>&& buffer) {
  const std::size_t size = buffer.size();
  return to_array<T, T>(std::move(buffer), {size});
}

/// The annotation of a read-only attribute that holds an array of `type`.
#define TFRIO_ARRAY_GETTER(name, type) \
  nb::for_getter(nb::sig("def " name "(self) -> numpy.typing.NDArray[numpy." type "]"))

/// One native object serves one thread at a time; the GIL does not guard it, being released.
class InUse {
 public:
  explicit InUse(std::atomic_flag& flag) : flag_(flag) {
    if (flag_.test_and_set(std::memory_order_acquire)) {
      throw std::runtime_error("this object is in use by another thread; make one per thread");
    }
  }
  InUse(const InUse&) = delete;
  ~InUse() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& flag_;
};

/// Return what the argument `utf8` says: whether names that are not UTF-8 are accepted.
inline bool accepts_any(std::string_view utf8) {
  if (utf8 == "accept") return true;
  if (utf8 != "error") throw nb::value_error("utf8 must be \"error\" or \"accept\"");
  return false;
}

/// A feature asked for: (name, kind, count, place).
using Asked = std::tuple<nb::bytes, int, std::int64_t, int>;

/// Return a decoder of `features`; ValueError where they make no sense.
std::unique_ptr<ExampleDecoder> make_decoder(const std::vector<Asked>& features, bool sequence,
                                             bool discover, std::string_view utf8);

/// Result of a feeding call.
struct Feed {
  std::int64_t consumed;
  std::int64_t records;
  std::optional<Fault> fault;
};

/// Return the fault of `progress`, None where there is none.
inline std::optional<Fault> fault_of(const Progress& progress) {
  if (!progress.fault) return std::nullopt;
  return progress.fault;
}

inline Feed feed_of(const Progress& progress) {
  return {progress.consumed, progress.records, fault_of(progress)};
}

}  // namespace tfrio::python

namespace nanobind::detail {

template <>
struct type_caster<tfrio::python::BytesArgument> {
  NB_TYPE_CASTER(tfrio::python::BytesArgument, const_name("typing_extensions.Buffer"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return value.take(source.ptr());
  }
};

}  // namespace nanobind::detail
