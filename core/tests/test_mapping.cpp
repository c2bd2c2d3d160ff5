// Mapped files that are cut short while they are read.
#include "check.hpp"
#include "tfrio/mapping.hpp"

#if defined(__unix__) || defined(__APPLE__)

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

namespace {

using tfrio::FileMap;

constexpr std::size_t kSize = 1 << 20;

/// A file without a name, full of 'a'.
class Scratch {
 public:
  Scratch() : file_(std::tmpfile()) {
    const std::vector<char> data(kSize, 'a');
    CHECK_EQUAL(std::fwrite(data.data(), 1, kSize, file_), kSize);
    std::fflush(file_);
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() { std::fclose(file_); }

  int descriptor() const { return fileno(file_); }
  void cut(off_t size) const { CHECK_EQUAL(ftruncate(descriptor(), size), 0); }

 private:
  std::FILE* file_;
};

std::size_t count(const FileMap& map, std::size_t from, char letter) {
  std::size_t found = 0;
  for (std::size_t i = from; i < map.bytes().size(); ++i) found += map.bytes()[i] == letter;
  return found;
}

/// Run `work` in a process of its own; return the signal that ended it, 0 for none.
int signal_of(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int touch_lost_page(const Scratch& file) {
  const FileMap map(file.descriptor(), 0, kSize);
  file.cut(10);
  return map.bytes()[kSize / 2];
}

TEST(what_a_file_lost_reads_as_zeros_and_is_remembered) {
  const Scratch file;
  const FileMap map(file.descriptor(), 100, kSize - 100);
  CHECK_EQUAL(map.bytes()[0], 'a');
  file.cut(kSize / 2);
  CHECK(map.whole(1000));
  CHECK(!map.whole(kSize - 100));
  CHECK_EQUAL(count(map, kSize / 2, '\0'), kSize / 2 - 100);
  CHECK(map.whole(kSize / 2 - 100));
  CHECK(!map.whole(kSize / 2 - 99));
  file.cut(kSize);  // the file is as long as before; what was read is not what it held
  CHECK(!map.whole(kSize - 100));
}

TEST(a_file_cut_before_it_is_mapped) {
  const Scratch file;
  file.cut(5000);
  const FileMap map(file.descriptor(), 0, kSize);
  CHECK_EQUAL(map.error(), 0);
  CHECK_EQUAL(count(map, 0, 'a'), 5000u);
  CHECK(!map.whole(kSize));
}

TEST(a_descriptor_that_is_none) {
  const FileMap map(-1, 0, 10);
  CHECK_EQUAL(map.error(), EBADF);
  CHECK_EQUAL(map.bytes().size(), 0u);
}

TEST(many_maps_at_once) {
  const Scratch file;
  std::vector<std::unique_ptr<FileMap>> maps;
  for (int i = 0; i < 300; ++i) {
    maps.push_back(std::make_unique<FileMap>(file.descriptor(), 0, kSize));
  }
  file.cut(0);
  for (const auto& map : maps) CHECK_EQUAL(map->bytes()[kSize - 1], 0);
  maps.erase(maps.begin(), maps.begin() + 150);
  for (int i = 0; i < 200; ++i) {
    maps.push_back(std::make_unique<FileMap>(file.descriptor(), 0, kSize));
  }
  for (const auto& map : maps) CHECK_EQUAL(map->bytes()[kSize - 1], 0);
}

TEST(other_bus_errors_do_what_they_did) {
  const Scratch file;
  CHECK_EQUAL(signal_of([&] {
                signal(SIGBUS, SIG_DFL);  // the sanitizers set a handler
                touch_lost_page(file);
                raise(SIGBUS);
              }),
              SIGBUS);
  CHECK_EQUAL(signal_of([&] {
                signal(SIGBUS, [](int) { _exit(0); });
                touch_lost_page(file);
                raise(SIGBUS);
                raise(SIGKILL);
              }),
              0);
  CHECK_EQUAL(signal_of([&] {
                signal(SIGBUS, SIG_IGN);  // set over ours: the next map takes it back
                touch_lost_page(file);
              }),
              0);
}

}  // namespace

#endif
