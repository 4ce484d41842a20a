// The pair half of a layer, forward: see `layer_forward.h` for the equations.
//
// A tile of pairs at a time, everything in cache; the batch is cut into chunks that threads take one by one. What is summed
// over pairs is summed per chunk and added up in the order of the chunks, so that results do not depend on the number of
// threads. Every pair row is read before it is written, so that a layer may write over the pairs that it reads.
#pragma once

#include "rows.h"

namespace grit {

// Node rows projected, and weights in the kernels' order and packing.
template <class T>
struct PairWeights {
  Sizes s;
  std::vector<Chunk> chunks;
  std::vector<long> column;      // (kernel_width): the caller's column of each, -1 in the padding
  std::vector<uint32_t> number;  // the same with 0 for padding, for numbering elements
  T* nodes;                      // (N, 3 kernel_width): query, key and value of each node
  T *node_weight, *node_bias;    // packed (D, 3 kernel_width), (3 kernel_width)
  T *projection, *bias;          // packed (D, 2 kernel_width): pair_scale beside pair_shift
  T* score;                      // (kernel_width)
  T *out, *out_bias;             // packed (kernel_width, caller_width)
  T *scale, *shift;              // (caller_width): of the pairs that are read
  std::vector<T*> node_tiles;    // per thread (kTileRows, caller_width)

  PairWeights(Arena& arena, const Layer<T>& layer) : s(layer.sizes) {
    const long n = s.caller_width, m = s.kernel_width, d = s.width;
    nodes = arena.take<T>((layer.nodes + kRowsStep) * 3 * m);
    node_weight = arena.take<T>(d * 3 * m), node_bias = arena.take<T>(3 * m);
    projection = arena.take<T>(d * 2 * m), bias = arena.take<T>(2 * m), score = arena.take<T>(m);
    out = arena.take<T>(m * n), out_bias = arena.take<T>(n);
    scale = arena.take<T>(n), shift = arena.take<T>(n);
    for (long t = 0; t < layer.threads; ++t) node_tiles.push_back(arena.take<T>(kTileRows * n));
  }

  const T* query(long i) const { return nodes + i * 3 * s.kernel_width; }
  const T* key(long j) const { return query(j) + s.kernel_width; }
  const T* value(long j) const { return key(j) + s.kernel_width; }

  // Rows of the maps of x and of pairs, by their outputs in the kernels' order; null in the padding.
  const T* row_of(const T* weight, long to) const { return column[to] < 0 ? nullptr : weight + column[to] * s.width; }
  const T* projection_row(const Layer<T>& layer, long to) const {
    const long m = s.kernel_width;
    return to < m ? row_of(layer.w.scale_weight, to) : row_of(layer.w.shift_weight, to - m);
  }
  const T* node_row(const Layer<T>& layer, long to) const {
    const long m = s.kernel_width;
    if (to < m) return row_of(layer.w.query_weight, to);
    return to < 2 * m ? row_of(layer.w.key_weight, to - m) : row_of(layer.w.value_weight, to - 2 * m);
  }

