// Rows to records, one Python dict at a time: values go from Python objects and arrays straight to
// the wire. Plain values are taken here; anything else is first made plain by a Python callable, so
// that the rules of what is accepted stand in one place, in Python.
#include <algorithm>
#include <cstring>
#include <limits>

#include "_core_shared.hpp"
#include "tfrio/feature.hpp"
#include "tfrio/wire.hpp"

namespace tfrio::python {

namespace {

using namespace nb::literals;
using Out = Buffer<std::uint8_t>;

constexpr std::uint8_t kField1 = wire::tag(1, wire::kLength);
constexpr std::uint8_t kField2 = wire::tag(2, wire::kLength);

/// Throw the Python error of `type` with a message about the feature `name`.
[[noreturn]] void raise(PyObject* type, const char* format, nb::handle name) {
  PyErr_Format(type, format, name.ptr());
  throw nb::python_error();
}

nb::object steal_or_throw(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

std::size_t field_size(std::size_t size) {
  return 1 + wire::varint_size(size) + size;
}

/// Write the tag and length of a field of `size` bytes.
std::uint8_t* write_field(std::uint8_t* out, std::uint8_t tag, std::size_t size) {
  *out++ = tag;
  return wire::write_varint(out, size);
}

std::uint8_t* write_bytes(std::uint8_t* out, std::uint8_t tag, Bytes bytes) {
  out = write_field(out, tag, bytes.size());
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

void append_field(Out& out, std::uint8_t tag, const Out& body) {
  std::uint8_t* place = out.extend(field_size(body.size()));
  write_bytes(place, tag, {body.data(), body.size()});
}

/// A C-contiguous NumPy array, held while this lives.
class ArrayView {
 public:
  ArrayView() = default;
  ArrayView(const ArrayView&) = delete;
  ~ArrayView() { drop(); }

  void drop() {
    if (held_) PyBuffer_Release(&view_);
    held_ = false;
  }

  /// Take hold of `array`; false where it is strided or of a type that has no buffer.
  bool take(PyObject* array) {
    drop();
    held_ = PyObject_GetBuffer(array, &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
    if (!held_) PyErr_Clear();
    return held_;
  }

  /// True where the items are of C type T, whose format characters are `formats`.
  template <class T>
  bool holds(std::string_view formats) const {
    const std::string_view format = view_.format == nullptr ? "B" : view_.format;
    return view_.itemsize == sizeof(T) && format.size() == 1 &&
           formats.find(format.front()) != formats.npos;
  }

  template <class T>
  std::span<const T> values() const {
    return {static_cast<const T*>(view_.buf), static_cast<std::size_t>(view_.len) / sizeof(T)};
  }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

/// The values of one Feature in plain form, and how they are written.
class PlainValues {
 public:
  explicit PlainValues(PyObject* array_type) : array_type_(array_type) {}

  /// Take the values of `object` for `kind`; false where it is not plain.
  bool take(PyObject* object, Kind kind) {
    kind_ = kind;
    floats_.clear();
    int64s_.clear();
    strings_.clear();
    float_view_ = {};
    int64_view_ = {};
    const bool taken = take_any(object);
    if (float_view_.empty()) float_view_ = {floats_.data(), floats_.size()};
    if (int64_view_.empty()) int64_view_ = {int64s_.data(), int64s_.size()};
    if (taken) measure();
    return taken;
  }

  /// Let go of the array whose values were taken last.
  void drop() { array_.drop(); }

  /// Bytes of the Feature message.
  std::size_t size() const { return field_size(list_size_); }

  /// Write the Feature message to `out`; return the place after it.
  std::uint8_t* write(std::uint8_t* out) const {
    out = write_field(out, wire::tag(static_cast<std::uint32_t>(kind_), wire::kLength), list_size_);
    if (kind_ == Kind::bytes) {
      for (const Bytes& string : strings_) out = write_bytes(out, kField1, string);
      return out;
    }
    if (packed_size_ == 0) return out;
    if (kind_ == Kind::floats) {
      return write_bytes(out, kField1,
                         {reinterpret_cast<const std::uint8_t*>(float_view_.data()), packed_size_});
    }
    out = write_field(out, kField1, packed_size_);
    for (std::int64_t value : int64_view_) {
      out = wire::write_varint(out, static_cast<std::uint64_t>(value));
    }
    return out;
  }

 private:
  bool take_any(PyObject* object) {
    if (Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(array_type_)) return take_array(object);
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return take_item(object);
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
    PyObject** items = PySequence_Fast_ITEMS(object);
    return std::all_of(items, items + n, [this](PyObject* item) { return take_item(item); });
  }

  bool take_item(PyObject* item) {
    if (kind_ == Kind::floats) return take_float(item);
    if (kind_ == Kind::int64s) return take_int64(item);
    if (!PyBytes_CheckExact(item)) return false;
    strings_.emplace_back(reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(item)),
                          static_cast<std::size_t>(PyBytes_GET_SIZE(item)));
    return true;
  }

  bool take_float(PyObject* item) {
    if (PyFloat_CheckExact(item)) {
      floats_.push_back(static_cast<float>(PyFloat_AS_DOUBLE(item)));
      return true;
    }
    if (!PyLong_CheckExact(item)) return false;
    const double value = PyLong_AsDouble(item);
    if (value == -1.0 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    floats_.push_back(static_cast<float>(value));
    return true;
  }

  bool take_int64(PyObject* item) {
    if (!PyLong_CheckExact(item)) return false;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow != 0) return false;
    int64s_.push_back(value);
    return true;
  }

  bool take_array(PyObject* array) {
    if (!array_.take(array)) return false;
    if (kind_ == Kind::floats && array_.holds<float>("f")) {
      float_view_ = array_.values<float>();
      return true;
    }
    if (kind_ == Kind::floats && array_.holds<double>("d")) {
      const std::span<const double> values = array_.values<double>();
      std::transform(values.begin(), values.end(), floats_.extend(values.size()),
                     [](double value) { return static_cast<float>(value); });
      return true;
    }
    if (kind_ != Kind::int64s || !array_.holds<std::int64_t>("lq")) return false;
    int64_view_ = array_.values<std::int64_t>();
    return true;
  }

  void measure() {
    list_size_ = packed_size_ = 0;
    if (kind_ == Kind::bytes) {
      for (const Bytes& string : strings_) list_size_ += field_size(string.size());
      return;
    }
    if (kind_ == Kind::floats) {
      packed_size_ = float_view_.size_bytes();
    } else {
      for (std::int64_t value : int64_view_) {
        packed_size_ += wire::varint_size(static_cast<std::uint64_t>(value));
      }
    }
    if (packed_size_ > 0) list_size_ = field_size(packed_size_);
  }

  PyObject* array_type_;
  Kind kind_ = Kind::none;
  ArrayView array_;
  Buffer<float> floats_;
  Buffer<std::int64_t> int64s_;
  std::vector<Bytes> strings_;
  std::span<const float> float_view_;
  std::span<const std::int64_t> int64_view_;
  std::size_t list_size_ = 0;    // of the BytesList, FloatList or Int64List
  std::size_t packed_size_ = 0;  // of its packed numbers
};

/// One entry of a row: the feature's name, as a string and as it is written, and what it holds.
struct Entry {
  std::string_view key;
  nb::object name;
  nb::object item;
};

/// See the docstring in bind_rows.
class RowEncoder {
 public:
  RowEncoder(nb::dict kinds, nb::callable kind_of, nb::callable plain)
      : kinds_(std::move(kinds)),
        kind_of_(std::move(kind_of)),
        plain_(std::move(plain)),
        array_type_(nb::module_::import_("numpy").attr("ndarray")),
        values_(array_type_.ptr()) {}

  nb::bytes payload(nb::dict row, std::optional<nb::dict> lists) {
    const InUse guard(in_use_);
    single_.clear();
    encode(single_, row, lists);
    return nb::bytes(single_.data(), single_.size());
  }

  std::size_t add(nb::dict row, std::optional<nb::dict> lists) {
    const InUse guard(in_use_);
    const std::size_t start = framed_.size();
    framed_.extend(kHeaderSize);
    try {
      encode(framed_, row, lists);
    } catch (...) {
      framed_.truncate(start);
      throw;
    }
    const std::size_t length = framed_.size() - start - kHeaderSize;
    framed_.extend(kFooterSize);
    std::uint8_t* record = framed_.data() + start;
    write_header(record, length);
    const std::uint8_t* payload = record + kHeaderSize;
    store32(record + kHeaderSize + length, mask_crc(crc32c({payload, length}, 0)));
    ends_.push_back(static_cast<std::int64_t>(framed_.size()));
    return framed_.size();
  }

  /// Show the garbage collector what is held; writers and callables may refer to each other.
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const RowEncoder* encoder = nb::inst_ptr<RowEncoder>(self);
    Py_VISIT(encoder->kinds_.ptr());
    Py_VISIT(encoder->kind_of_.ptr());
    Py_VISIT(encoder->plain_.ptr());
    Py_VISIT(encoder->kept_.ptr());
    return 0;
  }

  static int clear(PyObject* self) {
    RowEncoder* encoder = nb::inst_ptr<RowEncoder>(self);
    encoder->kinds_.reset();
    encoder->kind_of_.reset();
    encoder->plain_.reset();
    encoder->kept_.reset();
    return 0;
  }

  nb::tuple take() {
    const InUse guard(in_use_);
    nb::object data = to_array(std::move(framed_));
    return nb::make_tuple(data, to_array(std::move(ends_)));
  }

 private:
  void encode(Out& out, nb::dict row, const std::optional<nb::dict>& lists) {
    features_.clear();
    for (const Entry& entry : entries(row)) append_feature(entry);
    append_field(out, kField1, features_);
    if (lists) {
      features_.clear();
      for (const Entry& entry : entries(*lists)) append_list(entry);
      append_field(out, kField2, features_);
    }
    values_.drop();
    kept_.reset();
  }

  /// Return the entries of `row`, sorted by name: equal rows give equal bytes.
  static std::vector<Entry> entries(nb::dict row) {
    std::vector<Entry> found;
    found.reserve(nb::len(row));
    for (const auto& [name, item] : row) {
      found.push_back({{}, key_of(name), nb::borrow(item)});
      Entry& entry = found.back();
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(entry.name.ptr(), &size);
      if (text == nullptr) throw nb::python_error();
      entry.key = {text, static_cast<std::size_t>(size)};
    }
    const auto before = [](const Entry& a, const Entry& b) { return a.key < b.key; };
    if (!std::is_sorted(found.begin(), found.end(), before)) {
      std::sort(found.begin(), found.end(), before);
    }
    return found;
  }

  /// Return a name as a string; names given as bytes are UTF-8.
  static nb::object key_of(nb::handle name) {
    if (PyUnicode_Check(name.ptr())) return nb::borrow(name);
    if (!PyBytes_Check(name.ptr())) {
      raise(PyExc_TypeError, "a feature name must be str or bytes, got %R", name);
    }
    return steal_or_throw(
        PyUnicode_DecodeUTF8(PyBytes_AS_STRING(name.ptr()), PyBytes_GET_SIZE(name.ptr()), nullptr));
  }

  /// Split an entry's item into value and kind.
  std::pair<nb::object, Kind> split(const Entry& entry) const {
    nb::object pair = steal_or_throw(
        PySequence_Fast(entry.item.ptr(), "a feature is written as a pair (value, type name)"));
    if (PySequence_Fast_GET_SIZE(pair.ptr()) != 2) {
      raise(PyExc_ValueError, "feature %R: write it as a pair (value, type name)", entry.name);
    }
    nb::handle type = PySequence_Fast_GET_ITEM(pair.ptr(), 1);
    nb::object kind = nb::borrow(PyDict_GetItemWithError(kinds_.ptr(), type.ptr()));
    if (!kind.is_valid()) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      kind = kind_of_(type);
    }
    return {nb::borrow(PySequence_Fast_GET_ITEM(pair.ptr(), 0)),
            static_cast<Kind>(nb::cast<int>(kind))};
  }

  /// Take the values of one Feature; `kept_` keeps what they point into.
  void take_values(const Entry& entry, nb::object value, Kind kind) {
    kept_ = std::move(value);
    if (values_.take(kept_.ptr(), kind)) return;
    kept_ = plain_(entry.name, kept_, static_cast<int>(kind));
    if (!values_.take(kept_.ptr(), kind)) {
      raise(PyExc_TypeError, "feature %R: its values could not be made plain", entry.name);
    }
  }

  void append_feature(const Entry& entry) {
    const auto [value, kind] = split(entry);
    take_values(entry, value, kind);
    std::uint8_t* out = begin_entry(entry, values_.size());
    values_.write(out);
  }

  void append_list(const Entry& entry) {
    const auto [value, kind] = split(entry);
    steps_.clear();
    for (nb::handle step : steps_of(value)) {
      take_values(entry, nb::borrow(step), kind);
      std::uint8_t* out = steps_.extend(field_size(values_.size()));
      values_.write(write_field(out, kField1, values_.size()));
    }
    std::uint8_t* out = begin_entry(entry, steps_.size());
    if (!steps_.empty()) std::memcpy(out, steps_.data(), steps_.size());
  }

  /// Return what to iterate over for the steps of a list: plain numbers for a flat array.
  nb::object steps_of(nb::object value) const {
    const bool array = Py_TYPE(value.ptr()) == reinterpret_cast<PyTypeObject*>(array_type_.ptr());
    if (array && nb::cast<int>(value.attr("ndim")) == 1) return value.attr("tolist")();
    return value;
  }

  /// Append a map entry up to its value of `size` bytes; return the place for the value.
  std::uint8_t* begin_entry(const Entry& entry, std::size_t size) {
    const std::size_t whole = field_size(entry.key.size()) + field_size(size);
    std::uint8_t* out = features_.extend(field_size(whole));
    out = write_field(out, kField1, whole);
    out = write_bytes(out, kField1,
                      {reinterpret_cast<const std::uint8_t*>(entry.key.data()), entry.key.size()});
    return write_field(out, kField2, size);
  }

  nb::dict kinds_;
  nb::callable kind_of_;
  nb::callable plain_;
  nb::object array_type_;
  nb::object kept_;
  PlainValues values_;
  Out features_, steps_, single_, framed_;
  Buffer<std::int64_t> ends_;
  std::atomic_flag in_use_;
};

PyType_Slot row_encoder_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(RowEncoder::traverse)},
                                   {Py_tp_clear, reinterpret_cast<void*>(RowEncoder::clear)},
                                   {0, nullptr}};

}  // namespace

void bind_rows(nb::module_& module) {
  nb::class_<RowEncoder>(
      module, "RowEncoder", nb::type_slots(row_encoder_slots),
      "Encode rows, dicts of name -> (value, type name), one at a time.\n\n"
      "`kinds` maps type names to kind numbers; `kind_of(type name)` answers for others, or "
      "raises.\n`plain(name, value, kind)` turns a value that is not plain into one that is: an "
      "array of\nfloat32, float64 or int64, or a list of bytes.")
      .def(nb::init<nb::dict, nb::callable, nb::callable>(), "kinds"_a, "kind_of"_a, "plain"_a)
      .def("payload", &RowEncoder::payload, "row"_a, "lists"_a = nb::none(),
           "Return a row as a serialized Example; with feature `lists`, as a SequenceExample.")
      .def("add", &RowEncoder::add, "row"_a, "lists"_a = nb::none(),
           "Encode and frame a row; return how many bytes wait. A failing row adds nothing.")
      .def("take", &RowEncoder::take,
           nb::sig("def take(self) -> tuple[numpy.typing.NDArray[numpy.uint8], "
                   "numpy.typing.NDArray[numpy.int64]]"),
           "Return the framed records that wait and the end of each, and forget them.");
}

}  // namespace tfrio::python
