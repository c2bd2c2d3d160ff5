// Blocks that wait for reuse.
#include "tfrio/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace tfrio::memory {
namespace {

/// Stands before every block.
struct alignas(16) Header {
  std::size_t capacity;
};

Header* header_of(void* block) {
  return static_cast<Header*>(block) - 1;
}

/// The waiting blocks, the longest waiting first.
class Pool {
 public:
  Pool() { blocks_.reserve(kMostKept / kLeastKept + 1); }  // so that giving back never throws

  /// Return a block of `size` to twice `size` bytes, or nullptr.
  Header* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) {
      Header* const block = *it;
      if (block->capacity < size || block->capacity / 2 > size) continue;
      kept_ -= block->capacity;
      blocks_.erase(std::next(it).base());
      return block;
    }
    return nullptr;
  }

  /// Keep `block`, and free what has waited longest until the total fits.
  void give(Header* block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
    kept_ += block->capacity;
    while (kept_ > kMostKept) drop_oldest();
  }

  std::size_t trim() {
    const std::lock_guard lock(mutex_);
    const std::size_t kept = kept_;
    while (!blocks_.empty()) drop_oldest();
    return kept;
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  void drop_oldest() {
    kept_ -= blocks_.front()->capacity;
    std::free(blocks_.front());
    blocks_.erase(blocks_.begin());
  }

  std::mutex mutex_;
  std::vector<Header*> blocks_;
  std::size_t kept_ = 0;
};

Pool& open_pool();

/// Never destroyed: arrays may outlive everything else at the end of the process.
Pool& pool = open_pool();

/// Make the pool, and keep its lock whole over fork(): a child has only the thread that forked, so
/// a lock that another thread held would stay locked in it for ever.
Pool& open_pool() {
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork([] { pool.lock(); }, [] { pool.unlock(); }, [] { pool.unlock(); });
#endif
  return *new Pool;
}

bool worth_keeping(std::size_t capacity) {
  return capacity >= kLeastKept && capacity <= kMostKept;
}

}  // namespace

void* enlarge(void* block, std::size_t used, std::size_t& size) {
  Header* header = block == nullptr ? nullptr : header_of(block);
  if (size > SIZE_MAX / 2) return nullptr;
  if (worth_keeping(size)) {
    if (Header* kept = pool.take(size)) {
      size = kept->capacity;
      if (used > 0) std::memcpy(kept + 1, block, used);
      release(block);
      return kept + 1;
    }
  }
  header = static_cast<Header*>(std::realloc(header, sizeof(Header) + size));
  if (header == nullptr) return nullptr;
  header->capacity = size;
  return header + 1;
}

void release(void* block) noexcept {
  if (block == nullptr) return;
  Header* header = header_of(block);
  if (worth_keeping(header->capacity)) {
    pool.give(header);
  } else {
    std::free(header);
  }
}

std::size_t trim() noexcept {
  return pool.trim();
}

}  // namespace tfrio::memory