  void fill(const Layer<T>& layer) {
    const long n = s.caller_width, m = s.kernel_width, d = s.width;
    chunks = cut(layer.stack.row_ptr, layer.stack.key, layer.nodes);
    column.assign(m, -1);
    for (long h = 0; h < s.heads; ++h)
      for (long c = 0; c < s.channels; ++c) column[s.at(h, c)] = h * s.channels + c;
    for (long from : column) number.push_back(uint32_t(std::max(0L, from)));
    for (long c = 0; c < n; ++c) {
      scale[c] = c < d ? (layer.pair_scale ? layer.pair_scale[c] : T(1)) : T(0);
      shift[c] = c < d && layer.pair_scale ? layer.pair_shift[c] : T(0);
      out_bias[c] = c < d && layer.pair_out ? layer.w.pair_out_bias[c] : T(0);
    }
    to_kernel_order(s, layer.w.scale_bias, bias);
    to_kernel_order(s, layer.w.shift_bias, bias + m);
    to_kernel_order(s, layer.w.score, score);
    to_kernel_order(s, layer.w.query_bias, node_bias);
    std::fill(node_bias + m, node_bias + 3 * m, T(0));
    const auto in_order = [](long p) { return p; };
    pack_columns(d, 2 * m, projection, [&](long to) { return projection_row(layer, to); }, in_order);
    pack_columns(d, 3 * m, node_weight, [&](long to) { return node_row(layer, to); }, in_order);
    if (layer.pair_out)
      pack_columns(
          m, n, out, [&](long i) { return i < d ? layer.w.pair_out_weight + i * d : nullptr; },
          [&](long p) { return column[p]; });
    const long count = (layer.nodes + kTileRows - 1) / kTileRows;
#pragma omp parallel for num_threads(layer.threads) schedule(static)
    for (long t = 0; t < count; ++t) {
      const long first = t * kTileRows, rows = std::min(kTileRows, layer.nodes - first);
      T* tile = node_tiles[omp_get_thread_num()];
      copy_rows(layer.x + first * d, rows, d, tile, n);
      product(rows, d, 3 * m, tile, n, node_weight, nodes + first * 3 * m, 3 * m, node_bias);
    }
  }
};

// e of a tile: pairs with the normalisation of the layer before applied.
template <class T>
inline void read_pairs(const Layer<T>& layer, const PairWeights<T>& w, long first, long rows, T* tile) {
  const long d = w.s.width, n = w.s.caller_width;
  for (long r = 0; r < rows; ++r) {
    const T* from = layer.pair + (first + r) * d;
    T* to = tile + r * n;
    if (layer.pair_scale) {
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) to[c] = w.scale[c] * from[c] + w.shift[c];
    } else {
      std::copy(from, from + d, to);
    }
  }
}

// 0 or 1 / (1 - p) for each head of a pair, in the lanes of that head.
template <class T>
inline Vector<T> kept_heads(const Dropout& dropout, const Sizes& s, long pair, long vector) {
  const int64_t base = pair * s.heads;
  if constexpr (std::is_same_v<T, float>) {
    if (uint32_t(base) <= UINT32_MAX - uint32_t(s.padded_heads)) {  // no carry into the upper word
      Word32Vector index{};
      for (int lane = 0; lane < kLanes<T>; ++lane) index[lane] = uint32_t((vector * kLanes<T> + lane) & (s.padded_heads - 1));
      const Word32Vector word = mixed<Word32Vector>((index + uint32_t(base)) ^ dropout.key(base));
      return word < dropout.threshold ? Vector<T>{} : all<T>(T(dropout.scale));
    }
  }
  Vector<T> kept{};
  for (int lane = 0; lane < kLanes<T>; ++lane)
    kept[lane] = dropout.one<T>(base + ((vector * kLanes<T> + lane) & (s.padded_heads - 1)));
  return kept;
}

// Multiply a row of ê by its dropout mask, numbered pair * D + channel in the caller's order.
template <class T>
inline void drop_channels(const Dropout& dropout, const PairWeights<T>& w, long pair, T* row) {
  const int64_t base = pair * w.s.width;
  if constexpr (std::is_same_v<T, float>) {
    if (uint32_t(base) <= UINT32_MAX - uint32_t(w.s.width)) {  // no carry into the upper word
      const uint32_t key = dropout.key(base), start = uint32_t(base);
      for (long at = 0; at < w.s.kernel_width; at += kLanes<T>) {
        Word32Vector number;
        std::memcpy(&number, w.number.data() + at, sizeof(number));
        const Word32Vector word = mixed<Word32Vector>((number + start) ^ key);
        store(row + at, load(row + at) * (word < dropout.threshold ? Vector<T>{} : all<T>(T(dropout.scale))));
      }
      return;
    }
  }
  for (long at = 0; at < w.s.kernel_width; ++at) row[at] *= dropout.one<T>(base + w.number[at]);
}

