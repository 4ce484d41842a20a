// The pair half of a layer, backward: see `layer_backward.h` for the equations.
#pragma once

#include "pair_forward.h"

namespace grit {

// The gradients that reach the pair half, and those that it gives back besides those of the weights.
template <class T>
struct PairGradients {
  const T *node_sum, *pair_sum;  // given, (N, D)
  RowGradient<T> out;            // given, of the pairs that the layer writes; `given` null: it writes none
  T *x, *pair;                   // wanted, (N, D), (P, D); `pair` may be where `out.given` is: tiles are read first
  T *scale, *shift;              // wanted, (D): of the normalisation of the pairs that the layer reads
};

// What one chunk adds up; chunks are added to one another in order.
template <class T>
struct ChunkSums {
  T* all;                // everything but the last two, one after another
  T *projection, *bias;  // (caller_width, 2 kernel_width), (2 kernel_width)
  T *out, *out_bias;     // (kernel_width, caller_width), (caller_width)
  T* score;              // (kernel_width)
  T *scale, *shift;      // (caller_width)
  long size;             // of `all`
  T *key, *value;        // (keys of the chunk, kernel_width)

  ChunkSums(Arena& arena, const Sizes& s, const Chunk& chunk) {
    const long n = s.caller_width, m = s.kernel_width;
    const long sizes[] = {n * 2 * m, 2 * m, m * n, n, m, n, n};
    T** const parts[] = {&projection, &bias, &out, &out_bias, &score, &scale, &shift};
    size = 0;
    for (long part : sizes) size += part;
    all = arena.take<T>(size);
    long at = 0;
    for (long k = 0; k < 7; ++k) *parts[k] = all ? all + at : nullptr, at += sizes[k];
    key = arena.take<T>(chunk.keys() * m), value = arena.take<T>(chunk.keys() * m);
  }

  void clear(const Sizes& s, const Chunk& chunk) const {
    std::fill(all, all + size, T(0));
    std::fill(key, key + chunk.keys() * s.kernel_width, T(0));
    std::fill(value, value + chunk.keys() * s.kernel_width, T(0));
  }
};

// One query's rows in the kernels' order.
template <class T>
struct QueryGradients {
  T *node, *pair, *query;      // ∂node_sum_i, ∂pair_sum_i, and ∂q_i as it is added up: (kernel_width)
  Vector<T>*logsumexp, *mean;  // per head; the mean is Σ_k α_ik g_k

  QueryGradients(Arena& arena, const Sizes& s) {
    node = arena.take<T>(s.kernel_width), pair = arena.take<T>(s.kernel_width), query = arena.take<T>(s.kernel_width);
    logsumexp = arena.take<Vector<T>>(s.head_vectors), mean = arena.take<Vector<T>>(s.head_vectors);
  }

  void start(const Layer<T>& layer, const PairGradients<T>& given, const Sizes& s, long i) const {
    const long d = s.width, lanes = kLanes<T>;
    to_kernel_order(s, given.node_sum + i * d, node);
    to_kernel_order(s, given.pair_sum + i * d, pair);
    std::fill(query, query + s.kernel_width, T(0));
    for (long u = 0; u < s.head_vectors; ++u)
      for (long lane = 0; lane < lanes; ++lane) {
        const long h = (u * lanes + lane) & (s.padded_heads - 1);
        const bool real = h < s.heads;
        T dot = 0;
        for (long c = 0; real && c < s.channels; ++c) {
          const long at = i * d + h * s.channels + c;
          dot += given.node_sum[at] * layer.node_sum[at] + given.pair_sum[at] * layer.pair_sum[at];
        }
        logsumexp[u][lane] = real ? layer.logsumexp[i * s.heads + h] : T(0);
        mean[u][lane] = dot;
      }
  }
};

template <class T>
struct BackwardTile {
  T *pairs, *projected, *hidden, *grad_out, *grad_hidden, *grad_pairs, *mask;
  Vector<T>*logits, *weights, *grad_logits;  // per head vector
  Vector<T>* inverse;                        // 1 / sqrt|z| of a pair, per vector
  QueryGradients<T> query;

