// CRC32C: known values, and every implementation against the table.
#include "check.hpp"
#include "tfrio/crc32c.hpp"

namespace {

using tfrio::crc32c;

std::vector<std::uint8_t> noise(std::size_t size) {
  std::vector<std::uint8_t> data(size);
  std::uint32_t state = 1;
  for (auto& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return data;
}

/// Forces one implementation and puts the fastest back.
struct Forced {
  explicit Forced(std::string_view name) { CHECK(tfrio::crc32c_force(name)); }
  ~Forced() { tfrio::crc32c_force(tfrio::crc32c_backends().front()); }
};

TEST(crc32c_known_values) {
  for (std::string_view name : tfrio::crc32c_backends()) {
    Forced forced(name);
    CHECK_EQUAL(crc32c(check::bytes_of("123456789")), 0xE3069283u);
    CHECK_EQUAL(tfrio::mask_crc(crc32c(check::bytes_of("123456789"))), 0xC78AB0E5u);
    CHECK_EQUAL(tfrio::mask_crc(crc32c({})), 0xA282EAD8u);
    // RFC 3720 B.4: 32 bytes of zeros, of ones.
    CHECK_EQUAL(crc32c(std::vector<std::uint8_t>(32, 0)), 0x8A9136AAu);
    CHECK_EQUAL(crc32c(std::vector<std::uint8_t>(32, 255)), 0x62A8AB43u);
  }
}

TEST(crc32c_implementations_agree_at_every_length_and_alignment) {
  const auto data = noise(7000);
  for (std::size_t size = 0; size + 8 < data.size(); size += size < 1100 ? 1 : 97) {
    const tfrio::Bytes piece{data.data() + size % 8, size};
    std::uint32_t want = 0;
    {
      Forced table("table");
      want = crc32c(piece);
    }
    for (std::string_view name : tfrio::crc32c_backends()) {
      Forced forced(name);
      CHECK_EQUAL(crc32c(piece), want);
    }
  }
}

TEST(crc32c_continues) {
  const auto data = noise(3000);
  const tfrio::Bytes all{data};
  for (std::string_view name : tfrio::crc32c_backends()) {
    Forced forced(name);
    for (std::size_t cut : {0, 1, 7, 8, 255, 256, 1000, 2999, 3000}) {
      CHECK_EQUAL(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
    }
  }
}

TEST(crc32c_of_rest) {
  const auto data = noise(5000);
  const tfrio::Bytes all{data};
  for (std::size_t cut : {0, 1, 63, 64, 2500, 4999, 5000}) {
    CHECK_EQUAL(tfrio::crc32c_of_rest(crc32c(all.first(cut)), crc32c(all), all.size() - cut),
                crc32c(all.subspan(cut)));
  }
}

TEST(crc32c_while_copying) {
  const auto data = noise(40000);
  for (std::string_view name : tfrio::crc32c_backends()) {
    Forced forced(name);
    for (std::size_t size : {0, 1, 63, 255, 256, 257, 320, 1000, 16384, 39990}) {
      const tfrio::Bytes piece{data.data() + size % 7, size};
      for (const std::size_t at : {0, 1, 16, 63}) {  // of the copy in its cache line, nearly
        std::vector<std::uint8_t> copy(at + size + 1, 7);
        CHECK_EQUAL(tfrio::copy_with_crc32c(copy.data() + at, piece, 5), crc32c(piece, 5));
        CHECK(std::equal(piece.begin(), piece.end(), copy.data() + at));
        CHECK_EQUAL(std::count(copy.begin(), copy.begin() + static_cast<std::ptrdiff_t>(at), 7),
                    static_cast<std::ptrdiff_t>(at));
        CHECK_EQUAL(+copy[at + size], 7);
      }
    }
  }
}

TEST(crc32c_blocks_equal_single_ones) {
  const auto data = noise(20000);
  for (std::string_view name : tfrio::crc32c_backends()) {
    Forced forced(name);
    for (std::size_t length : {0, 1, 7, 8, 100, 131, 400, 1500}) {
      for (std::size_t n : {0, 1, 3, 4, 5, 9}) {
        std::uint32_t out[9] = {};
        tfrio::crc32c_blocks(data.data(), length + 16, length, n, out);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK_EQUAL(out[i], crc32c({data.data() + i * (length + 16), length}));
        }
      }
    }
  }
}

TEST(crc32c_word_is_the_crc_of_eight_bytes) {
  for (std::string_view name : tfrio::crc32c_backends()) {
    Forced forced(name);
    const auto bytes = check::unhex("0102030405060708");
    CHECK_EQUAL(tfrio::crc32c_word(0x0807060504030201u), crc32c(bytes));
  }
}

TEST(crc32c_force_refuses_an_unknown_name) {
  const std::string before(tfrio::crc32c_backend());
  CHECK(!tfrio::crc32c_force("abacus"));
  CHECK_EQUAL(std::string(tfrio::crc32c_backend()), before);
}

}  // namespace