template <class T>
inline Vector<T> clamped(Vector<T> x, T bound) {
  x = x < -bound ? all<T>(-bound) : x;
  return x > bound ? all<T>(bound) : x;
}

// ê of one pair, written to `hidden`; its logits before clamping in `logits`, one vector per head vector. `projected` holds
// (u, b). Vectors is the number of vectors in a row where it is known at compile time, else 0; then `inverse`, if it is not
// null, gets 1 / sqrt|z|.
template <class T, int Vectors>
GRIT_INLINE void attend(const Sizes& s, const T* query, const T* key, const T* projected, const T* score, T* hidden,
                        Vector<T>* logits, Vector<T>* inverse) {
  const long vectors = Vectors ? Vectors : s.vectors, m = vectors * kLanes<T>;
  const long head_vectors = Vectors ? 1 : s.head_vectors;
  for (long u = 0; u < head_vectors; ++u) {
    Vector<T> sum{};
    GRIT_UNROLL
    for (long v = u; v < vectors; v += head_vectors) {
      const long at = v * kLanes<T>;
      const Vector<T> z = (load(query + at) + load(key + at)) * load(projected + at);
      const Root<T> root = root_of<T>(absolute<T>(z));
      if (inverse) inverse[v] = root.inverse;
      const Vector<T> before = with_sign<T>(root.root, z) + load(projected + m + at);
      const Vector<T> after = before < T(0) ? Vector<T>{} : before;  // keeps NaN
      store(hidden + at, after);
      sum += after * load(score + at);
    }
    logits[u] = fold<T>(sum, int(s.padded_heads));
  }
}

// What one query adds up from tile to tile.
template <class T>
struct QuerySums {
  T *node, *pair;           // (kernel_width): Σ exp(logit - top) v_j and Σ exp(logit - top) ê_ij
  Vector<T>*top, *weights;  // per head: the largest logit or its bound, Σ exp(logit - top)

  QuerySums(Arena& arena, const Sizes& s) {
    node = arena.take<T>(s.kernel_width), pair = arena.take<T>(s.kernel_width);
    top = arena.take<Vector<T>>(s.head_vectors), weights = arena.take<Vector<T>>(s.head_vectors);
  }

  void start(const Layer<T>& layer, const Sizes& s) const {
    std::fill(node, node + s.kernel_width, T(0));
    std::fill(pair, pair + s.kernel_width, T(0));
    for (long u = 0; u < s.head_vectors; ++u) {
      top[u] = layer.bounded() ? all<T>(layer.clamp()) : all<T>(T(-INFINITY));
      weights[u] = Vector<T>{};
    }
  }

  void finish(const Layer<T>& layer, const Sizes& s, long query) const {
    const long lanes = kLanes<T>;
    T *node_sum = layer.node_sum + query * s.width, *pair_sum = layer.pair_sum + query * s.width;
    for (long h = 0; h < s.heads; ++h) {
      const T total = weights[h / lanes][h % lanes], inverse = T(1) / total;
      layer.logsumexp[query * s.heads + h] = top[h / lanes][h % lanes] + std::log(total);
      for (long c = 0; c < s.channels; ++c) {
        node_sum[h * s.channels + c] = node[s.at(h, c)] * inverse;
        pair_sum[h * s.channels + c] = pair[s.at(h, c)] * inverse;
      }
    }
  }
};

template <class T>
struct ForwardTile {
  T *pairs, *projected, *hidden, *out;
  T* room;  // of `write_rows`
  Vector<T>* logits;
  QuerySums<T> sums;

