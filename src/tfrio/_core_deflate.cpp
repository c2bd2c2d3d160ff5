// The Python face of walking deflate data for places to enter it.
#include "_core_shared.hpp"
#include "tfrio/deflate.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

struct PyWalk {
  nb::object points;
  DeflateWalk walk;
};

PyWalk walk(const BytesArgument& data, std::int64_t bit, std::int64_t spacing) {
  checked_start(bit / 8, data.bytes());
  if (spacing < 1) throw nb::value_error("spacing must be at least 1 byte");
  Buffer<DeflatePoint> points;
  DeflateWalk result;
  {
    const WithoutGil released;
    result = walk_deflate(data.bytes(), static_cast<std::uint64_t>(bit), spacing, points);
  }
  const std::size_t rows = points.size();
  return {to_array<std::int64_t>(std::move(points), {rows, 2}), result};
}

}  // namespace

void bind_deflate(nb::module_& module) {
  nb::class_<PyWalk>(module, "DeflateWalk", "How far walk_deflate() came.")
      .def_ro("points", &PyWalk::points, TFRIO_ARRAY_GETTER("points", "int64"),
              "int64 (n, 2): offset in bits and uncompressed offset of blocks.")
      .def_prop_ro(
          "bit", [](const PyWalk& w) { return w.walk.bit; },
          "Offset behind the last whole block, in bits.")
      .def_prop_ro(
          "out", [](const PyWalk& w) { return w.walk.out; }, "Uncompressed bytes of the blocks.")
      .def_prop_ro(
          "ended", [](const PyWalk& w) { return w.walk.ended; },
          "Whether the last block was seen; else the data is cut or damaged.");
  module.def("walk_deflate", walk, "data"_a, "bit"_a, "spacing"_a,
             "Find deflate blocks at least `spacing` uncompressed bytes apart, from bit `bit`.");
}

}  // namespace tfrio::python
