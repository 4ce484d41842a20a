// The node half of a layer, between and after the two batch normalisations of nodes.
//
//   update:        a = node_sum + W_Ev pair_sum (per head),  out = x + W_O (a ⊙ (θ1 + ln(1 + d) θ2)) + b     (dropout on a)
//   feed forward:  e = scale * rows + shift,                 out = e + W2 relu(W1 e + b1) + b2         (dropout inside)
#pragma once

#include "rows.h"

namespace grit {

template <class T>
struct NodeUpdate {
  int64_t rows, heads, channels, threads, want_moments;
  Dropout dropout;
  const T *node_sum, *pair_sum, *pair_value;  // (N, D), (N, D), (H, C, C) [head, in, out]
  const T *x, *theta, *log_degree;            // (N, D), (2, D) or null, (N)
  const T *weight, *bias;                     // (D, D), (D)
  T *out, *mean, *deviations;
  const T *grad_out, *grad_mean, *grad_deviations;
  T *grad_node_sum, *grad_pair_sum, *grad_pair_value, *grad_x, *grad_theta, *grad_weight, *grad_bias;
};

template <class T>
struct FeedForward {
  int64_t rows, width, hidden, threads, want_moments;
  Dropout dropout;
  const T *in, *scale, *shift;                // (N, D), (D), (D)
  const T *weight_in, *bias_in, *weight_out, *bias_out;
  T *out, *mean, *deviations;
  const T *grad_out, *grad_mean, *grad_deviations;
  T *grad_in, *grad_scale, *grad_shift, *grad_weight_in, *grad_bias_in, *grad_weight_out, *grad_bias_out;
};

template <class T>
inline void copy_rows(const T* from, long rows, long width, T* to, long stride) {
  for (long r = 0; r < rows; ++r) std::copy(from + r * width, from + (r + 1) * width, to + r * stride);
}

template <class T>
inline void drop_rows(const Dropout& dropout, long first, long rows, long width, T* tile, long stride) {
  if (!dropout.on()) return;
  for (long r = 0; r < rows; ++r)
    for (long c = 0; c < width; ++c) tile[r * stride + c] *= dropout.one<T>((first + r) * width + c);
}

// Rows of `chunk`, tile by tile: work(first, count).
template <class Work>
inline void for_tiles(long rows, long chunk, long chunks, Work work) {
  const long start = rows * chunk / chunks, stop = rows * (chunk + 1) / chunks;
  for (long first = start; first < stop; first += kTileRows) work(first, std::min(kTileRows, stop - first));
}

// W_Ev as one block-diagonal (D, D) weight [out, in].
template <class T>
inline std::vector<T> block_diagonal(const NodeUpdate<T>& p) {
  const long c = p.channels, d = p.heads * c;
  std::vector<T> dense(d * d, T(0));
  for (long h = 0; h < p.heads; ++h)
    for (long in = 0; in < c; ++in)
      for (long out = 0; out < c; ++out) dense[(h * c + out) * d + h * c + in] = p.pair_value[(h * c + in) * c + out];
  return dense;
}

// a, dropped; and the factor of the degree scaler for one row.
template <class T>
inline void attended_rows(const NodeUpdate<T>& p, long first, long rows, const T* packed_value, T* pair_sum, T* a, long n) {
  const long d = p.heads * p.channels;
  copy_rows(p.pair_sum + first * d, rows, d, pair_sum, n);
  product(rows, d, n, pair_sum, n, packed_value, a, n, static_cast<const T*>(nullptr));
  for (long r = 0; r < rows; ++r) {
    const T* node_sum = p.node_sum + (first + r) * d;
    GRIT_INDEPENDENT
    for (long c = 0; c < d; ++c) a[r * n + c] += node_sum[c];
  }
  drop_rows(p.dropout, first, rows, d, a, n);
}

template <class T>
inline T degree_factor(const NodeUpdate<T>& p, long row, long c) {
  const long d = p.heads * p.channels;
  return p.theta ? p.theta[c] + p.log_degree[row] * p.theta[d + c] : T(1);
}

template <class T>
void update_nodes(const NodeUpdate<T>& p) {
  const long d = p.heads * p.channels, n = padded(d, kLanes<T>), chunks = node_chunks(p.rows), tile = kTileRows * n;
  Arena<T> arena(2 * d * n + n + p.threads * 4 * tile);
  T *packed_value = arena.take(d * n), *packed = arena.take(d * n), *bias = arena.take(n);
  T* tiles = arena.take(p.threads * 4 * tile);
  pack_weight(block_diagonal(p).data(), d, d, packed_value, n);
  pack_weight(p.weight, d, d, packed, n);
  std::fill(std::copy(p.bias, p.bias + d, bias), bias + n, T(0));
  std::vector<double> moments(chunks * 2 * d, 0.0);
#pragma omp parallel for num_threads(p.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    T *pair_sum = tiles + omp_get_thread_num() * 4 * tile, *a = pair_sum + tile, *updated = a + tile;
    for_tiles(p.rows, chunk, chunks, [&](long first, long rows) {
      attended_rows(p, first, rows, packed_value, pair_sum, a, n);
      if (p.theta)
        for (long r = 0; r < rows; ++r) {
          GRIT_INDEPENDENT
          for (long c = 0; c < d; ++c) a[r * n + c] *= degree_factor(p, first + r, c);
        }
      product(rows, d, n, a, n, packed, updated, n, bias);
      for (long r = 0; r < rows; ++r) {
        T* out = p.out + (first + r) * d;
        const T* x = p.x + (first + r) * d;
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) out[c] = x[c] + updated[r * n + c];
      }
      if (p.want_moments) add_moments(p.out + first * d, rows, d, moments.data() + chunk * 2 * d, updated);
    });
  }
  if (p.want_moments) finish_moments(moments.data(), chunks, d, p.rows, p.mean, p.deviations);
}

