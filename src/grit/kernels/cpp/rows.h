// Rows that a batch normalisation follows: their moments on the way forward, their whole gradient on the way back.
//
// An operation returns its rows with their mean and sum of squared deviations; whoever reads the rows normalises them. On
// the way back the gradients of all three meet again here.
#pragma once

#include "layout.h"

namespace grit {

// Sums of rows and of their squares, (2, width) in double: no digits are lost between a large mean and a small deviation.
// Within a tile, differences from its first row are summed in the rows' own type, which is faster.
template <class T>
inline void add_moments(const T* tile, long rows, long width, double* sums, T* differences) {
  std::fill(differences, differences + 2 * width, T(0));
  T* squares = differences + width;
  for (long r = 1; r < rows; ++r) {
    const T* row = tile + r * width;
    GRIT_INDEPENDENT
    for (long c = 0; c < width; ++c) {
      const T difference = row[c] - tile[c];
      differences[c] += difference;
      squares[c] += difference * difference;
    }
  }
  GRIT_INDEPENDENT
  for (long c = 0; c < width; ++c) {
    const double first = tile[c], sum = differences[c];
    sums[c] += double(rows) * first + sum;
    sums[width + c] += double(squares[c]) + first * (2 * sum + double(rows) * first);
  }
}

// Sums of `chunks` chunks, each (2, width), added up in order -> mean and sum of squared deviations.
template <class T>
inline void finish_moments(const double* sums, long chunks, long width, long rows, T* mean, T* deviations) {
  for (long c = 0; c < width; ++c) {
    double sum = 0, squares = 0;
    for (long k = 0; k < chunks; ++k) sum += sums[k * 2 * width + c], squares += sums[(k * 2 + 1) * width + c];
    mean[c] = T(sum / double(rows));
    const double left = squares - sum * sum / double(rows);
    deviations[c] = T(left < 0 ? 0 : left);
  }
}

// ∂rows = what is given for the rows + ∂mean / R + 2 ∂deviations (rows - mean). Any of the three may be absent.
template <class T>
class RowGradient {
 public:
  RowGradient(const T* given, const T* rows, const T* mean, const T* grad_mean, const T* grad_deviations, long width,
              long count)
      : given_(given), rows_(rows), width_(width), constant_(width, T(0)), slope_(grad_deviations ? width : 0) {
    for (long c = 0; c < width; ++c) {
      if (grad_mean) constant_[c] = grad_mean[c] / T(count);
      if (grad_deviations) slope_[c] = 2 * grad_deviations[c], constant_[c] -= slope_[c] * mean[c];
    }
  }

  // Rows [first, first + count) to `tile`, `stride` apart; their sum is added to `sum`.
  void read(long first, long count, T* tile, long stride, T* sum) const {
    for (long r = 0; r < count; ++r) {
      T* to = tile + r * stride;
      const T *given = given_ + (first + r) * width_, *row = rows_ + (first + r) * width_;
      const T *constant = constant_.data(), *slope = slope_.data();
      if (given_ && !slope_.empty()) {
        GRIT_INDEPENDENT
        for (long c = 0; c < width_; ++c) to[c] = given[c] + (constant[c] + slope[c] * row[c]);
      } else {
        for (long c = 0; c < width_; ++c)
          to[c] = (given_ ? given[c] : T(0)) + constant[c] + (slope_.empty() ? T(0) : slope[c] * row[c]);
      }
      GRIT_INDEPENDENT
      for (long c = 0; c < width_; ++c) sum[c] += to[c];
    }
  }

 private:
  const T *given_, *rows_;
  long width_;
  std::vector<T> constant_, slope_;
};

// Nodes are cut into chunks, too, for the same reason as pairs: an even number, so that two threads share them well.
inline long node_chunks(long rows) { return 2 * std::clamp(rows / 256, 1L, kLargestChunks / 2); }

// A weight (outputs, inputs) packed for y = x W^T, or transposed for the way back.
template <class T>
inline void pack_weight(const T* weight, long outputs, long inputs, T* to, long padded_outputs) {
  pack(inputs, padded_outputs, to, [=](long k, long n) { return n < outputs ? weight[n * inputs + k] : T(0); });
}

template <class T>
inline void pack_transposed(const T* weight, long outputs, long inputs, T* to, long padded_inputs) {
  pack(outputs, padded_inputs, to, [=](long n, long k) { return k < inputs ? weight[n * inputs + k] : T(0); });
}

// Accumulators of equal size, one per chunk, added up in order into the first.
template <class T>
inline void add_chunks(T* first, long chunks, long size) {
  for (long k = 1; k < chunks; ++k) {
    const T* from = first + k * size;
    GRIT_INDEPENDENT
    for (long at = 0; at < size; ++at) first[at] += from[at];
  }
}

}  // namespace grit
