// One record to one Python dict: what ExampleDecoder gathers of a single record, given out feature
// by feature. It only knows plain values and records that fit; everything else, errors included, is
// left to the way over columns, which a property test holds equal to this one.
#include <algorithm>
#include <memory>

#include "_core_record_map.hpp"
#include "_core_shared.hpp"
#include "tfrio/decoder.hpp"

namespace tfrio::python {
namespace {

using namespace nb::literals;

// Records up to this size are decoded without releasing the GIL, which costs as long.
constexpr std::size_t kSmall = 16 << 10;
// Values from this size on are handed over, not copied.
constexpr std::size_t kHandedOver = 64 << 10;
// Up to this size the numbers of a row share one piece of memory: an allocation each costs more
// than all the rest.
constexpr std::size_t kShared = 1 << 10;

/// What a row holds where the feature is absent.
enum class Absent : std::uint8_t { none = 0, left_out = 1, elsewhere = 2 };

/// (key, slot, axes, bare, text, absent): see bind_row_decoder.
using Given = std::tuple<nb::str, std::size_t, std::vector<std::size_t>, bool, bool, int>;

/// One feature of the rows given out.
struct RowFeature {
  nb::object key;
  std::size_t slot;
  std::vector<std::size_t> axes;
  std::size_t size;  // values that the axes hold
  bool bare, text;
  Absent absent;
  bool alone = true;  // no other feature of the rows reads the same slot
};

nb::object take_or_throw(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

/// Return `size` rounded up to what an array may begin at.
constexpr std::size_t aligned(std::size_t size) {
  return (size + 7) & ~std::size_t{7};
}

/// Memory for the numbers of one row.
class Shared {
 public:
  /// Make room for `size` bytes.
  void begin(std::size_t size) {
    used_ = 0;
    size_ = size <= kShared ? size : 0;
    const std::size_t shape[] = {size_};
    owner_ = size_ == 0 ? nb::object() : new_array(ItemType::uint8, shape, memory_);
  }
  void end() { owner_.reset(); }

  /// Return a copy of `size` bytes of numbers as an array; of its own memory where none is left.
  nb::object array_of(const void* values, std::size_t size, ItemType type, Shape shape) {
    if (size == 0 || aligned(size) > size_ - used_) return python::array_of(values, type, shape);
    void* place = static_cast<std::uint8_t*>(memory_) + used_;
    used_ += aligned(size);
    std::memcpy(place, values, size);
    return array_within(owner_, place, type, shape);
  }

 private:
  nb::object owner_;
  void* memory_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
};

/// See the docstrings in bind_row_decoder. Nothing returned stands for "not the plain way".
class RowDecoder {
 public:
  RowDecoder(const std::vector<Asked>& asked, const std::vector<Given>& given,
             nb::callable no_bytes, nb::callable no_steps, bool unwrap, bool sequence,
             bool discover, std::string_view utf8)
      : decoder_(make_decoder(asked, sequence, discover, utf8)),
        no_bytes_(std::move(no_bytes)),
        no_steps_(std::move(no_steps)),
        unwrap_(unwrap) {
    for (const auto& [key, slot, axes, bare, text, absent] : given) {
      if (slot >= asked.size()) throw nb::index_error("there is no such slot");
      std::size_t size = 1;
      for (std::size_t axis : axes) size *= axis;
      features_.push_back({key, slot, axes, size, bare, text, static_cast<Absent>(absent)});
      for (RowFeature& other : std::span(features_).first(features_.size() - 1)) {
        if (other.slot == slot) other.alone = features_.back().alone = false;
      }
      empty_[key] = nb::none();
    }
  }

  /// Return the record at `start` as a dict, or None.
  nb::object row(const BytesArgument& data, std::int64_t start, bool verify) {
    return row_in(data.bytes(), start, verify);
  }

  /// Return a record of a mapped file as a dict, or None.
  nb::object row_of(const RecordMap& map, std::int64_t number, bool verify) {
    nb::object row = row_in(map.bytes(), map.start_of(number), verify);
    return map.whole() ? row : nb::none();
  }

 private:
  nb::object row_in(Bytes bytes, std::int64_t start, bool verify) {
    const InUse lock(in_use_);
    if (start < 0 || static_cast<std::size_t>(start) > bytes.size()) return nb::none();
    const Forget forget(*decoder_);
    if (!decode(bytes, static_cast<std::size_t>(start), verify)) return nb::none();
    shared_.begin(size_of_numbers());
    nb::object row = take_or_throw(PyDict_Copy(empty_.ptr()));  // quicker than growing one
    const bool fine = std::all_of(features_.begin(), features_.end(),
                                  [&](const RowFeature& feature) { return add(row, feature); });
    shared_.end();
    return fine ? row : nb::none();
  }

  std::size_t size_of_numbers() const {
    std::size_t size = 0;
    for (const RowFeature& feature : features_) {
      const Column& column = decoder_->column(feature.slot);
      if (!column.is_bytes() && !feature.bare) size += aligned(column.arrays().values.size());
    }
    return size;
  }

  /// Empties the decoder in the end, its memory kept for the next record.
  struct Forget {
    explicit Forget(ExampleDecoder& decoder) : decoder(decoder) {}
    Forget(const Forget&) = delete;
    ~Forget() { decoder.forget(); }
    ExampleDecoder& decoder;
  };

  bool decode(Bytes data, std::size_t start, bool verify) {
    const Bytes rest = data.subspan(start);
    const FrameOptions options{1, verify, true};
    if (rest.size() < kHeaderSize || load64(rest.data()) <= kSmall) {
      return decoder_->feed(data, start, options).records == 1;
    }
    const WithoutGil released;
    return decoder_->feed(data, start, options).records == 1;
  }

  /// Put a feature into `row`, where its key stands with None.
  bool add(nb::handle row, const RowFeature& feature) {
    const Column& column = decoder_->column(feature.slot);
    if (column.arrays().present[0] == 0) {
      if (feature.absent == Absent::left_out && PyDict_DelItem(row.ptr(), feature.key.ptr()) < 0) {
        throw nb::python_error();
      }
      return feature.absent != Absent::elsewhere;
    }
    const nb::object value =
        column.is_list() ? steps_of(feature, column) : item_of(feature, column, 0, unwrap_);
    if (!value.is_valid()) return false;
    if (PyDict_SetItem(row.ptr(), feature.key.ptr(), value.ptr()) < 0) throw nb::python_error();
    return true;
  }

  /// Return the steps of a feature list: one array where all are of one shape, else a list, with
  /// None for steps that carry no kind.
  nb::object steps_of(const RowFeature& feature, const Column& column) {
    const auto steps = static_cast<std::size_t>(column.arrays().step_offsets[1]);
    const auto& kindless = column.arrays().kindless;
    if (!column.ragged() && !column.is_bytes() && kindless.empty()) {
      std::vector<std::size_t> shape{steps};
      shape.insert(shape.end(), feature.axes.begin(), feature.axes.end());
      return numbers(feature, column, 0, shape, steps * feature.size);
    }
    if (steps == 0) return no_steps_();
    nb::object list = take_or_throw(PyList_New(static_cast<Py_ssize_t>(steps)));
    for (std::size_t i = 0, k = 0; i < steps; ++i) {
      const bool none = k < kindless.size() && static_cast<std::size_t>(kindless[k]) == i;
      k += none;
      nb::object item = none ? nb::none() : item_of(feature, column, i, false);
      if (!item.is_valid()) return item;
      PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item.release().ptr());
    }
    return list;
  }

  /// Return the values of the row, or of step `i`.
  nb::object item_of(const RowFeature& feature, const Column& column, std::size_t i, bool unwrap) {
    const auto [first, last] = range_of(column, i);
    if (column.is_bytes()) return strings(feature, column, first, last, unwrap);
    if (feature.bare) return scalar(column, first);
    if (!column.ragged()) return numbers(feature, column, first, feature.axes, last - first);
    if (feature.axes.empty()) {
      const std::size_t shape[] = {last - first};
      return numbers(feature, column, first, shape, last - first);
    }
    if (feature.size == 0 || (last - first) % feature.size != 0) return {};
    std::vector<std::size_t> shape{(last - first) / feature.size};
    shape.insert(shape.end(), feature.axes.begin(), feature.axes.end());
    return numbers(feature, column, first, shape, last - first);
  }

  static std::pair<std::size_t, std::size_t> range_of(const Column& column, std::size_t i) {
    if (!column.ragged()) {
      const auto count = static_cast<std::size_t>(column.spec().count);
      return {i * count, (i + 1) * count};
    }
    const auto& offsets = column.arrays().value_offsets;
    return {static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(offsets[i + 1])};
  }

  static ItemType type_of(const Column& column) {
    return column.spec().kind == Kind::floats ? ItemType::float32 : ItemType::int64;
  }

  static nb::object scalar(const Column& column, std::size_t first) {
    const std::size_t size = value_size(column.spec().kind);
    return scalar_of(column.arrays().values.data() + first * size, type_of(column));
  }

  nb::object numbers(const RowFeature& feature, const Column& column, std::size_t first,
                     Shape shape, std::size_t count) {
    const std::size_t size = value_size(column.spec().kind);
    const bool all = count * size == column.arrays().values.size();
    if (all && feature.alone && count * size >= kHandedOver) {
      return array_over(decoder_->take_values(feature.slot).release(), type_of(column), shape);
    }
    return shared_.array_of(column.arrays().values.data() + first * size, count * size,
                            type_of(column), shape);
  }

  nb::object strings(const RowFeature& feature, const Column& column, std::size_t first,
                     std::size_t last, bool unwrap) {
    const bool alone = feature.bare || (unwrap && !feature.text && last - first == 1);
    if (alone) return string(feature, column, first);
    if (first == last) return no_bytes_();
    nb::object list = take_or_throw(PyList_New(static_cast<Py_ssize_t>(last - first)));
    for (std::size_t i = first; i < last; ++i) {
      nb::object item = string(feature, column, i);
      if (!item.is_valid()) return item;
      PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i - first), item.release().ptr());
    }
    return list;
  }

