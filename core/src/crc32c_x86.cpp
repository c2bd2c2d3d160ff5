// CRC32C on x86-64: the CRC32 instruction in three interleaved streams, and carry-less
// multiplication of 64-byte vectors where the machine has it. Only the functions here are compiled
// for the newer instructions; they run after `supported` said yes.
#include "crc32c_backends.hpp"

#if defined(TFRIO_X86)
#include <immintrin.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

#include "tfrio/bytes.hpp"

#if defined(__GNUC__) || defined(__clang__)
#define TFRIO_TARGET(features) __attribute__((target(features)))
#else
#define TFRIO_TARGET(features)
#endif
#define TFRIO_SSE TFRIO_TARGET("sse4.2,pclmul")
#define TFRIO_AVX TFRIO_TARGET("sse4.2,pclmul,avx512f,avx512vl,avx512bw,vpclmulqdq")

namespace tfrio::crc {
namespace {

/// Feed `size` bytes one word at a time. 3 cycles a word: right for what is short.
TFRIO_SSE inline std::uint32_t serial(std::uint32_t state, const std::uint8_t* data,
                                      std::size_t size) {
  std::uint64_t wide = state;
  for (; size >= 8; data += 8, size -= 8) wide = _mm_crc32_u64(wide, load64(data));
  state = static_cast<std::uint32_t>(wide);
  if (size & 4) {
    state = _mm_crc32_u32(state, load32(data));
    data += 4;
  }
  for (size &= 3; size > 0; ++data, --size) state = _mm_crc32_u8(state, *data);
  return state;
}

/// Return `state` moved past the bits that `factor` stands for: power_of_x(bits - 33). The product
/// of two reflected 32-bit values is short of x^1, and the CRC32 instruction multiplies by x^32.
TFRIO_SSE inline std::uint32_t shift(std::uint32_t state, std::uint32_t factor) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(state)),
                                               _mm_cvtsi32_si128(static_cast<int>(factor)), 0);
  return static_cast<std::uint32_t>(
      _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))));
}

/// Return the address `offset` bytes after `data`, which may lie outside what can be read: to
/// prefetch it is harmless.
inline const char* at(const std::uint8_t* data, std::size_t offset) {
  return reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(data) + offset);
}

/// Consume whole groups of three runs of `Run` bytes, each run in a stream of its own: the CRC32
/// instruction answers after 3 cycles but starts every cycle.
template <std::size_t Run>
TFRIO_SSE inline std::uint32_t triple(std::uint32_t state, const std::uint8_t*& data,
                                      std::size_t& size) {
  constexpr std::uint32_t kOne = power_of_x(8 * Run - 33), kTwo = power_of_x(16 * Run - 33);
  for (; size >= 3 * Run; data += 3 * Run, size -= 3 * Run) {
    std::uint64_t a = state, b = 0, c = 0;
    for (std::size_t i = 0; i < Run; i += 8) {
      // The three streams are too many for the processor to foresee the next group by itself.
      if (Run >= 1024 && i % 64 == 0) {
        for (std::size_t k = 3; k < 6; ++k) _mm_prefetch(at(data, k * Run + i), _MM_HINT_T0);
      }
      a = _mm_crc32_u64(a, load64(data + i));
      b = _mm_crc32_u64(b, load64(data + Run + i));
      c = _mm_crc32_u64(c, load64(data + 2 * Run + i));
    }
    state = shift(static_cast<std::uint32_t>(a), kTwo) ^
            shift(static_cast<std::uint32_t>(b), kOne) ^ static_cast<std::uint32_t>(c);
  }
  return state;
}

TFRIO_SSE std::uint32_t sse_update(std::uint32_t state, const std::uint8_t* data,
                                   std::size_t size) {
  if (size >= 3 * 64) {
    state = triple<1024>(state, data, size);
    state = triple<64>(state, data, size);
  }
  return serial(state, data, size);
}

TFRIO_SSE std::uint32_t sse_word(std::uint32_t state, std::uint64_t word) {
  return static_cast<std::uint32_t>(_mm_crc32_u64(state, word));
}

