// The node half of a layer, backward: see `layer_backward.h` for the equations.
#pragma once

#include "node_forward.h"

namespace grit {

template <class T>
struct NodeUpdateBackwardBuffers {
  T *pair_value, *pair_value_back, *out_back;  // packed (D, caller_width)
  // Sums per chunk, one after another: ∂W_O, ∂W_Ev dense, ∂b, ∂θ.
  long size;
  T* sums;
  struct Tile {
    T *pair_sum, *a, *scaled, *grad, *grad_a, *grad_pair_sum;
    Tile(Arena& arena, const Sizes& s) {
      for (T** each : {&pair_sum, &a, &scaled, &grad, &grad_a, &grad_pair_sum})
        *each = arena.take<T>(kTileRows * s.caller_width);
    }
  };
  std::vector<Tile> tiles;

  NodeUpdateBackwardBuffers(Arena& arena, const Layer<T>& layer) {
    const long d = layer.sizes.width, n = layer.sizes.caller_width;
    for (T** each : {&pair_value, &pair_value_back, &out_back}) *each = arena.take<T>(d * n);
    size = 2 * n * n + 3 * n;
    sums = arena.take<T>(node_chunks(layer.nodes) * size);
    tiles = for_threads<Tile>(arena, layer.threads, layer.sizes);
  }
};

// `gradient` is that of `updated`; wanted are those of node_sum, pair_sum and of x by way of the residual, (N, D) each.
template <class T>
void node_update_backward(const Layer<T>& layer, const RowGradient<T>& gradient, T* grad_node_sum, T* grad_pair_sum,
                          T* grad_x) {
  const auto b = allocate<NodeUpdateBackwardBuffers<T>>(layer);
  const LayerTensors<T>& wanted = layer.grads;
  const Sizes& s = layer.sizes;
  const long d = s.width, n = s.caller_width, chunks = node_chunks(layer.nodes);
  const std::vector<T> value = block_diagonal(s, layer.w.pair_value);
  pack_weight(value.data(), d, d, b.pair_value, n);
  pack_transposed(value.data(), d, d, b.pair_value_back, n);
  pack_transposed(layer.w.node_out_weight, d, d, b.out_back, n);
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    const auto& t = b.tiles[omp_get_thread_num()];
    T *weight = b.sums + chunk * b.size, *pair_value = weight + n * n, *bias = pair_value + n * n, *theta = bias + n;
    std::fill(weight, weight + b.size, T(0));
    for_tiles(layer.nodes, chunk, chunks, [&](long first, long rows) {
      attended_rows(layer, first, rows, b.pair_value, t.pair_sum, t.a);
      gradient.read(first, rows, t.grad, n, bias);
      product(rows, d, n, t.grad, n, b.out_back, t.grad_a, n, static_cast<const T*>(nullptr));  // so far of a ⊙ (θ1 + ...)
      for (long r = 0; r < rows; ++r) {
        T *grad_row = t.grad_a + r * n, *x = grad_x + (first + r) * d, *scaled = t.scaled + r * n;
        const T *row = t.a + r * n, *grad = t.grad + r * n;
        const T log_degree = layer.w.theta ? layer.stack.log_degree[first + r] : T(0);
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) {
          const T factor = degree_factor(layer, first + r, c), both = grad_row[c] * row[c];
          theta[c] += both;
          theta[n + c] += both * log_degree;
          scaled[c] = row[c] * factor;
          grad_row[c] *= factor;
          x[c] = grad[c];
        }
      }
      add_outer_product(rows, n, n, t.grad, n, t.scaled, n, weight, n);
      drop_rows(layer.node_dropout, first, rows, d, t.grad_a, n);
      add_outer_product(rows, n, n, t.pair_sum, n, t.grad_a, n, pair_value, n);
      product(rows, d, n, t.grad_a, n, b.pair_value_back, t.grad_pair_sum, n, static_cast<const T*>(nullptr));
      for (long r = 0; r < rows; ++r) {
        std::copy(t.grad_a + r * n, t.grad_a + r * n + d, grad_node_sum + (first + r) * d);
        std::copy(t.grad_pair_sum + r * n, t.grad_pair_sum + r * n + d, grad_pair_sum + (first + r) * d);
      }
    });
  }
  add_chunks(b.sums, chunks, b.size);
  const T *weight = b.sums, *pair_value = weight + n * n, *bias = pair_value + n * n, *theta = bias + n;
  for (long i = 0; i < d; ++i) std::copy(weight + i * n, weight + i * n + d, wanted.node_out_weight + i * d);
  for (long h = 0; h < s.heads; ++h)
    for (long in = 0; in < s.channels; ++in)
      for (long out = 0; out < s.channels; ++out)
        wanted.pair_value[(h * s.channels + in) * s.channels + out] =
            pair_value[(h * s.channels + in) * n + h * s.channels + out];
  std::copy(bias, bias + d, wanted.node_out_bias);
  if (layer.w.theta) std::copy(theta, theta + d, wanted.theta), std::copy(theta + n, theta + n + d, wanted.theta + d);
}

