// What every feeding call of the decoder stands on. Internal to the core.
#pragma once

#include "tfrio/decoder.hpp"

namespace tfrio {

/// Puts the columns back to whole rows when a call ends, for whatever reason.
class ExampleDecoder::Guard {
 public:
  explicit Guard(ExampleDecoder& decoder) : decoder_(decoder) { decoder_.begin(); }
  Guard(const Guard&) = delete;
  ~Guard() { decoder_.roll_back(); }

 private:
  ExampleDecoder& decoder_;
};

}  // namespace tfrio
