// The Python face of mapped files.
#include <cerrno>

#include "_core_record_map.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

void make_map(PyFileMap* self, const std::string& name, int descriptor, std::uint64_t offset,
              std::int64_t size) {
  if (size <= 0) throw nb::value_error("`size` must be at least 1");
  {
    const WithoutGil released;
    new (self) PyFileMap(name, descriptor, offset, static_cast<std::size_t>(size));
  }
  if (self->error() == 0) return;
  const int number = self->error();
  self->~PyFileMap();
  errno = number;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, name.c_str());
  throw nb::python_error();
}

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  const Bytes bytes = nb::inst_ptr<PyFileMap>(object)->bytes();
  return PyBuffer_FillInfo(view, object, const_cast<std::uint8_t*>(bytes.data()),
                           static_cast<Py_ssize_t>(bytes.size()), 1, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void bind_mapping(nb::module_& module) {
  nb::class_<PyFileMap>(
      module, "FileMap", nb::type_slots(slots), nb::sig("class FileMap(typing_extensions.Buffer)"),
      "Bytes of a file, mapped: a buffer that can be read.\n\nWhere somebody cuts the file short "
      "meanwhile, or its disk fails, zeros are read and `whole`\nsays so; other mappings end the "
      "process. OSError where the\nsystem cannot map "
      "the file.")
      .def("__init__", make_map, "name"_a, "descriptor"_a, "offset"_a, "size"_a)
      .def_prop_ro("name", &PyFileMap::name, "What the file is called.")
      .def("__len__", [](const PyFileMap& map) { return map.bytes().size(); })
      .def(
          "whole", [](const PyFileMap& map, std::size_t end) { return map.whole(end); }, "end"_a,
          "Return whether the file still has the first `end` bytes mapped, and had them whenever "
          "they were used.");
}

}  // namespace tfrio::python
