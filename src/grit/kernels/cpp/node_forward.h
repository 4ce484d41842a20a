// The node half of a layer, forward: see `layer_forward.h` for the equations.
#pragma once

#include "rows.h"

namespace grit {

// W_Ev as one block-diagonal (D, D) weight [out, in].
template <class T>
inline std::vector<T> block_diagonal(const Sizes& s, const T* pair_value) {
  const long c = s.channels, d = s.width;
  std::vector<T> dense(d * d, T(0));
  for (long h = 0; h < s.heads; ++h)
    for (long in = 0; in < c; ++in)
      for (long out = 0; out < c; ++out) dense[(h * c + out) * d + h * c + in] = pair_value[(h * c + in) * c + out];
  return dense;
}

// x̂ of a tile, dropped: a (rows, caller_width) from the two sums of the attention.
template <class T>
inline void attended_rows(const Layer<T>& layer, long first, long rows, const T* pair_value, T* pair_sum, T* a) {
  const long d = layer.sizes.width, n = layer.sizes.caller_width;
  copy_rows(layer.pair_sum + first * d, rows, d, pair_sum, n);
  product(rows, d, n, pair_sum, n, pair_value, a, n, static_cast<const T*>(nullptr));
  for (long r = 0; r < rows; ++r) {
    const T* node_sum = layer.node_sum + (first + r) * d;
    T* to = a + r * n;
    GRIT_INDEPENDENT
    for (long c = 0; c < d; ++c) to[c] += node_sum[c];
  }
  drop_rows(layer.node_dropout, first, rows, d, a, n);
}

// θ1 + ln(1 + d_i) θ2 for one node and channel.
template <class T>
inline T degree_factor(const Layer<T>& layer, long node, long c) {
  const T* theta = layer.w.theta;
  return theta ? theta[c] + layer.stack.log_degree[node] * theta[layer.sizes.width + c] : T(1);
}

template <class T>
struct NodeUpdateBuffers {
  T *pair_value, *out, *bias;  // packed (D, caller_width), twice; (caller_width)
  double* moments;             // (chunks, 2, D)
  struct Tile {
    T *pair_sum, *a, *updated, *room;
    Tile(Arena& arena, const Sizes& s)
        : pair_sum(arena.take<T>(kTileRows * s.caller_width)),
          a(arena.take<T>(kTileRows * s.caller_width)),
          updated(arena.take<T>(kTileRows * s.caller_width)),
          room(arena.take<T>(2 * s.width)) {}
  };
  std::vector<Tile> tiles;

  NodeUpdateBuffers(Arena& arena, const Layer<T>& layer) {
    const long d = layer.sizes.width, n = layer.sizes.caller_width;
    pair_value = arena.take<T>(d * n), out = arena.take<T>(d * n), bias = arena.take<T>(n);
    moments = arena.take<double>(node_chunks(layer.nodes) * 2 * d);
    tiles = for_threads<Tile>(arena, layer.threads, layer.sizes);
  }
};

template <class T>
void node_update_forward(const Layer<T>& layer) {
  const auto b = allocate<NodeUpdateBuffers<T>>(layer);
  const long d = layer.sizes.width, n = layer.sizes.caller_width, chunks = node_chunks(layer.nodes);
  pack_weight(block_diagonal(layer.sizes, layer.w.pair_value).data(), d, d, b.pair_value, n);
  pack_weight(layer.w.node_out_weight, d, d, b.out, n);
  pad(layer.w.node_out_bias, d, b.bias, n);
  std::fill(b.moments, b.moments + chunks * 2 * d, 0.0);
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    const auto& tile = b.tiles[omp_get_thread_num()];
    for_tiles(layer.nodes, chunk, chunks, [&](long first, long rows) {
      attended_rows(layer, first, rows, b.pair_value, tile.pair_sum, tile.a);
      for (long r = 0; layer.w.theta && r < rows; ++r) {
        T* row = tile.a + r * n;
        GRIT_INDEPENDENT
        for (long c = 0; c < d; ++c) row[c] *= degree_factor(layer, first + r, c);
      }
      product(rows, d, n, tile.a, n, b.out, tile.updated, n, b.bias);
      // x is read with the stride of the tile.
      copy_rows(layer.x + first * d, rows, d, tile.pair_sum, n);
      write_rows(tile.pair_sum, tile.updated, n, rows, d, layer.updated + first * d,
                 layer.stack.batch_statistics ? b.moments + chunk * 2 * d : nullptr, tile.room);
    });
  }
  normalise(layer, kNodeNorm, layer.nodes, b.moments, chunks);
}