  BackwardTile(Arena& arena, const Sizes& s)
      : pairs(arena.take<T>(kTileRows * s.caller_width)),
        projected(arena.take<T>(kTileRows * 2 * s.kernel_width)),
        hidden(arena.take<T>(kTileRows * s.kernel_width)),
        grad_out(arena.take<T>(kTileRows * s.caller_width)),
        grad_hidden(arena.take<T>(kTileRows * s.kernel_width)),
        grad_pairs(arena.take<T>(kTileRows * s.caller_width)),
        mask(arena.take<T>(s.kernel_width)),
        logits(arena.take<Vector<T>>(s.head_vectors)),
        weights(arena.take<Vector<T>>(s.head_vectors)),
        grad_logits(arena.take<Vector<T>>(s.head_vectors)),
        inverse(arena.take<Vector<T>>(s.vectors)),
        query(arena, s) {}
};

// The pairs of one query within a tile, of which `first` is row r of the tile. On entry `projected` holds (u, b) and
// `grad_hidden` what W_Eo sends back; on return `projected` holds (∂u, ∂b) and `hidden` what W_Eo was given.
template <class T, int Vectors>
inline void backward_segment(const Layer<T>& layer, const PairWeights<T>& w, const PairGradients<T>& given, long i, long first,
                             long rows, long row_in_tile, const Chunk& chunk, const BackwardTile<T>& tile,
                             const ChunkSums<T>& grads) {
  const Sizes& s = w.s;
  const long vectors = Vectors ? Vectors : s.vectors, m = vectors * kLanes<T>;
  const long head_vectors = Vectors ? 1 : s.head_vectors;
  const T bound = layer.clamp();
  const bool drops_attention = layer.attention_dropout.on(), drops_pairs = layer.pair_out && layer.pair_dropout.on();
  const QueryGradients<T>& query = tile.query;
  Vector<T> logit_here[1], weight_here[1], grad_here[1];  // in registers, where there is one vector of heads
  Vector<T>* const logit_of = Vectors ? logit_here : tile.logits;
  Vector<T>* const weight_of = Vectors ? weight_here : tile.weights;
  Vector<T>* const grad_of = Vectors ? grad_here : tile.grad_logits;
  Vector<T> inverse_here[Vectors ? Vectors : 1];
  Vector<T>* const inverse = Vectors ? inverse_here : tile.inverse;
  const T* q = w.query(i);
  // What every row adds to, in registers where their number is known: ∂q_i, ∂W_A, ∂bias of scale and shift.
  T* const sums[] = {query.query, grads.score, grads.bias, grads.bias + m};
  Vector<T> kept_sums[4][Vectors ? Vectors : 1];
  GRIT_UNROLL
  for (int which = 0; which < 4; ++which) {
    GRIT_UNROLL
    for (long v = 0; v < Vectors; ++v) kept_sums[which][v] = load(sums[which] + v * kLanes<T>);
  }
  for (long r = 0; r < rows; ++r) {
    const long j = layer.stack.key[first + r], at_row = row_in_tile + r;
    fetch_ahead(layer.pair, first + r + kTileRows, s.width);
    fetch_ahead(given.out.given, first + r + kTileRows, s.width);
    fetch_ahead(given.out.given ? given.out.rows : nullptr, first + r + kTileRows, s.width);
    const T *k = w.key(j), *value = w.value(j), *from_out = tile.grad_hidden + at_row * m;
    T *row = tile.hidden + at_row * m, *u_b = tile.projected + at_row * 2 * m;
    T *grad_key = grads.key + (j - chunk.first_key) * m, *grad_value = grads.value + (j - chunk.first_key) * m;
    attend<T, Vectors>(s, q, k, u_b, w.score, row, logit_of, inverse);
    for (long u = 0; u < head_vectors; ++u) {
      Vector<T> reached{};  // g_ij
      GRIT_UNROLL
      for (long v = u; v < vectors; v += head_vectors) {
        const long at = v * kLanes<T>;
        reached += load(query.node + at) * load(value + at) + load(query.pair + at) * load(row + at);
      }
      reached = fold<T>(reached, int(s.padded_heads));
      const Vector<T> logit = logit_of[u];
      const Vector<T> weight = exponential<T>(clamped<T>(logit, bound) - query.logsumexp[u]);
      const Vector<T> kept = drops_attention ? kept_heads<T>(layer.attention_dropout, s, first + r, u) : all<T>(T(1));
      const Vector<T> grad = weight * (kept * reached - query.mean[u]);
      grad_of[u] = absolute<T>(logit) > bound ? Vector<T>{} : grad;
      weight_of[u] = weight * kept;
    }
    if (drops_pairs) {
      std::fill(tile.mask, tile.mask + m, T(1));
      drop_channels(layer.pair_dropout, w, first + r, tile.mask);
    }
    for (long u = 0; u < head_vectors; ++u) {
      const Vector<T> weight = weight_of[u], grad_logit = grad_of[u];
      GRIT_UNROLL
      for (long v = u; v < vectors; v += head_vectors) {
        const long at = v * kLanes<T>;
        const Vector<T> after = load(row + at), sum = load(q + at) + load(k + at), scale = load(u_b + at);
        Vector<T> from = load(from_out + at);
        if (drops_pairs) from *= load(tile.mask + at);
        const Vector<T> grad_after = from + weight * load(query.pair + at) + grad_logit * load(w.score + at);
        const Vector<T> grad_before = after <= T(0) ? Vector<T>{} : grad_after;
        const Vector<T> grad_product = grad_before * T(0.5) * inverse[v];
        const Vector<T> grad_sum = grad_product * scale;
        store(u_b + at, grad_product * sum);
        store(u_b + m + at, grad_before);
        store(grad_key + at, load(grad_key + at) + grad_sum);
        store(grad_value + at, load(grad_value + at) + weight * load(query.node + at));
        const Vector<T> more[] = {grad_sum, grad_logit * after, grad_product * sum, grad_before};
        GRIT_UNROLL
        for (int which = 0; which < 4; ++which) {
          if constexpr (Vectors)
            kept_sums[which][v] += more[which];
          else
            store(sums[which] + at, load(sums[which] + at) + more[which]);
        }
        if (drops_pairs) store(row + at, after * load(tile.mask + at));
      }
    }
  }
  GRIT_UNROLL
  for (int which = 0; which < 4; ++which) {
    GRIT_UNROLL
    for (long v = 0; v < Vectors; ++v) store(sums[which] + v * kLanes<T>, kept_sums[which][v]);
  }
}

// ∂pair = scale ∂e, ∂scale = Σ ∂e pair, ∂shift = Σ ∂e, with ∂e = ∂pair' + what the projection sends back.
template <class T>
inline void write_grad_pairs(const Layer<T>& layer, const PairWeights<T>& w, const PairGradients<T>& given, long first,
                             long rows, const BackwardTile<T>& tile, const ChunkSums<T>& grads) {
  const long d = w.s.width, n = w.s.caller_width;
  for (long r = 0; r < rows; ++r) {
    T *grad = tile.grad_pairs + r * n, *to = given.pair + (first + r) * d;
    const T *residual = tile.grad_out + r * n, *pair = layer.pair + (first + r) * d;
    if (layer.pair_out) {
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) grad[c] += residual[c];
    }
    if (layer.pair_scale) {
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) {
        to[c] = grad[c] * w.scale[c];
        grads.scale[c] += grad[c] * pair[c];
        grads.shift[c] += grad[c];
      }
    } else {
      std::copy(grad, grad + d, to);
    }
  }
}

