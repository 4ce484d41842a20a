// Matrix products on tiles that stay in cache. All column counts are multiples of the vector length: buffers are padded.
#pragma once

#include <algorithm>

#include "vector.h"

namespace grit {

#if defined(__AVX512F__)
constexpr int kRowsStep = 12;  // rows of a tile are padded to a multiple of this
constexpr int kGradientRows = 8;
#else
constexpr int kRowsStep = 6;
constexpr int kGradientRows = 4;
#endif
constexpr int kPanel = 2;  // vectors in a panel of packed weights

// Rows of a weight gradient that are worked on at once: a divisor of every padded width.
template <class T>
constexpr int kColumnsStep = kLanes<T> < kGradientRows ? kLanes<T> : kGradientRows;

// C (Rows, Vectors * lanes) = start + A B, where `start` is C itself, or `bias` repeated, or 0.
template <class T, int Rows, int Vectors, bool Accumulate>
inline __attribute__((always_inline)) void micro_product(long depth, const T* a, long a_row, long a_depth, const T* b,
                                                         long b_depth, T* c, long c_row, const T* bias) {
  Vector<T> sum[Rows][Vectors];
  GRIT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    GRIT_UNROLL
    for (int v = 0; v < Vectors; ++v) {
      if constexpr (Accumulate)
        sum[r][v] = load(c + r * c_row + v * kLanes<T>);
      else
        sum[r][v] = bias ? load(bias + v * kLanes<T>) : Vector<T>{};
    }
  }
  for (long p = 0; p < depth; ++p) {
    Vector<T> row[Vectors];
    GRIT_UNROLL
    for (int v = 0; v < Vectors; ++v) row[v] = load(b + p * b_depth + v * kLanes<T>);
    GRIT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vector<T> left = all<T>(a[r * a_row + p * a_depth]);
      GRIT_UNROLL
      for (int v = 0; v < Vectors; ++v) sum[r][v] += left * row[v];
    }
  }
  GRIT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    GRIT_UNROLL
    for (int v = 0; v < Vectors; ++v) store(c + r * c_row + v * kLanes<T>, sum[r][v]);
  }
}

// C (rows, columns) = bias + A (rows, depth) W, W packed by `pack`. Rows up to the next multiple of
// kRowsStep are written too: A and C must have room for them.
template <class T>
inline void product(long rows, long depth, long columns, const T* a, long a_row, const T* packed, T* c, long c_row,
                    const T* bias) {
  constexpr long lanes = kLanes<T>, wide = kPanel * lanes;
  long n = 0;
  for (; n + wide <= columns; n += wide)
    for (long r = 0; r < rows; r += kRowsStep)
      micro_product<T, kRowsStep, kPanel, false>(depth, a + r * a_row, a_row, 1, packed + n * depth, wide, c + r * c_row + n,
                                                 c_row, bias ? bias + n : nullptr);
  for (; n < columns; n += lanes)
    for (long r = 0; r < rows; r += kRowsStep)
      micro_product<T, kRowsStep, 1, false>(depth, a + r * a_row, a_row, 1, packed + n * depth, lanes, c + r * c_row + n, c_row,
                                            bias ? bias + n : nullptr);
}

// C (left, right) += A^T B for A (rows, left) and B (rows, right); left and right are padded.
template <class T>
inline void add_outer_product(long rows, long left, long right, const T* a, long a_row, const T* b, long b_row, T* c,
                              long c_row) {
  constexpr long lanes = kLanes<T>, wide = kPanel * lanes;
  long n = 0;
  for (; n + wide <= right; n += wide)
    for (long m = 0; m < left; m += kColumnsStep<T>)
      micro_product<T, kColumnsStep<T>, kPanel, true>(rows, a + m, 1, a_row, b + n, b_row, c + m * c_row + n, c_row, nullptr);
  for (; n < right; n += lanes)
    for (long m = 0; m < left; m += kColumnsStep<T>)
      micro_product<T, kColumnsStep<T>, 1, true>(rows, a + m, 1, a_row, b + n, b_row, c + m * c_row + n, c_row, nullptr);
}

// A (depth, columns) matrix in the packed form, panel after panel. It comes by columns, `column(n)` being where column n begins
// or null for zeros and `order(p)` which of its elements is in row p, -1 for a zero ...
template <class T, class Column, class Order>
inline void pack_columns(long depth, long columns, T* to, Column column, Order order) {
  constexpr long wide = kPanel * kLanes<T>;
  for (long first = 0; first < columns; first += wide) {
    const long width = first + wide <= columns ? wide : kLanes<T>;
    T* const panel = to + first * depth;
    for (long n = 0; n < width; ++n) {
      const T* const from = column(first + n);
      for (long p = 0; p < depth; ++p) {
        const long at = from ? order(p) : -1;
        panel[p * width + n] = at < 0 ? T(0) : from[at];
      }
    }
  }
}

// ... or by rows, `row(p)` being where row p begins, of which `size` elements are there and zeros follow; null for zeros.
template <class T, class Row>
inline void pack_rows(long depth, long columns, T* to, Row row, long size) {
  constexpr long wide = kPanel * kLanes<T>;
  for (long first = 0; first < columns; first += wide) {
    const long width = first + wide <= columns ? wide : kLanes<T>, there = std::clamp(size - first, 0L, width);
    for (long p = 0; p < depth; ++p) {
      const T* const from = row(p);
      T* const at = to + first * depth + p * width;
      if (from) std::copy(from + first, from + first + there, at);
      std::fill(at + (from ? there : 0), at + width, T(0));
    }
  }
}

}  // namespace grit