template <class T>
void update_nodes_backward(const NodeUpdate<T>& p) {
  const long d = p.heads * p.channels, n = padded(d, kLanes<T>), chunks = node_chunks(p.rows), tile = kTileRows * n;
  const long size = 2 * n * n + 3 * n;  // per chunk: ∂W_O, ∂W_Ev dense, ∂b, ∂θ
  Arena<T> arena(3 * d * n + p.threads * 6 * tile + chunks * size);
  T *packed_value = arena.take(d * n), *value_back = arena.take(d * n), *back = arena.take(d * n);
  T *tiles = arena.take(p.threads * 6 * tile), *sums = arena.take(chunks * size);
  const std::vector<T> value = block_diagonal(p);
  pack_weight(value.data(), d, d, packed_value, n);
  pack_transposed(value.data(), d, d, value_back, n);
  pack_transposed(p.weight, d, d, back, n);
  const RowGradient<T> gradient(p.grad_out, p.out, p.mean, p.grad_mean, p.grad_deviations, d, p.rows);
#pragma omp parallel for num_threads(p.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    T *pair_sum = tiles + omp_get_thread_num() * 6 * tile, *a = pair_sum + tile, *scaled = a + tile, *grad = scaled + tile;
    T *grad_a = grad + tile, *grad_pair = grad_a + tile;
    T *weight = sums + chunk * size, *pair_value = weight + n * n, *bias = pair_value + n * n, *theta = bias + n;
    std::fill(weight, weight + size, T(0));
    for_tiles(p.rows, chunk, chunks, [&](long first, long rows) {
      attended_rows(p, first, rows, packed_value, pair_sum, a, n);
      gradient.read(first, rows, grad, n, bias);
      product(rows, d, n, grad, n, back, grad_a, n, static_cast<const T*>(nullptr));  // of the scaled rows, so far
      for (long r = 0; r < rows; ++r) {
        T *grad_row = grad_a + r * n, *x = p.grad_x + (first + r) * d;
        const T *row = a + r * n, log_degree = p.theta ? p.log_degree[first + r] : T(0);
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) {
          const T factor = degree_factor(p, first + r, c), both = grad_row[c] * row[c];
          theta[c] += both;
          theta[n + c] += both * log_degree;
          scaled[r * n + c] = row[c] * factor;
          grad_row[c] *= factor;
          x[c] = grad[r * n + c];
        }
      }
      add_outer_product(rows, n, n, grad, n, scaled, n, weight, n);
      drop_rows(p.dropout, first, rows, d, grad_a, n);
      for (long r = 0; r < rows; ++r)
        std::copy(grad_a + r * n, grad_a + r * n + d, p.grad_node_sum + (first + r) * d);
      add_outer_product(rows, n, n, pair_sum, n, grad_a, n, pair_value, n);
      product(rows, d, n, grad_a, n, value_back, grad_pair, n, static_cast<const T*>(nullptr));
      for (long r = 0; r < rows; ++r)
        std::copy(grad_pair + r * n, grad_pair + r * n + d, p.grad_pair_sum + (first + r) * d);
    });
  }
  add_chunks(sums, chunks, size);
  const T *weight = sums, *pair_value = weight + n * n, *bias = pair_value + n * n, *theta = bias + n;
  for (long i = 0; i < d; ++i) std::copy(weight + i * n, weight + i * n + d, p.grad_weight + i * d);
  for (long h = 0; h < p.heads; ++h)
    for (long in = 0; in < p.channels; ++in)
      for (long out = 0; out < p.channels; ++out)
        p.grad_pair_value[(h * p.channels + in) * p.channels + out] =
            pair_value[(h * p.channels + in) * n + h * p.channels + out];
  std::copy(bias, bias + d, p.grad_bias);
  if (p.theta) std::copy(theta, theta + d, p.grad_theta), std::copy(theta + n, theta + n + d, p.grad_theta + d);
}

