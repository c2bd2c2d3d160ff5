// Making NumPy arrays through NumPy's own C interface, several times quicker than by way of DLPack:
// a row of a few scalars is little else. The only file that sees NumPy's headers.
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include "_core_shared.hpp"

namespace tfrio::python {
namespace {

constexpr int kMostAxes = 32;  // of NumPy 1.26

struct Axes {
  int count = 0;
  npy_intp sizes[kMostAxes];

  explicit Axes(Shape shape) {
    if (shape.size() > kMostAxes) throw nb::value_error("an array has at most 32 axes");
    for (std::size_t size : shape) sizes[count++] = static_cast<npy_intp>(size);
  }
};

int number_of(ItemType type) {
  switch (type) {
    case ItemType::float32:
      return NPY_FLOAT32;
    case ItemType::int64:
      return NPY_INT64;
    default:
      return NPY_UINT8;
  }
}

nb::object owned(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

}  // namespace

void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

nb::object array_within(nb::handle owner, void* memory, ItemType type, Shape shape) {
  const Axes axes(shape);
  nb::object array = owned(PyArray_New(&PyArray_Type, axes.count, axes.sizes, number_of(type),
                                       nullptr, memory, 0, NPY_ARRAY_CARRAY, nullptr));
  auto* made = reinterpret_cast<PyArrayObject*>(array.ptr());
  if (PyArray_SetBaseObject(made, owner.inc_ref().ptr()) < 0) throw nb::python_error();
  return array;
}

nb::object array_over(void* memory, ItemType type, Shape shape) {
  const nb::capsule owner(memory, [](void* p) noexcept { memory::release(p); });
  return array_within(owner, memory, type, shape);
}

nb::object new_array(ItemType type, Shape shape, void*& memory) {
  const Axes axes(shape);
  nb::object array = owned(PyArray_SimpleNew(axes.count, axes.sizes, number_of(type)));
  memory = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr()));
  return array;
}

nb::object array_of(const void* values, ItemType type, Shape shape) {
  void* memory = nullptr;
  nb::object array = new_array(type, shape, memory);
  const auto size = PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(array.ptr()));
  if (size > 0) std::memcpy(memory, values, static_cast<std::size_t>(size));
  return array;
}

nb::object scalar_of(const void* value, ItemType type) {
  PyArray_Descr* descr = PyArray_DescrFromType(number_of(type));
  PyObject* scalar = PyArray_Scalar(const_cast<void*>(value), descr, nullptr);
  Py_DECREF(descr);
  return owned(scalar);
}

}  // namespace tfrio::python
