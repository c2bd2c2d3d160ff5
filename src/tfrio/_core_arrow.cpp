// Ownership of Arrow structs that Python has filled in. Consumers release them whenever they like,
// also while a Python error is pending, under which no Python code may run: so this is C++.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace nb = nanobind;

namespace tfrio::python {
namespace {

using namespace nb::literals;

// The three structs of the Arrow C data and C stream interfaces: a fixed ABI.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

constexpr const char* kStreamName = "arrow_array_stream";

/// Let go of the Python object that owns what a struct points into; a pending error stays.
void drop_owner(void* owner) {
  if (owner == nullptr || Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire gil;
  const nb::error_scope pending;
  Py_DECREF(static_cast<PyObject*>(owner));
}

template <class Struct>
void release_children(Struct* parent) {
  for (std::int64_t i = 0; i < parent->n_children; ++i) {
    Struct* child = parent->children[i];
    if (child->release != nullptr) child->release(child);
  }
}

void release_children(ArrowArrayStream* /*stream*/) {}

/// The release callback of every struct made here.
template <class Struct>
void release(Struct* self) {
  release_children(self);
  self->release = nullptr;
  drop_owner(self->private_data);
}

/// Make `owner` live as long as the struct at `address` is not released.
template <class Struct>
void own(std::uintptr_t address, nb::object owner) {
  auto* self = reinterpret_cast<Struct*>(address);
  self->private_data = owner.release().ptr();
  self->release = &release<Struct>;
}

/// Release a stream that nobody took over, and its memory.
void destroy_capsule(PyObject* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kStreamName));
  if (stream == nullptr) return PyErr_Clear();
  if (stream->release != nullptr) stream->release(stream);
  std::free(stream);
}

/// Move the stream at `address` into a capsule.
nb::object stream_capsule(std::uintptr_t address) {
  auto* stream = static_cast<ArrowArrayStream*>(std::malloc(sizeof(ArrowArrayStream)));
  if (stream == nullptr) throw std::bad_alloc();
  std::memcpy(stream, reinterpret_cast<const void*>(address), sizeof(ArrowArrayStream));
  PyObject* capsule = PyCapsule_New(stream, kStreamName, &destroy_capsule);
  if (capsule == nullptr) {
    std::free(stream);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

}  // namespace

void bind_arrow(nb::module_& module) {
  module.def("arrow_own_schema", &own<ArrowSchema>, "address"_a, "owner"_a,
             "Let `owner` live until the ArrowSchema at `address` is released.");
  module.def("arrow_own_array", &own<ArrowArray>, "address"_a, "owner"_a,
             "Let `owner` live until the ArrowArray at `address` is released.");
  module.def("arrow_own_stream", &own<ArrowArrayStream>, "address"_a, "owner"_a,
             "Let `owner` live until the ArrowArrayStream at `address` is released.");
  module.def("arrow_stream_capsule", &stream_capsule, "address"_a,
             "Move the ArrowArrayStream at `address` into a capsule \"arrow_array_stream\".");
}

}  // namespace tfrio::python