// e of a tile, and relu(W1 e + b1), dropped.
template <class T>
inline void feed_in(const FeedForward<T>& p, long first, long rows, const T* packed, const T* bias, T* e, long n, T* hidden,
                    long m) {
  const long d = p.width;
  for (long r = 0; r < rows; ++r) {
    const T* from = p.in + (first + r) * d;
    GRIT_INDEPENDENT
    for (long c = 0; c < d; ++c) e[r * n + c] = p.scale[c] * from[c] + p.shift[c];
  }
  product(rows, d, m, e, n, packed, hidden, m, bias);
  for (long at = 0; at < rows * m; ++at) hidden[at] = hidden[at] < T(0) ? T(0) : hidden[at];
  drop_rows(p.dropout, first, rows, p.hidden, hidden, m);
}

template <class T>
void feed_forward(const FeedForward<T>& p) {
  const long d = p.width, n = padded(d, kLanes<T>), m = padded(p.hidden, kLanes<T>), chunks = node_chunks(p.rows);
  const long tile = kTileRows * (2 * n + m);
  Arena<T> arena(d * m + p.hidden * n + m + n + p.threads * tile);
  T *packed_in = arena.take(d * m), *packed_out = arena.take(p.hidden * n), *bias_in = arena.take(m), *bias_out = arena.take(n);
  T* tiles = arena.take(p.threads * tile);
  pack_weight(p.weight_in, p.hidden, d, packed_in, m);
  pack_weight(p.weight_out, d, p.hidden, packed_out, n);
  std::fill(std::copy(p.bias_in, p.bias_in + p.hidden, bias_in), bias_in + m, T(0));
  std::fill(std::copy(p.bias_out, p.bias_out + d, bias_out), bias_out + n, T(0));
  std::vector<double> moments(chunks * 2 * d, 0.0);
#pragma omp parallel for num_threads(p.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    T *e = tiles + omp_get_thread_num() * tile, *updated = e + kTileRows * n, *hidden = updated + kTileRows * n;
    for_tiles(p.rows, chunk, chunks, [&](long first, long rows) {
      feed_in(p, first, rows, packed_in, bias_in, e, n, hidden, m);
      product(rows, p.hidden, n, hidden, m, packed_out, updated, n, bias_out);
      for (long r = 0; r < rows; ++r) {
        T* out = p.out + (first + r) * d;
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) out[c] = e[r * n + c] + updated[r * n + c];
      }
      if (p.want_moments) add_moments(p.out + first * d, rows, d, moments.data() + chunk * 2 * d, updated);
    });
  }
  if (p.want_moments) finish_moments(moments.data(), chunks, d, p.rows, p.mean, p.deviations);
}