template <class T>
struct PairBackwardBuffers {
  PairWeights<T> weights;
  T *projection_back, *out_back, *node_back;  // packed transposes: (2 kernel_width, caller_width), (D, kernel_width),
                                              // (3 kernel_width, caller_width)
  T* grad_nodes;                              // (N, 3 kernel_width): of query, key and value
  std::vector<ChunkSums<T>> chunks;
  std::vector<BackwardTile<T>> tiles;
  struct NodeTile {
    T *x, *grad, *grad_x;
    NodeTile(Arena& arena, const Sizes& s)
        : x(arena.take<T>(kTileRows * s.caller_width)),
          grad(arena.take<T>(kTileRows * 3 * s.kernel_width)),
          grad_x(arena.take<T>(kTileRows * s.caller_width)) {}
  };
  std::vector<NodeTile> node_tiles;
  T* node_sums;  // (node chunks, caller_width + 1, 3 kernel_width): of the three maps, and of W_Q's bias

  PairBackwardBuffers(Arena& arena, const Layer<T>& layer, const std::vector<Chunk>& cuts) : weights(arena, layer) {
    const Sizes& s = layer.sizes;
    const long n = s.caller_width, m = s.kernel_width;
    projection_back = arena.take<T>(2 * m * n), out_back = arena.take<T>(s.width * m);
    node_back = arena.take<T>(3 * m * n), grad_nodes = arena.take<T>(layer.nodes * 3 * m);
    for (const Chunk& chunk : cuts) chunks.emplace_back(arena, s, chunk);
    tiles = for_threads<BackwardTile<T>>(arena, layer.threads, s);
    node_tiles = for_threads<NodeTile>(arena, layer.threads, s);
    node_sums = arena.take<T>(node_chunks(layer.nodes) * (n + 1) * 3 * m);
  }
};