/// Four blocks in lock step, for blocks short enough that `serial` would be right for one.
TFRIO_SSE void four(std::uint32_t state, const std::uint8_t* first, std::size_t stride,
                    std::size_t length, std::uint32_t* out) {
  const std::uint8_t *p = first, *q = p + stride, *r = q + stride, *s = r + stride;
  std::uint64_t a = state, b = state, c = state, d = state;
  std::size_t i = 0;
  for (; i + 8 <= length; i += 8) {
    a = _mm_crc32_u64(a, load64(p + i));
    b = _mm_crc32_u64(b, load64(q + i));
    c = _mm_crc32_u64(c, load64(r + i));
    d = _mm_crc32_u64(d, load64(s + i));
  }
  out[0] = serial(static_cast<std::uint32_t>(a), p + i, length - i);
  out[1] = serial(static_cast<std::uint32_t>(b), q + i, length - i);
  out[2] = serial(static_cast<std::uint32_t>(c), r + i, length - i);
  out[3] = serial(static_cast<std::uint32_t>(d), s + i, length - i);
}

template <auto Update>
TFRIO_SSE void lock_step(std::uint32_t state, const std::uint8_t* first, std::size_t stride,
                         std::size_t length, std::size_t n, std::uint32_t* out) {
  std::size_t i = 0;
  if (length < 1024) {
    for (; i + 4 <= n; i += 4) four(state, first + i * stride, stride, length, out + i);
  }
  for (; i < n; ++i) out[i] = Update(state, first + i * stride, length);
}

/// The pair of constants that moves a 128-bit lane forward by `bits`: for its first 8 bytes x^64
/// more than for its second; 33 less because a product of reflected values comes out x^33 up.
TFRIO_AVX inline __m512i fold_constants(std::uint32_t first, std::uint32_t second) {
  return _mm512_broadcast_i32x4(
      _mm_setr_epi32(static_cast<int>(first), 0, static_cast<int>(second), 0));
}

