// Runs every test, or those whose name contains the first argument.
#include <cstdio>

#include "check.hpp"

namespace check {

std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}

void fail(const char* file, int line, const std::string& text) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

std::vector<std::uint8_t> unhex(std::string_view hex) {
  std::vector<std::uint8_t> bytes;
  std::string digits;
  for (char c : hex) {
    if (c == ' ' || c == '\n') continue;
    digits.push_back(c);
    if (digits.size() == 2) {
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

std::string hex(tfrio::Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace check

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  int ran = 0, failed = 0;
  for (const check::Test& test : check::tests()) {
    if (test.name.find(wanted) == std::string::npos) continue;
    ++ran;
    try {
      test.run();
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", test.name.c_str(), error.what());
    }
  }
  std::printf("%d tests, %d failed\n", ran, failed);
  return failed > 0 || ran == 0 ? 1 : 0;
}
