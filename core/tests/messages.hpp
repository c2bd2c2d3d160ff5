// Payloads as hex and the columns they decode to, for the tests of decoding and encoding.
#pragma once

#include <string>
#include <vector>

#include "check.hpp"
#include "tfrio/decoder.hpp"
#include "tfrio/framing.hpp"

namespace check {

using Payload = std::vector<std::uint8_t>;

/// Golden payloads; protobuf reads each of them as its name says.
inline const std::string kNegative =
    "0a280a260a017812211a1f0a1dffffffffffffffffff0180808080808080808001ffffffffffffffff7f";
inline const std::string kUnpacked =
    "0a2b0a160a017812111a0f080308fcffffffffffffffff0108050a110a0179120c120a0d0000c03f0d000000c0";
inline const std::string kMixed = "0a120a100a0178120b1a090a02010208030a0104";
inline const std::string kKindless = "0a130a050a017812000a0a0a017912051a030a0107";
inline const std::string kEmptyInt = "0a150a070a017812021a000a0a0a017912051a030a0107";
inline const std::string kSameKeyTwice = "0a180a0a0a017812051a030a01010a0a0a017812051a030a0102";
inline const std::string kValueFirst = "0a0c0a0a12051a030a01090a0178";
inline const std::string kUnknownFields = "0a0c0a0a0a017812051a030a01057a06667574757265704d";
inline const std::string kNameNotUtf8 = "0a0d0a0b0a02fffe12051a030a0105";
inline const std::string kTwoKinds = "0a140a120a0178120d12060a040000803f1a030a0102";
inline const std::string kSequence =
    "0a0c0a0a0a016e12051a030a0103123d0a1c0a03746f6b12150a061a040a0200010a021a000a071a050a03020304"
    "0a1d0a03696d6712160a060a040a02ffd80a040a020a000a060a040a026162";

/// Return the payloads as framed records.
inline Payload framed(const std::vector<Payload>& payloads) {
  Payload data;
  for (const Payload& payload : payloads) {
    const std::size_t at = data.size();
    data.resize(at + payload.size() + tfrio::kFrameSize);
    tfrio::write_record(data.data() + at, payload);
  }
  return data;
}

/// Return one record that holds the payload `hex` spells.
inline Payload record(const std::string& hex) {
  return framed({unhex(hex)});
}

template <class T, class Source>
std::vector<T> vector_of(const tfrio::Buffer<Source>& buffer) {
  const T* first = reinterpret_cast<const T*>(buffer.data());
  return {first, first + buffer.size() * sizeof(Source) / sizeof(T)};
}

template <class T>
std::string text(const std::vector<T>& values) {
  std::ostringstream out;
  for (std::size_t i = 0; i < values.size(); ++i) out << (i > 0 ? " " : "") << +values[i];
  return out.str();
}

/// The arrays of a column as text, easy to compare.
struct Shown {
  std::string values, bytes, lists, steps, present;
};

inline Shown show(tfrio::Kind kind, const tfrio::ColumnArrays& arrays) {
  Shown shown;
  switch (kind) {
    case tfrio::Kind::floats:
      shown.values = text(vector_of<float>(arrays.values));
      break;
    case tfrio::Kind::int64s:
      shown.values = text(vector_of<std::int64_t>(arrays.values));
      break;
    default:
      shown.values = hex({arrays.values.data(), arrays.values.size()});
  }
  shown.bytes = text(vector_of<std::int64_t>(arrays.byte_offsets));
  shown.lists = text(vector_of<std::int64_t>(arrays.value_offsets));
  shown.steps = text(vector_of<std::int64_t>(arrays.step_offsets));
  shown.present = text(vector_of<std::uint8_t>(arrays.present));
  return shown;
}

}  // namespace check