template <class T, int Vectors>
void backward_chunk(const Layer<T>& layer, const PairBackwardBuffers<T>& b, const PairGradients<T>& given, long number,
                    const BackwardTile<T>& tile) {
  const PairWeights<T>& w = b.weights;
  const ChunkSums<T>& grads = b.chunks[number];
  const Chunk& chunk = w.chunks[number];
  const Sizes& s = w.s;
  const int64_t* row_ptr = layer.stack.row_ptr;
  const long n = s.caller_width, m = s.kernel_width;
  grads.clear(s, chunk);
  long query = chunk.first_query;
  for (long first = chunk.first_pair; first < chunk.last_pair; first += kTileRows) {
    const long rows = std::min(kTileRows, chunk.last_pair - first);
    read_pairs(layer, w, first, rows, tile.pairs);
    product(rows, s.width, 2 * m, tile.pairs, n, w.projection, tile.projected, 2 * m, w.bias);
    if (layer.pair_out) {
      given.out.read(first, rows, tile.grad_out, n, grads.out_bias);
      product(rows, s.width, m, tile.grad_out, n, b.out_back, tile.grad_hidden, m, static_cast<const T*>(nullptr));
    } else {
      std::fill(tile.grad_hidden, tile.grad_hidden + rows * m, T(0));
    }
    for (long at = first; at < first + rows;) {
      if (at == row_ptr[query]) tile.query.start(layer, given, s, query);
      const long stop = std::min(first + rows, long(row_ptr[query + 1]));
      backward_segment<T, Vectors>(layer, w, given, query, at, stop - at, at - first, chunk, tile, grads);
      if (stop == row_ptr[query + 1]) {
        std::copy(tile.query.query, tile.query.query + m, b.grad_nodes + query * 3 * m);
        ++query;
      }
      at = stop;
    }
    if (layer.pair_out) add_outer_product(rows, m, n, tile.hidden, m, tile.grad_out, n, grads.out, n);
    add_outer_product(rows, n, 2 * m, tile.pairs, n, tile.projected, 2 * m, grads.projection, 2 * m);
    product(rows, 2 * m, n, tile.projected, 2 * m, b.projection_back, tile.grad_pairs, n, static_cast<const T*>(nullptr));
    write_grad_pairs(layer, w, given, first, rows, tile, grads);
  }
}

template <class T>
using BackwardChunk = void (*)(const Layer<T>&, const PairBackwardBuffers<T>&, const PairGradients<T>&, long,
                               const BackwardTile<T>&);

template <class T>
BackwardChunk<T> backward_chunk_for(const Sizes& s) {
  if (s.head_vectors == 1) switch (s.vectors) {
      case 2: return backward_chunk<T, 2>;
      case 3: return backward_chunk<T, 3>;
      case 4: return backward_chunk<T, 4>;
      case 6: return backward_chunk<T, 6>;
      case 8: return backward_chunk<T, 8>;
    }
  return backward_chunk<T, 0>;
}

// Sum over chunks, in their order, into the caller's tensors.
template <class T>
void add_up(const Layer<T>& layer, const PairBackwardBuffers<T>& b, const PairGradients<T>& given) {
  const PairWeights<T>& w = b.weights;
  const LayerTensors<T>& grad = layer.grads;
  const Sizes& s = w.s;
  const ChunkSums<T>& total = b.chunks[0];
  const long d = s.width, n = s.caller_width, m = s.kernel_width, chunks = long(b.chunks.size()), block = 512;
#pragma omp parallel num_threads(layer.threads)
  {
#pragma omp for schedule(static)
    for (long start = 0; start < total.size; start += block)
      for (long c = 1; c < chunks; ++c) {
        T *to = total.all + start, *from = b.chunks[c].all + start;
        const long size = std::min(block, total.size - start);
        GRIT_INDEPENDENT
        for (long at = 0; at < size; ++at) to[at] += from[at];
      }
#pragma omp for schedule(static)
    for (long j = 0; j < layer.nodes; ++j) {
      T *key = b.grad_nodes + j * 3 * m + m, *value = key + m;
      std::fill(key, key + 2 * m, T(0));
      for (long c = 0; c < chunks; ++c) {
        const Chunk& chunk = w.chunks[c];
        if (j < chunk.first_key || j >= chunk.last_key) continue;
        const T *more_key = b.chunks[c].key + (j - chunk.first_key) * m,
                *more_value = b.chunks[c].value + (j - chunk.first_key) * m;
        GRIT_INDEPENDENT
        for (long x = 0; x < m; ++x) key[x] += more_key[x], value[x] += more_value[x];
      }
    }
#pragma omp for schedule(static)
    for (long from = 0; from < d; ++from) {
      const long to = s.at(from / s.channels, from % s.channels);
      for (long i = 0; i < d; ++i) {
        grad.scale_weight[from * d + i] = total.projection[i * 2 * m + to];
        grad.shift_weight[from * d + i] = total.projection[i * 2 * m + m + to];
        if (layer.pair_out) grad.pair_out_weight[i * d + from] = total.out[to * n + i];
      }
    }
  }
  to_caller_order(s, total.bias, grad.scale_bias);
  to_caller_order(s, total.bias + m, grad.shift_bias);
  to_caller_order(s, total.score, grad.score);
  if (layer.pair_out) std::copy(total.out_bias, total.out_bias + d, grad.pair_out_bias);
  if (layer.pair_scale) {
    std::copy(total.scale, total.scale + d, given.scale);
    std::copy(total.shift, total.shift + d, given.shift);
  }
}