  static nb::object string(const RowFeature& feature, const Column& column, std::size_t i) {
    const ColumnArrays& arrays = column.arrays();
    const std::int64_t begin = arrays.byte_offsets[i];
    const char* text = reinterpret_cast<const char*>(arrays.values.data()) + begin;
    const auto size = static_cast<Py_ssize_t>(arrays.byte_offsets[i + 1] - begin);
    if (!feature.text) return take_or_throw(PyBytes_FromStringAndSize(text, size));
    nb::object decoded = nb::steal(PyUnicode_DecodeUTF8(text, size, nullptr));
    if (!decoded.is_valid()) PyErr_Clear();
    return decoded;
  }

  std::unique_ptr<ExampleDecoder> decoder_;
  std::vector<RowFeature> features_;
  nb::dict empty_;  // a row of all keys
  Shared shared_;
  nb::callable no_bytes_, no_steps_;
  bool unwrap_;
  std::atomic_flag in_use_;
};

}  // namespace

void bind_row_decoder(nb::module_& module) {
  nb::class_<RowDecoder>(
      module, "RowDecoder",
      "Decode single records into dicts of arrays, scalars and bytes.\n\n"
      "`features` and the options are those of ExampleDecoder. `given` says what a row holds, "
      "each\n"
      "(key, index of the feature, axes, bare, text, absent): the axes of a fixed number of "
      "values or\nthose behind a free one; whether a single value stands alone; whether bytes are "
      "UTF-8 text;\nand for an absent feature 0 None, 1 nothing, 2 `row` returns None. `unwrap`: "
      "one byte string\nstands alone, several are a list. `no_bytes` and `no_steps` make what "
      "stands "
      "for a list of\nbyte strings, and for a feature list, without any.")
      .def(nb::init<const std::vector<Asked>&, const std::vector<Given>&, nb::callable,
                    nb::callable, bool, bool, bool, std::string_view>(),
           "features"_a, "given"_a, "no_bytes"_a, "no_steps"_a, nb::kw_only(), "unwrap"_a = false,
           "sequence"_a = false, "discover"_a = false, "utf8"_a = "error")
      .def("row", &RowDecoder::row, "data"_a, "start"_a, "verify"_a = true,
           nb::sig("def row(self, data: typing_extensions.Buffer, start: int, verify: bool = True) "
                   "-> dict[str, typing.Any] | None"),
           "Return the framed record at `start` as a dict; None where it is damaged or does not "
           "fit.")
      .def("row_of", &RowDecoder::row_of, "records"_a, "number"_a, "verify"_a = true,
           nb::sig("def row_of(self, records: RecordMap, number: int, verify: bool = True) -> "
                   "dict[str, typing.Any] | None"),
           "Return a record of a mapped file as a dict; None where it cannot be had.");
}

}  // namespace tfrio::python