// σ and σ' of the feed-forward network.
template <class T>
inline T gelu(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
}
template <class T>
inline T gelu_slope(T x) {
  return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))) + x * T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
}

// h of a tile, the nodes normalised; W_1 h + b_1 before σ in `before`; σ of it, dropped, in `hidden`.
template <class T>
inline void ffn_rows(const Layer<T>& layer, long first, long rows, const T* weight, const T* bias, T* h, T* before, T* hidden) {
  const long d = layer.sizes.width, n = layer.sizes.caller_width, f = padded(layer.stack.ffn_width, kLanes<T>);
  const T *scale = layer.scale(kNodeNorm), *shift = layer.shift(kNodeNorm);
  for (long r = 0; r < rows; ++r) {
    const T* from = layer.updated + (first + r) * d;
    T* to = h + r * n;
    GRIT_INDEPENDENT
    for (long c = 0; c < d; ++c) to[c] = scale[c] * from[c] + shift[c];
  }
  product(rows, d, f, h, n, weight, before, f, bias);
  if (layer.stack.gelu) {
    for (long at = 0; at < rows * f; ++at) hidden[at] = gelu(before[at]);
  } else {
    GRIT_INDEPENDENT
    for (long at = 0; at < rows * f; ++at) hidden[at] = before[at] < T(0) ? T(0) : before[at];  // keeps NaN
  }
  drop_rows(layer.ffn_dropout, first, rows, layer.stack.ffn_width, hidden, f);
}

template <class T>
struct FfnBuffers {
  T *in, *in_bias, *out, *out_bias;  // packed (D, F), (F), packed (F, D), (D), outputs padded
  double* moments;                   // (chunks, 2, D)
  struct Tile {
    T *h, *updated, *before, *hidden, *room;
    Tile(Arena& arena, const Sizes& s, long f)
        : h(arena.take<T>(kTileRows * s.caller_width)),
          updated(arena.take<T>(kTileRows * s.caller_width)),
          before(arena.take<T>(kTileRows * f)),
          hidden(arena.take<T>(kTileRows * f)),
          room(arena.take<T>(2 * s.width)) {}
  };
  std::vector<Tile> tiles;

  FfnBuffers(Arena& arena, const Layer<T>& layer) {
    const long d = layer.sizes.width, n = layer.sizes.caller_width, f = padded(layer.stack.ffn_width, kLanes<T>);
    in = arena.take<T>(d * f), in_bias = arena.take<T>(f);
    out = arena.take<T>(layer.stack.ffn_width * n), out_bias = arena.take<T>(n);
    moments = arena.take<double>(node_chunks(layer.nodes) * 2 * d);
    tiles = for_threads<Tile>(arena, layer.threads, layer.sizes, f);
  }
};

template <class T>
void ffn_forward(const Layer<T>& layer) {
  const auto b = allocate<FfnBuffers<T>>(layer);
  const long d = layer.sizes.width, n = layer.sizes.caller_width, chunks = node_chunks(layer.nodes);
  const long width = layer.stack.ffn_width, f = padded(width, kLanes<T>);
  pack_weight(layer.w.ffn_in_weight, width, d, b.in, f);
  pack_weight(layer.w.ffn_out_weight, d, width, b.out, n);
  pad(layer.w.ffn_in_bias, width, b.in_bias, f);
  pad(layer.w.ffn_out_bias, d, b.out_bias, n);
  std::fill(b.moments, b.moments + chunks * 2 * d, 0.0);
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    const auto& tile = b.tiles[omp_get_thread_num()];
    for_tiles(layer.nodes, chunk, chunks, [&](long first, long rows) {
      ffn_rows(layer, first, rows, b.in, b.in_bias, tile.h, tile.before, tile.hidden);
      product(rows, width, n, tile.hidden, f, b.out, tile.updated, n, b.out_bias);
      write_rows(tile.h, tile.updated, n, rows, d, layer.fed + first * d,
                 layer.stack.batch_statistics ? b.moments + chunk * 2 * d : nullptr, tile.room);
    });
  }
  normalise(layer, kFfnNorm, layer.nodes, b.moments, chunks);
}

}  // namespace grit