TFRIO_AVX inline __m512i fold(__m512i lanes, __m512i constants, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(lanes, constants, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(lanes, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

/// Reduce one vector of four lanes to the register: each lane moves to the place of the last one,
/// then the CRC32 instruction divides what remains of 16 bytes.
TFRIO_AVX inline std::uint32_t reduce(__m512i lanes) {
  const __m512i constants = _mm512_setr_epi32(
      static_cast<int>(power_of_x(384 + 31)), 0, static_cast<int>(power_of_x(384 - 33)), 0,
      static_cast<int>(power_of_x(256 + 31)), 0, static_cast<int>(power_of_x(256 - 33)), 0,
      static_cast<int>(power_of_x(128 + 31)), 0, static_cast<int>(power_of_x(128 - 33)), 0, 0, 0, 0,
      0);
  const __m512i last = _mm512_maskz_mov_epi64(0xC0, lanes);
  const __m512i moved = fold(lanes, constants, last);
  const __m256i half =
      _mm256_xor_si256(_mm512_castsi512_si256(moved), _mm512_extracti64x4_epi64(moved, 1));
  const __m128i whole =
      _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  const std::uint64_t state =
      _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(whole)));
  return static_cast<std::uint32_t>(
      _mm_crc32_u64(state, static_cast<std::uint64_t>(_mm_extract_epi64(whole, 1))));
}

/// Where `wide` puts what it reads: nowhere.
struct Keep {
  TFRIO_AVX void operator()(std::size_t, __m512i) const {}
};

/// Where `wide` puts what it reads: at `to`, one 64-byte vector after the other. While it stores,
/// the processor does not look beyond the page being read, so the next one is asked for; not into
/// the farther caches, which have to hold what is stored.
struct Copy {
  const std::uint8_t*& from;
  std::uint8_t*& to;
  TFRIO_AVX void operator()(std::size_t i, __m512i vector) const {
    _mm_prefetch(at(from, 4096 + 64 * i), _MM_HINT_NTA);
    _mm512_storeu_si512(to + 64 * i, vector);
  }
  void advance(std::size_t n) const { to += n; }
};

/// Consume all whole vectors of `data`, at least four, and hand each to `put`.
template <class Put>
TFRIO_AVX inline std::uint32_t wide(std::uint32_t state, const std::uint8_t*& data,
                                    std::size_t& size, Put put) {
  const auto at = [&](std::size_t i) TFRIO_AVX {
    const __m512i vector = _mm512_loadu_si512(data + 64 * i);
    put(i, vector);
    return vector;
  };
  const auto advance = [&](std::size_t n) {
    data += n;
    size -= n;
    if constexpr (requires { put.advance(n); }) put.advance(n);
  };
  const __m512i far = fold_constants(power_of_x(2048 + 31), power_of_x(2048 - 33));
  const __m512i near = fold_constants(power_of_x(512 + 31), power_of_x(512 - 33));
  __m512i a =
      _mm512_xor_si512(at(0), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  __m512i b = at(1), c = at(2), d = at(3);
  for (advance(256); size >= 256; advance(256)) {
    a = fold(a, far, at(0));
    b = fold(b, far, at(1));
    c = fold(c, far, at(2));
    d = fold(d, far, at(3));
  }
  a = fold(a, near, b);
  a = fold(a, near, c);
  a = fold(a, near, d);
  for (; size >= 64; advance(64)) a = fold(a, near, at(0));
  return reduce(a);
}

/// Blocks of 64 to 1023 bytes: folded to one vector each, many of them under way at a time.
TFRIO_AVX void short_blocks(std::uint32_t state, const std::uint8_t* first, std::size_t stride,
                            std::size_t length, std::size_t n, std::uint32_t* out) {
  const __m512i near = fold_constants(power_of_x(512 + 31), power_of_x(512 - 33));
  const __m512i begin = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  for (std::size_t r = 0; r < n; ++r, first += stride) {
    __m512i lanes = _mm512_xor_si512(_mm512_loadu_si512(first), begin);
    std::size_t i = 64;
    for (; i + 64 <= length; i += 64) lanes = fold(lanes, near, _mm512_loadu_si512(first + i));
    out[r] = serial(reduce(lanes), first + i, length - i);
  }
}

TFRIO_AVX std::uint32_t avx_update(std::uint32_t state, const std::uint8_t* data,
                                   std::size_t size) {
  if (size >= 256) state = wide(state, data, size, Keep{});
  return serial(state, data, size);
}

TFRIO_AVX std::uint32_t avx_copy(std::uint32_t state, const std::uint8_t* data, std::size_t size,
                                 std::uint8_t* to) {
  if (size >= 256) {
    // Stores that straddle two cache lines would cost twice.
    const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
    std::memcpy(to, data, head);
    state = serial(state, data, head);
    data += head, to += head, size -= head;
  }
  if (size >= 256) state = wide(state, data, size, Copy{data, to});
  std::memcpy(to, data, size);
  return serial(state, data, size);
}

TFRIO_AVX void avx_blocks(std::uint32_t state, const std::uint8_t* first, std::size_t stride,
                          std::size_t length, std::size_t n, std::uint32_t* out) {
  const bool is_short = length >= 64 && length < 1024;
  (is_short ? short_blocks : lock_step<avx_update>)(state, first, stride, length, n, out);
}

#if defined(_MSC_VER) && !defined(__clang__)
struct Leaf {
  int eax, ebx, ecx, edx;
};
Leaf cpuid(int leaf) {
  int r[4];
  __cpuidex(r, leaf, 0);
  return {r[0], r[1], r[2], r[3]};
}
bool has_sse42() {
  const int ecx = cpuid(1).ecx;
  return (ecx >> 20 & 1) && (ecx >> 1 & 1);
}
bool has_avx512() {
  if (!has_sse42() || !(cpuid(1).ecx >> 27 & 1) || (_xgetbv(0) & 0xE6) != 0xE6) return false;
  const Leaf leaf = cpuid(7);
  const unsigned ebx = static_cast<unsigned>(leaf.ebx);
  return (ebx >> 16 & 1) && (ebx >> 30 & 1) && (ebx >> 31 & 1) && (leaf.ecx >> 10 & 1);
}
#else
bool has_sse42() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
bool has_avx512() {
  return has_sse42() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("vpclmulqdq");
}
#endif

}  // namespace

const Backend kSse42Backend{
    "sse4.2", has_sse42, sse_update, copy_in_blocks<sse_update>, sse_word, lock_step<sse_update>};
const Backend kAvx512Backend{"avx512", has_avx512, avx_update, avx_copy, sse_word, avx_blocks};

}  // namespace tfrio::crc
#endif
