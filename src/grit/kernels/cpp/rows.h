// Rows that a batch normalisation follows.
//
// Whoever computes rows also sums them and their squares; from the sums `normalise` makes a scale and a shift, which whoever
// reads the rows applies. On the way back the gradients of scale and shift are summed, `normalise_back` turns them into
// what every row's gradient gets in addition, and `RowGradient` adds that when the rows' gradient is read.
#pragma once

#include "stack.h"

namespace grit {

// Write rows, each the sum of two, and add up their sums and the sums of their squares, (2, width) in double: no digits are
// lost between a large mean and a small deviation. Within the tile, differences from its first row are summed in the rows'
// own type, which is faster; `room` holds 2 * width. Without `sums` rows are only written.
template <class T>
inline void write_rows(const T* left, const T* right, long stride, long rows, long width, T* to, double* sums, T* room) {
  for (long r = 0; r < rows; ++r) {
    const T *a = left + r * stride, *b = right + r * stride;
    T* out = to + r * width;
    GRIT_INDEPENDENT
    for (long c = 0; c < width; ++c) out[c] = a[c] + b[c];
  }
  if (!sums) return;
  T *differences = room, *squares = room + width;
  std::fill(room, room + 2 * width, T(0));
  for (long r = 1; r < rows; ++r) {
    const T* row = to + r * width;
    GRIT_INDEPENDENT
    for (long c = 0; c < width; ++c) {
      const T difference = row[c] - to[c];
      differences[c] += difference;
      squares[c] += difference * difference;
    }
  }
  for (long c = 0; c < width; ++c) {
    const double first = double(to[c]), sum = double(differences[c]);
    sums[c] += double(rows) * first + sum;
    sums[width + c] += double(squares[c]) + first * (2 * sum + double(rows) * first);
  }
}

// The scale and shift of a normalisation. `sums` (chunks, 2, D) are those of `write_rows`, added up in order and, if several
// processes share the batch, over all of them; they are not read where the statistics are given.
template <class T>
inline void normalise(const Layer<T>& layer, Norm norm, long rows, const double* sums, long chunks) {
  const Stack<T>& s = layer.stack;
  const long d = s.width(), at = s.at_norm(layer.number, norm);
  const auto& w = layer.w.norms[norm];
  T *mean = s.mean + at, *variance = s.variance + at, *deviation = s.inverse_deviation + at;
  double count = double(rows);
  std::vector<double> total;
  if (s.batch_statistics) {
    total.assign(2 * d + 1, 0.0);
    for (long k = 0; k < chunks; ++k)
      for (long c = 0; c < 2 * d; ++c) total[c] += sums[k * 2 * d + c];
    total[2 * d] = count;
    if (s.sum_over_processes) s.sum_over_processes(total.data(), 2 * d + 1);
    count = total[2 * d];
  }
  for (long c = 0; c < d; ++c) {
    T biased;
    if (s.batch_statistics) {
      const double left = total[d + c] - total[c] * total[c] / count;
      const double deviations = left < 0 ? 0 : left;  // keeps NaN
      mean[c] = T(total[c] / count), biased = T(deviations / count), variance[c] = T(deviations / (count - 1));
    } else {
      const T* const* statistics = s.statistics + (layer.number * kNorms + norm) * 2;
      mean[c] = statistics[0][c], biased = statistics[1][c];
    }
    deviation[c] = T(1) / std::sqrt(biased + T(s.eps));
    s.scale[at + c] = w.weight[c] * deviation[c];
    s.shift[at + c] = w.bias[c] - mean[c] * s.scale[at + c];
  }
}

// The gradients of a normalisation's weight and bias, and what the gradient of each of its rows gets in addition:
// constant + slope * row.
template <class T>
struct NormGradient {
  std::vector<T> constant, slope;  // (D); empty where the statistics are given
};

// From the gradients of scale and shift, (D) each.
template <class T>
inline NormGradient<T> normalise_back(const Layer<T>& layer, Norm norm, long rows, const T* grad_scale, const T* grad_shift) {
  const Stack<T>& s = layer.stack;
  const long d = s.width();
  const auto& grad = layer.grads.norms[norm];
  const T *mean = s.mean + s.at_norm(layer.number, norm), *scale = layer.scale(norm);
  const T* deviation = s.inverse_deviation + s.at_norm(layer.number, norm);
  for (long c = 0; c < d; ++c) {
    grad.weight[c] = (grad_scale[c] - grad_shift[c] * mean[c]) * deviation[c];
    grad.bias[c] = grad_shift[c];
  }
  NormGradient<T> more;
  if (!s.batch_statistics) return more;
  std::vector<double> total(2 * d + 1);
  for (long c = 0; c < d; ++c) total[c] = double(grad.weight[c]), total[d + c] = double(grad_shift[c]);
  total[2 * d] = double(rows);
  if (s.sum_over_processes) s.sum_over_processes(total.data(), 2 * d + 1);
  const T count = T(total[2 * d]);
  more.constant.resize(d), more.slope.resize(d);
  for (long c = 0; c < d; ++c) {
    more.slope[c] = -T(total[c]) * scale[c] * deviation[c] / count;
    more.constant[c] = -T(total[d + c]) * scale[c] / count - more.slope[c] * mean[c];
  }
  return more;
}

// The whole gradient of rows, (R, D): what is given for them, and what their normalisation adds.
template <class T>
struct RowGradient {
  const T *given, *rows;
  NormGradient<T> more;
  long width;

  // Rows [first, first + count) to `tile`, `stride` apart; their sum is added to `sum`.
  void read(long first, long count, T* tile, long stride, T* sum) const {
    const T *constant = more.constant.data(), *slope = more.slope.data();
    for (long r = 0; r < count; ++r) {
      T* to = tile + r * stride;
      const T *from = given + (first + r) * width, *row = rows + (first + r) * width;
      if (more.slope.empty()) {
        std::copy(from, from + width, to);
      } else {
        GRIT_INDEPENDENT
        for (long c = 0; c < width; ++c) to[c] = from[c] + (constant[c] + slope[c] * row[c]);
      }
      GRIT_INDEPENDENT
      for (long c = 0; c < width; ++c) sum[c] += to[c];
    }
  }
};

template <class T>
inline void copy_rows(const T* from, long rows, long width, T* to, long stride) {
  for (long r = 0; r < rows; ++r) std::copy(from + r * width, from + (r + 1) * width, to + r * stride);
}

// A bias, padded with zeros.
template <class T>
inline void pad(const T* from, long size, T* to, long padded_size) {
  std::fill(std::copy(from, from + size, to), to + padded_size, T(0));
}

// Multiply rows by a dropout mask, elements numbered row by row.
template <class T>
inline void drop_rows(const Dropout& dropout, long first, long rows, long width, T* tile, long stride) {
  if (!dropout.on()) return;
  for (long r = 0; r < rows; ++r)
    for (long c = 0; c < width; ++c) tile[r * stride + c] *= dropout.one<T>((first + r) * width + c);
}

// A weight (outputs, inputs) packed for y = x W^T, or transposed for the way back.
template <class T>
inline void pack_weight(const T* weight, long outputs, long inputs, T* to, long padded_outputs) {
  const auto column = [=](long n) { return n < outputs ? weight + n * inputs : nullptr; };
  pack_columns(inputs, padded_outputs, to, column, [](long p) { return p; });
}

template <class T>
inline void pack_transposed(const T* weight, long outputs, long inputs, T* to, long padded_inputs) {
  pack_rows(outputs, padded_inputs, to, [=](long p) { return weight + p * inputs; }, inputs);
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