// From the gradients of query, key and value to those of x and the three maps.
template <class T>
void node_gradients(const Layer<T>& layer, const PairBackwardBuffers<T>& b, T* grad_x) {
  const PairWeights<T>& w = b.weights;
  const Sizes& s = w.s;
  const LayerTensors<T>& grad = layer.grads;
  const long d = s.width, n = s.caller_width, m = s.kernel_width, chunks = node_chunks(layer.nodes), size = (n + 1) * 3 * m;
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    const auto& tile = b.node_tiles[omp_get_thread_num()];
    T *weight = b.node_sums + chunk * size, *bias = weight + n * 3 * m;
    std::fill(weight, weight + size, T(0));
    for_tiles(layer.nodes, chunk, chunks, [&](long first, long rows) {
      copy_rows(layer.x + first * d, rows, d, tile.x, n);
      std::copy(b.grad_nodes + first * 3 * m, b.grad_nodes + (first + rows) * 3 * m, tile.grad);
      for (long r = 0; r < rows; ++r) {
        const T* from = tile.grad + r * 3 * m;
        GRIT_INDEPENDENT
        for (long c = 0; c < m; ++c) bias[c] += from[c];
      }
      add_outer_product(rows, n, 3 * m, tile.x, n, tile.grad, 3 * m, weight, 3 * m);
      product(rows, 3 * m, n, tile.grad, 3 * m, b.node_back, tile.grad_x, n, static_cast<const T*>(nullptr));
      for (long r = 0; r < rows; ++r) std::copy(tile.grad_x + r * n, tile.grad_x + r * n + d, grad_x + (first + r) * d);
    });
  }
  add_chunks(b.node_sums, chunks, size);
  T* const wanted[] = {grad.query_weight, grad.key_weight, grad.value_weight};
  for (long which = 0; which < 3; ++which)
    for (long to = 0; to < m; ++to)
      for (long i = 0; w.column[to] >= 0 && i < d; ++i)
        wanted[which][w.column[to] * d + i] = b.node_sums[i * 3 * m + which * m + to];
  to_caller_order(s, b.node_sums + n * 3 * m, grad.query_bias);
}

template <class T>
void pair_backward(const Layer<T>& layer, const PairGradients<T>& given) {
  const std::vector<Chunk> cuts = cut(layer.stack.row_ptr, layer.stack.key, layer.nodes);
  auto b = allocate<PairBackwardBuffers<T>>(layer, cuts);
  PairWeights<T>& w = b.weights;
  const long n = w.s.caller_width, m = w.s.kernel_width, d = w.s.width;
  w.fill(layer);
  pack_rows(2 * m, n, b.projection_back, [&](long to) { return w.projection_row(layer, to); }, d);
  pack_rows(3 * m, n, b.node_back, [&](long to) { return w.node_row(layer, to); }, d);
  if (layer.pair_out)  // by rows of W_Eo, whose columns go into the kernels' order
    for (long i = 0, wide = kPanel * kLanes<T>; i < d; ++i)
      for (long to = 0; to < m; ++to) {
        const long first = to / wide * wide, width = std::min(wide, m - first);
        b.out_back[first * d + i * width + to - first] =
            w.column[to] < 0 ? T(0) : layer.w.pair_out_weight[i * d + w.column[to]];
      }
  const auto run = backward_chunk_for<T>(w.s);
  const long count = long(cuts.size());
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long c = 0; c < count; ++c) run(layer, b, given, c, b.tiles[omp_get_thread_num()]);
  add_up(layer, b, given);
  node_gradients(layer, b, given.x);
}

}  // namespace grit