template <class T>
void feed_forward_backward(const FeedForward<T>& p) {
  const long d = p.width, n = padded(d, kLanes<T>), m = padded(p.hidden, kLanes<T>), chunks = node_chunks(p.rows);
  const long tile = kTileRows * (3 * n + 2 * m), size = 2 * n * m + m + 3 * n;  // ∂W1^T, ∂W2, ∂b1, ∂b2, ∂scale, ∂shift
  Arena<T> arena(d * m + m + p.hidden * n + d * m + p.threads * tile + chunks * size);
  T *packed_in = arena.take(d * m), *bias_in = arena.take(m);
  T *back_in = arena.take(p.hidden * n), *back_out = arena.take(d * m);
  T *tiles = arena.take(p.threads * tile), *sums = arena.take(chunks * size);
  pack_weight(p.weight_in, p.hidden, d, packed_in, m);
  std::fill(std::copy(p.bias_in, p.bias_in + p.hidden, bias_in), bias_in + m, T(0));
  pack_transposed(p.weight_in, p.hidden, d, back_in, n);
  pack_transposed(p.weight_out, d, p.hidden, back_out, m);
  const RowGradient<T> gradient(p.grad_out, p.out, p.mean, p.grad_mean, p.grad_deviations, d, p.rows);
#pragma omp parallel for num_threads(p.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    T *e = tiles + omp_get_thread_num() * tile, *grad = e + kTileRows * n, *grad_e = grad + kTileRows * n;
    T *hidden = grad_e + kTileRows * n, *grad_hidden = hidden + kTileRows * m;
    T *weight_in = sums + chunk * size, *weight_out = weight_in + n * m, *bias_1 = weight_out + n * m, *bias_2 = bias_1 + m;
    T *scale = bias_2 + n, *shift = scale + n;
    std::fill(weight_in, weight_in + size, T(0));
    for_tiles(p.rows, chunk, chunks, [&](long first, long rows) {
      feed_in(p, first, rows, packed_in, bias_in, e, n, hidden, m);
      gradient.read(first, rows, grad, n, bias_2);
      product(rows, d, m, grad, n, back_out, grad_hidden, m, static_cast<const T*>(nullptr));
      add_outer_product(rows, n, m, grad, n, hidden, m, weight_out, m);
      drop_rows(p.dropout, first, rows, p.hidden, grad_hidden, m);
      for (long r = 0; r < rows; ++r) {
        T *to = grad_hidden + r * m, *of = hidden + r * m;
        GRIT_INDEPENDENT
        for (long c = 0; c < m; ++c) {
          to[c] = of[c] <= T(0) ? T(0) : to[c];
          bias_1[c] += to[c];
        }
      }
      add_outer_product(rows, n, m, e, n, grad_hidden, m, weight_in, m);
      product(rows, p.hidden, n, grad_hidden, m, back_in, grad_e, n, static_cast<const T*>(nullptr));
      for (long r = 0; r < rows; ++r) {
        const T *from = p.in + (first + r) * d, *residual = grad + r * n, *grad_row = grad_e + r * n;
        T* to = p.grad_in + (first + r) * d;
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) {
          const T whole = grad_row[c] + residual[c];
          to[c] = whole * p.scale[c];
          scale[c] += whole * from[c];
          shift[c] += whole;
        }
      }
    });
  }
  add_chunks(sums, chunks, size);
  const T *weight_in = sums, *weight_out = weight_in + n * m, *bias_1 = weight_out + n * m, *bias_2 = bias_1 + m;
  for (long i = 0; i < d; ++i) {
    for (long h = 0; h < p.hidden; ++h) p.grad_weight_in[h * d + i] = weight_in[i * m + h];
    std::copy(weight_out + i * m, weight_out + i * m + p.hidden, p.grad_weight_out + i * p.hidden);
  }
  std::copy(bias_1, bias_1 + p.hidden, p.grad_bias_in);
  std::copy(bias_2, bias_2 + d, p.grad_bias_out);
  std::copy(bias_2 + n, bias_2 + n + d, p.grad_scale);
  std::copy(bias_2 + 2 * n, bias_2 + 2 * n + d, p.grad_shift);
}

}  // namespace grit