  ForwardTile(Arena& arena, const Sizes& s)
      : pairs(arena.take<T>(kTileRows * s.caller_width)),
        projected(arena.take<T>(kTileRows * 2 * s.kernel_width)),
        hidden(arena.take<T>(kTileRows * s.kernel_width)),
        out(arena.take<T>(kTileRows * s.caller_width)),
        room(arena.take<T>(2 * s.width)),
        logits(arena.take<Vector<T>>(kTileRows * s.head_vectors)),
        sums(arena, s) {}
};

// The pairs of one query within a tile.
template <class T, int Vectors>
inline void forward_segment(const Layer<T>& layer, const PairWeights<T>& w, long query, long first, long rows,
                            const T* projected, T* hidden, Vector<T>* logits, const QuerySums<T>& sums) {
  const Sizes& s = w.s;
  const long vectors = Vectors ? Vectors : s.vectors, m = vectors * kLanes<T>;
  const long head_vectors = Vectors ? 1 : s.head_vectors;
  const int64_t* key = layer.stack.key + first;
  const T bound = layer.clamp();
  for (long r = 0; r < rows; ++r) {
    fetch_ahead(layer.pair, first + r + kTileRows, s.width);
    attend<T, Vectors>(s, w.query(query), w.key(key[r]), projected + r * 2 * m, w.score, hidden + r * m,
                       logits + r * head_vectors, nullptr);
    for (long u = 0; u < head_vectors; ++u) logits[r * head_vectors + u] = clamped<T>(logits[r * head_vectors + u], bound);
  }
  if (!layer.bounded())  // an online softmax: what is summed so far shrinks when a larger logit comes
    for (long u = 0; u < head_vectors; ++u) {
      Vector<T> top = sums.top[u];
      for (long r = 0; r < rows; ++r) {
        const Vector<T> logit = logits[r * head_vectors + u];
        top = logit > top || logit != logit ? logit : top;
      }
      const Vector<T> shrink = exponential<T>(sums.top[u] - top);  // the first time e^-inf, of sums that are 0
      sums.weights[u] *= shrink;
      for (long v = u; v < vectors; v += head_vectors) {
        store(sums.node + v * kLanes<T>, load(sums.node + v * kLanes<T>) * shrink);
        store(sums.pair + v * kLanes<T>, load(sums.pair + v * kLanes<T>) * shrink);
      }
      sums.top[u] = top;
    }
  Vector<T> node[Vectors ? Vectors : 1], pair[Vectors ? Vectors : 1];  // in registers, where their number is known
  GRIT_UNROLL
  for (long v = 0; v < Vectors; ++v) node[v] = load(sums.node + v * kLanes<T>), pair[v] = load(sums.pair + v * kLanes<T>);
  for (long u = 0; u < head_vectors; ++u) {
    Vector<T> total = sums.weights[u];
    for (long r = 0; r < rows; ++r) {
      Vector<T> weight = exponential<T>(logits[r * head_vectors + u] - sums.top[u]);
      total += weight;
      if (layer.attention_dropout.on()) weight *= kept_heads<T>(layer.attention_dropout, s, first + r, u);
      const T *value = w.value(key[r]), *row = hidden + r * m;
      GRIT_UNROLL
      for (long v = u; v < vectors; v += head_vectors) {
        const long at = v * kLanes<T>;
        if constexpr (Vectors) {
          node[v] += weight * load(value + at);
          pair[v] += weight * load(row + at);
        } else {
          store(sums.node + at, load(sums.node + at) + weight * load(value + at));
          store(sums.pair + at, load(sums.pair + at) + weight * load(row + at));
        }
      }
    }
    sums.weights[u] = total;
  }
  GRIT_UNROLL
  for (long v = 0; v < Vectors; ++v) store(sums.node + v * kLanes<T>, node[v]), store(sums.pair + v * kLanes<T>, pair[v]);
}

