// Vectors of the widest registers that the compiler was told of, through the compiler's own vector types.
//
// No fast-math: a NaN that enters comes out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#define GRIT_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define GRIT_UNROLL _Pragma("unroll 16")
#define GRIT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define GRIT_UNROLL _Pragma("GCC unroll 16")
#define GRIT_INDEPENDENT _Pragma("GCC ivdep")
#endif
// GRIT_INDEPENDENT: no pass through the loop below reads what another one writes.

namespace grit {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef double DoubleVector __attribute__((vector_size(kVectorBytes)));
typedef int32_t Int32Vector __attribute__((vector_size(kVectorBytes)));
typedef int64_t Int64Vector __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Word32Vector __attribute__((vector_size(kVectorBytes)));

template <class T>
constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <class T>
using Vector = std::conditional_t<std::is_same_v<T, float>, FloatVector, DoubleVector>;

// The integer vector that a comparison of two Vector<T> gives: all bits set where it holds.
template <class T>
using Mask = std::conditional_t<std::is_same_v<T, float>, Int32Vector, Int64Vector>;

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <class T>
inline void store(T* to, Vector<T> value) {
  std::memcpy(to, &value, sizeof(value));
}

template <class T>
inline Vector<T> all(T value) {
  return value - Vector<T>{};
}

// The masks, all ones, keep g++ from warning of what its own header leaves uninitialised.
inline FloatVector square_root(FloatVector x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(0xffff, x);
#elif defined(__AVX__)
  return _mm256_sqrt_ps(x);
#else
  for (int lane = 0; lane < kLanes<float>; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}

inline DoubleVector square_root(DoubleVector x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_pd(0xff, x);
#elif defined(__AVX__)
  return _mm256_sqrt_pd(x);
#else
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}

template <class T>
inline Vector<T> absolute(Vector<T> x) {
  constexpr auto sign = std::is_same_v<T, float> ? int64_t(INT32_MIN) : INT64_MIN;
  return (Vector<T>)((Mask<T>)x & ~(Mask<T>{} + typename std::conditional_t<std::is_same_v<T, float>, int32_t, int64_t>(sign)));
}

// A square root and its inverse, for x >= 0; of 0 both are 0, so that the derivative of sqrt is 0 there and not infinite.
template <class T>
struct Root {
  Vector<T> root, inverse;
};

template <class T>
inline Root<T> root_of(Vector<T> x) {
#if defined(__AVX512F__)
  // The processor's estimate and one step of Newton's method: right to the last bit or two, and several times faster than
  // its square root and division. What is neither positive nor finite goes through as it is.
  if constexpr (std::is_same_v<T, float>) {
    const Vector<T> guess = _mm512_maskz_rsqrt14_ps(0xffff, x);
    const Vector<T> half = x * guess * T(0.5);
    const Vector<T> inverse = guess + guess * (T(0.5) - half * guess);
    const Mask<T> usual = (x > T(0)) & (x < T(INFINITY));
    return {usual ? x * inverse : x, usual ? inverse : Vector<T>{}};
  }
#endif
  const Vector<T> root = square_root(x);
  return {root, root == T(0) ? Vector<T>{} : T(1) / root};
}

// `size`, which is not negative, with the sign of x.
template <class T>
inline Vector<T> with_sign(Vector<T> size, Vector<T> x) {
  return (Vector<T>)((Mask<T>)size | ((Mask<T>)x ^ (Mask<T>)absolute<T>(x)));
}

// e^x for x <= 0, by 2^n times a Taylor polynomial on |r| <= ln(2) / 2; below about -87 (float) it stays at e^-87.
template <class T>
inline Vector<T> exponential(Vector<T> x) {
  constexpr bool single = std::is_same_v<T, float>;
  constexpr int terms = single ? 7 : 13;
  constexpr T lowest = single ? T(-87.0) : T(-708.0);
  constexpr T high = single ? T(0.693359375) : T(6.93145751953125e-1);          // ln 2 in two parts, the first short,
  constexpr T low = single ? T(-2.12194440e-4) : T(1.42860682030941723212e-6);  // so that n * high is exact
  const Vector<T> bounded = x < lowest ? all<T>(lowest) : x;
  const Vector<T> scaled = bounded * T(1.44269504088896340736);
  const Mask<T> n = __builtin_convertvector(scaled - T(0.5), Mask<T>);  // scaled <= 0: truncation rounds to nearest
  const Vector<T> whole = __builtin_convertvector(n, Vector<T>);
  const Vector<T> r = (bounded - whole * high) - whole * low;
  Vector<T> sum = all<T>(T(1));
  GRIT_UNROLL
  for (int k = terms; k >= 1; --k) sum = sum * r * T(1.0 / k) + T(1);
  constexpr int bits = single ? 23 : 52;
  const Vector<T> power = (Vector<T>)((n + (single ? 127 : 1023)) << bits);
  return x != x ? x : sum * power;
}

// Elements of two vectors, numbered from 0 through both.
template <class V, int... From>
inline V chosen(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, From...);
#else
  typedef std::conditional_t<sizeof(a[0]) == 4, int32_t, int64_t> Index __attribute__((vector_size(sizeof(V))));
  return __builtin_shuffle(a, b, Index{From...});
#endif
}

template <class T, int Distance, int... Lane>
inline Vector<T> rotated(Vector<T> x, std::integer_sequence<int, Lane...>) {
  return chosen<Vector<T>, ((Lane + Distance) % kLanes<T>)...>(x, x);
}

template <class T, int Distance>
inline Vector<T> rotated(Vector<T> x) {
  return rotated<T, Distance>(x, std::make_integer_sequence<int, kLanes<T>>());
}

// Sum over lanes that are equal modulo `period` (a power of two), the result in all of them.
template <class T>
inline Vector<T> fold(Vector<T> x, int period) {
  if constexpr (kLanes<T> > 8)
    if (period <= 8) x += rotated<T, 8>(x);
  if constexpr (kLanes<T> > 4)
    if (period <= 4) x += rotated<T, 4>(x);
  if constexpr (kLanes<T> > 2)
    if (period <= 2) x += rotated<T, 2>(x);
  if (period <= 1) x += rotated<T, 1>(x);
  return x;
}

// MurmurHash3's finaliser: every bit of the input moves every bit of the output.
template <class W>
inline W mixed(W word) {
  word ^= word >> 16;
  word *= 0x85ebca6bu;
  word ^= word >> 13;
  word *= 0xc2b2ae35u;
  word ^= word >> 16;
  return word;
}

// Which of numbered things are dropped: the same for one seed, whoever asks, in whatever order (see kernels/dropout.py).
struct Dropout {
  uint32_t seed;
  uint32_t threshold;  // dropped if the hash is below; 0 drops nothing
  double scale;        // 1 / (1 - p)

  bool on() const { return threshold != 0; }

  uint32_t key(int64_t index) const { return mixed(seed ^ mixed(uint32_t(uint64_t(index) >> 32))); }

  // 1 / (1 - p) or 0 for number `index`.
  template <class T>
  T one(int64_t index) const {
    return mixed(uint32_t(index) ^ key(index)) < threshold ? T(0) : T(scale);
  }
};

}  // namespace grit
