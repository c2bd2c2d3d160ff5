// Mapped files behind a guard against SIGBUS.
#include "tfrio/mapping.hpp"

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace tfrio {

/// A mapped range, in words that a signal handler may read at any time.
struct Guarded {
  std::atomic<std::uintptr_t> begin{0};  // 0: free to take; kTaken: being set up
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> lost{0};  // the first page replaced by zeros, `end` for none
  std::atomic<std::uint32_t> uses{0};   // grows whenever the range is taken or given back
};

namespace {

constexpr std::uintptr_t kTaken = 1;

/// Ranges, in blocks that are never freed: the handler walks them without a lock.
struct Block {
  std::array<Guarded, 128> ranges;
  std::atomic<Block*> next{nullptr};
};

Block first_block;

/// What SIGBUS did before, and the last fault that was none of ours. Actions are never freed, as a
/// handler may be reading one; there are as many as others installed handlers over this one.
std::atomic<const struct sigaction*> before{nullptr};
std::atomic<std::uintptr_t> last_strange{0};

std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/// Return the range that holds `address`, and where it ends; its `begin` and `end` belong together
/// where nobody took or gave back the range between two looks at `uses`.
Guarded* guarded_at(std::uintptr_t address, std::uintptr_t& end) {
  for (Block* block = &first_block; block != nullptr; block = block->next.load()) {
    for (Guarded& range : block->ranges) {
      const std::uint32_t uses = range.uses.load();
      const std::uintptr_t begin = range.begin.load();
      end = range.end.load();
      const bool inside = begin > kTaken && address >= begin && address < end;
      if (inside && range.uses.load() == uses) return &range;
    }
  }
  return nullptr;
}

/// Put zeros in place of the page at `address` and all up to `end`; false where that fails.
bool replace_with_zeros(Guarded& range, std::uintptr_t address, std::uintptr_t end) {
  const std::uintptr_t page = address & ~(page_size() - 1);
  std::uintptr_t lost = range.lost.load();
  while (page < lost && !range.lost.compare_exchange_weak(lost, page)) {
  }
  // mmap is a bare system call on all systems at hand, though POSIX does not list it as safe here.
  return mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/// Let the signal do what it did before: the instruction faults again once the handler returns.
void stand_aside(int number, const siginfo_t& info) {
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  const struct sigaction* action = before.load();
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  // One who was there before may hand the signal back to us: the second time it ends here.
  const bool again = last_strange.exchange(address + 1) == address + 1;
  sigaction(number, action == nullptr || again ? &usual : action, nullptr);
  if (info.si_code != BUS_ADRERR && info.si_code != BUS_ADRALN && info.si_code != BUS_OBJERR) {
    raise(number);  // sent by somebody: no instruction repeats it
  }
}

void on_bus_error(int number, siginfo_t* info, void*) {
  const int kept = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  std::uintptr_t end = 0;
  Guarded* const range = info->si_code > 0 ? guarded_at(address, end) : nullptr;
  if (range == nullptr || !replace_with_zeros(*range, address, end)) stand_aside(number, *info);
  errno = kept;
}

/// See that SIGBUS comes here, also after somebody else took it over.
void watch_bus_errors() {
  struct sigaction now{};
  if (sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error) return;
  before.store(new struct sigaction(now));
  last_strange.store(0);
  struct sigaction ours{};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

/// Take a free range.
Guarded& take_range() {
  for (Block* block = &first_block;;) {
    for (Guarded& range : block->ranges) {
      std::uintptr_t free = 0;
      if (range.begin.compare_exchange_strong(free, kTaken)) return range;
    }
    Block* next = block->next.load();
    if (next == nullptr) {
      auto* const made = new Block;
      if (block->next.compare_exchange_strong(next, made)) {
        next = made;
      } else {
        delete made;
      }
    }
    block = next;
  }
}

Guarded& guard(std::uintptr_t begin, std::uintptr_t end) {
  watch_bus_errors();
  Guarded& range = take_range();
  range.uses.fetch_add(1);
  range.end.store(end);
  range.lost.store(end);
  range.begin.store(begin);
  return range;
}

}  // namespace

bool FileMap::supported() {
  return true;
}

FileMap::FileMap(int descriptor, std::uint64_t offset, std::size_t size)
    : offset_(offset), skipped_(static_cast<std::size_t>(offset % page_size())) {
  descriptor_ = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  const std::size_t length = skipped_ + size;
  void* const begin = descriptor_ < 0 ? MAP_FAILED
                                      : mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor_,
                                             static_cast<off_t>(offset - skipped_));
  if (begin == MAP_FAILED) {
    error_ = errno;
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  guarded_ = &guard(address, address + length);
  bytes_ = {static_cast<const std::uint8_t*>(begin) + skipped_, size};
}

FileMap::~FileMap() {
  if (guarded_ != nullptr) {
    const std::uintptr_t begin = guarded_->begin.load();
    const std::uintptr_t end = guarded_->end.load();
    guarded_->uses.fetch_add(1);
    guarded_->begin.store(0);
    munmap(reinterpret_cast<void*>(begin), end - begin);
  }
  if (descriptor_ >= 0) close(descriptor_);
}

bool FileMap::whole(std::size_t end) const {
  if (guarded_ == nullptr) return end == 0;
  const auto used = reinterpret_cast<std::uintptr_t>(bytes_.data()) + end;
  if (used > guarded_->lost.load()) return false;
  struct stat status{};
  return fstat(descriptor_, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) >= offset_ + end;
}

}  // namespace tfrio

#else

#include <cerrno>

namespace tfrio {

bool FileMap::supported() {
  return false;
}

FileMap::FileMap(int, std::uint64_t, std::size_t) : error_(ENOSYS) {}

FileMap::~FileMap() = default;

bool FileMap::whole(std::size_t end) const {
  return end == 0;
}

}  // namespace tfrio

#endif