// Pairs before their normalisation, e + W_Eo ê + bias, and their moments.
template <class T>
inline void write_pairs(const Layer<T>& layer, const PairWeights<T>& w, long first, long rows, const ForwardTile<T>& tile,
                        double* moments) {
  const Sizes& s = w.s;
  const long d = s.width, n = s.caller_width, m = s.kernel_width;
  if (layer.pair_dropout.on())
    for (long r = 0; r < rows; ++r) drop_channels(layer.pair_dropout, w, first + r, tile.hidden + r * m);
  product(rows, m, n, tile.hidden, m, w.out, tile.out, n, w.out_bias);
  write_rows(tile.pairs, tile.out, n, rows, d, layer.pair_out + first * d, layer.stack.batch_statistics ? moments : nullptr,
             tile.room);
}

template <class T, int Vectors>
void forward_chunk(const Layer<T>& layer, const PairWeights<T>& w, const Chunk& chunk, const ForwardTile<T>& tile,
                   double* moments) {
  const Sizes& s = w.s;
  const int64_t* row_ptr = layer.stack.row_ptr;
  long query = chunk.first_query;
  for (long first = chunk.first_pair; first < chunk.last_pair; first += kTileRows) {
    const long rows = std::min(kTileRows, chunk.last_pair - first);
    read_pairs(layer, w, first, rows, tile.pairs);
    product(rows, s.width, 2 * s.kernel_width, tile.pairs, s.caller_width, w.projection, tile.projected, 2 * s.kernel_width,
            w.bias);
    for (long at = first; at < first + rows;) {
      if (at == row_ptr[query]) tile.sums.start(layer, s);
      const long stop = std::min(first + rows, long(row_ptr[query + 1])), r = at - first;
      forward_segment<T, Vectors>(layer, w, query, at, stop - at, tile.projected + r * 2 * s.kernel_width,
                                  tile.hidden + r * s.kernel_width, tile.logits + r * s.head_vectors, tile.sums);
      if (stop == row_ptr[query + 1]) tile.sums.finish(layer, s, query++);
      at = stop;
    }
    if (layer.pair_out) write_pairs(layer, w, first, rows, tile, moments);
  }
}

template <class T>
using ForwardChunk = void (*)(const Layer<T>&, const PairWeights<T>&, const Chunk&, const ForwardTile<T>&, double*);

// The inner loops with the number of vectors known, for the usual widths.
template <class T>
ForwardChunk<T> forward_chunk_for(const Sizes& s) {
  if (s.head_vectors == 1) switch (s.vectors) {
      case 2: return forward_chunk<T, 2>;
      case 3: return forward_chunk<T, 3>;
      case 4: return forward_chunk<T, 4>;
      case 6: return forward_chunk<T, 6>;
      case 8: return forward_chunk<T, 8>;
    }
  return forward_chunk<T, 0>;
}

template <class T>
struct PairForwardBuffers {
  PairWeights<T> weights;
  std::vector<ForwardTile<T>> tiles;
  double* moments;  // (kLargestChunks, 2, D)

  PairForwardBuffers(Arena& arena, const Layer<T>& layer)
      : weights(arena, layer),
        tiles(for_threads<ForwardTile<T>>(arena, layer.threads, layer.sizes)),
        moments(arena.take<double>(kLargestChunks * 2 * layer.sizes.width)) {}
};

template <class T>
void pair_forward(const Layer<T>& layer) {
  auto buffers = allocate<PairForwardBuffers<T>>(layer);
  PairWeights<T>& w = buffers.weights;
  const long d = w.s.width;
  w.fill(layer);
  const long count = long(w.chunks.size());
  std::fill(buffers.moments, buffers.moments + count * 2 * d, 0.0);
  const auto run = forward_chunk_for<T>(w.s);
#pragma omp parallel for num_threads(layer.threads) schedule(dynamic)
  for (long c = 0; c < count; ++c) run(layer, w, w.chunks[c], buffers.tiles[omp_get_thread_num()], buffers.moments + c * 2 * d);
  if (layer.pair_out) normalise(layer, kPairNorm, layer.pairs, buffers.moments, count);
}

}  // namespace grit
