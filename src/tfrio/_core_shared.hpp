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
#include <optional>
#include <thread>

#include "tfrio/buffer.hpp"
#include "tfrio/bytes.hpp"
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

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::c_contig>;

/// Return the values of `buffer` as an array of `shape` that owns the memory.
template <class T, class From>
Array<T> to_array(Buffer<From>&& buffer, std::initializer_list<std::size_t> shape) {
  void* memory = buffer.release();
  if (memory == nullptr) {  // NumPy wants an address even for no values
    std::size_t least = 1;
    memory = memory::enlarge(nullptr, 0, least);
  }
  nb::capsule owner(memory, [](void* p) noexcept { memory::release(p); });
  return Array<T>(static_cast<T*>(memory), shape, owner);
}

/// Return the values of `buffer` as a flat array that owns the memory.
template <class T>
Array<T> to_array(Buffer<T>&& buffer) {
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
