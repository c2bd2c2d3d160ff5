// Growing arrays and memory that waits for reuse.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "tfrio/buffer.hpp"
#include "tfrio/memory.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using tfrio::Buffer;

TEST(buffer_grows_and_keeps_its_values) {
  Buffer<std::int64_t> buffer;
  for (std::int64_t i = 0; i < 100000; ++i) buffer.push_back(i);
  for (std::int64_t i = 0; i < 100000; ++i) CHECK_EQUAL(buffer[static_cast<std::size_t>(i)], i);
  buffer.truncate(10);
  CHECK_EQUAL(buffer.size(), 10u);
  buffer.append_zeros(2);
  CHECK_EQUAL(buffer.back(), 0);
}

TEST(borrowed_memory_is_never_outgrown) {
  std::int64_t out[2];
  Buffer<std::int64_t> buffer;
  buffer.borrow(out, 2);
  buffer.push_back(1);
  buffer.push_back(2);
  bool refused = false;
  try {
    buffer.push_back(3);
  } catch (const tfrio::OutputFull&) {
    refused = true;
  }
  CHECK(refused);
  CHECK_EQUAL(out[1], 2);
}

TEST(released_memory_is_used_again) {
  tfrio::memory::trim();
  std::size_t size = 1 << 20;
  void* first = tfrio::memory::enlarge(nullptr, 0, size);
  tfrio::memory::release(first);
  CHECK_EQUAL(tfrio::memory::trim(), size);
  first = tfrio::memory::enlarge(nullptr, 0, size);
  tfrio::memory::release(first);
  std::size_t a_bit_less = size - 1000;
  void* again = tfrio::memory::enlarge(nullptr, 0, a_bit_less);
  CHECK(again == first);
  CHECK_EQUAL(a_bit_less, size);
  tfrio::memory::release(again);
}

TEST(what_waits_is_bounded) {
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) {
    std::size_t size = 4 << 20;
    blocks.push_back(tfrio::memory::enlarge(nullptr, 0, size));
  }
  for (void* block : blocks) tfrio::memory::release(block);
  CHECK(tfrio::memory::trim() <= tfrio::memory::kMostKept);
}

TEST(absurd_sizes_are_refused) {
  std::size_t size = SIZE_MAX - 5;
  CHECK(tfrio::memory::enlarge(nullptr, 0, size) == nullptr);
}

#if defined(__unix__) || defined(__APPLE__)
void take_and_release() {
  std::size_t size = 1 << 17;
  tfrio::memory::release(tfrio::memory::enlarge(nullptr, 0, size));
}

TEST(a_forked_child_can_take_memory) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) take_and_release();
  });
  int status = 0;
  for (int i = 0; i < 300 && status == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that waits for a lock of a thread it does not have
      take_and_release();
      _exit(0);
    }
    waitpid(child, &status, 0);
  }
  done = true;
  other.join();
  CHECK_EQUAL(status, 0);
}
#endif

}  // namespace