template <class T>
struct FfnBackwardBuffers {
  T *in, *in_bias, *in_back, *out_back;  // packed (D, F), (F), (F, D), (D, F), outputs padded
  // Sums per chunk, one after another: ∂W1^T, ∂W2, ∂b1, ∂b2, ∂scale, ∂shift.
  long size;
  T* sums;
  struct Tile {
    T *h, *grad, *grad_h, *before, *hidden, *grad_hidden;
    Tile(Arena& arena, const Sizes& s, long f) {
      for (T** each : {&h, &grad, &grad_h}) *each = arena.take<T>(kTileRows * s.caller_width);
      for (T** each : {&before, &hidden, &grad_hidden}) *each = arena.take<T>(kTileRows * f);
    }
  };
  std::vector<Tile> tiles;

  FfnBackwardBuffers(Arena& arena, const Layer<T>& layer) {
    const long d = layer.sizes.width, n = layer.sizes.caller_width, f = padded(layer.stack.ffn_width, kLanes<T>);
    in = arena.take<T>(d * f), in_bias = arena.take<T>(f);
    in_back = arena.take<T>(layer.stack.ffn_width * n), out_back = arena.take<T>(d * f);
    size = 2 * n * f + f + 3 * n;
    sums = arena.take<T>(node_chunks(layer.nodes) * size);
    tiles = for_threads<Tile>(arena, layer.threads, layer.sizes, f);
  }
};

// `gradient` is that of `fed`; wanted are those of `updated` as the feed-forward network reads it, and of the scale and shift
// of its normalisation.
template <class T>
void ffn_backward(const Layer<T>& layer, const RowGradient<T>& gradient, T* grad_updated, T* grad_scale, T* grad_shift) {
  const auto b = allocate<FfnBackwardBuffers<T>>(layer);
  const LayerTensors<T>& wanted = layer.grads;
  const long d = layer.sizes.width, n = layer.sizes.caller_width, chunks = node_chunks(layer.nodes);
  const long width = layer.stack.ffn_width, f = padded(width, kLanes<T>);
  const T* node_scale = layer.scale(kNodeNorm);
  pack_weight(layer.w.ffn_in_weight, width, d, b.in, f);
  pad(layer.w.ffn_in_bias, width, b.in_bias, f);
  pack_transposed(layer.w.ffn_in_weight, width, d, b.in_back, n);
  pack_transposed(layer.w.ffn_out_weight, d, width, b.out_back, f);
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    const auto& t = b.tiles[omp_get_thread_num()];
    T *in = b.sums + chunk * b.size, *out = in + n * f, *in_bias = out + n * f, *out_bias = in_bias + f;
    T *scale = out_bias + n, *shift = scale + n;
    std::fill(in, in + b.size, T(0));
    for_tiles(layer.nodes, chunk, chunks, [&](long first, long rows) {
      ffn_rows(layer, first, rows, b.in, b.in_bias, t.h, t.before, t.hidden);
      gradient.read(first, rows, t.grad, n, out_bias);
      product(rows, d, f, t.grad, n, b.out_back, t.grad_hidden, f, static_cast<const T*>(nullptr));
      add_outer_product(rows, n, f, t.grad, n, t.hidden, f, out, f);
      drop_rows(layer.ffn_dropout, first, rows, width, t.grad_hidden, f);
      for (long r = 0; r < rows; ++r) {
        T* to = t.grad_hidden + r * f;
        const T* before = t.before + r * f;
        if (layer.stack.gelu) {
          for (long c = 0; c < f; ++c) to[c] *= gelu_slope(before[c]);
        } else {
          GRIT_INDEPENDENT
          for (long c = 0; c < f; ++c) to[c] = before[c] <= T(0) ? T(0) : to[c];
        }
        GRIT_INDEPENDENT
        for (long c = 0; c < f; ++c) in_bias[c] += to[c];
      }
      add_outer_product(rows, n, f, t.h, n, t.grad_hidden, f, in, f);
      product(rows, width, n, t.grad_hidden, f, b.in_back, t.grad_h, n, static_cast<const T*>(nullptr));
      for (long r = 0; r < rows; ++r) {
        const T *from = layer.updated + (first + r) * d, *residual = t.grad + r * n, *grad_row = t.grad_h + r * n;
        T* to = grad_updated + (first + r) * d;
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) {
          const T whole = grad_row[c] + residual[c];
          to[c] = whole * node_scale[c];
          scale[c] += whole * from[c];
          shift[c] += whole;
        }
      }
    });
  }
  add_chunks(b.sums, chunks, b.size);
  const T *in = b.sums, *out = in + n * f, *in_bias = out + n * f, *out_bias = in_bias + f;
  for (long i = 0; i < d; ++i) {
    for (long h = 0; h < width; ++h) wanted.ffn_in_weight[h * d + i] = in[i * f + h];
    std::copy(out + i * f, out + i * f + width, wanted.ffn_out_weight + i * width);
  }
  std::copy(in_bias, in_bias + width, wanted.ffn_in_bias);
  std::copy(out_bias, out_bias + d, wanted.ffn_out_bias);
  std::copy(out_bias + n, out_bias + n + d, grad_scale);
  std::copy(out_bias + 2 * n, out_bias + 2 * n + d, grad_shift);
}

}  // namespace grit
