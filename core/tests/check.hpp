// A very small test harness: TEST(name) { CHECK(...); CHECK_EQUAL(...); } and one main().
#pragma once

#include <cstdint>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tfrio/bytes.hpp"

namespace check {

/// One test: its name and what it runs.
struct Test {
  std::string name;
  void (*run)();
};

/// Return the list that TEST adds to.
std::vector<Test>& tests();

/// Stop the running test with a message that names the place.
[[noreturn]] void fail(const char* file, int line, const std::string& text);

/// Return the bytes that `hex` spells; blanks are ignored.
std::vector<std::uint8_t> unhex(std::string_view hex);

/// Return `bytes` as hex digits.
std::string hex(tfrio::Bytes bytes);

/// Return the bytes of `text`.
inline tfrio::Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

struct Register {
  Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

template <class A, class B>
void equal(const A& got, const B& want, const char* what, const char* file, int line) {
  if (got == want) return;
  std::ostringstream text;
  text << what << ": got " << got << ", want " << want;
  fail(file, line, text.str());
}

}  // namespace check

#define TEST(name)                                                  \
  static void test_##name();                                        \
  static const check::Register register_##name{#name, test_##name}; \
  static void test_##name()
#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQUAL(got, want) check::equal((got), (want), #got, __FILE__, __LINE__)
