// GRIT's attention over packed pairs, with everything between the pair tensor of one layer and that of the next.
//
//   q, k, v = W_Q x + bias, W_K x, W_V x
//   e    = scale * pair + shift                                (the normalisation of the layer before, applied on reading)
//   u, b = W e + bias                                          (pair_scale, pair_shift)
//   ê    = relu(signed_sqrt((q_i + k_j) * u) + b)
//   α    = softmax over the keys of clamp(<ê, score>)          (dropout on α)
//   node_i = Σ_j α v_j,  pair_i = Σ_j α ê                      (both (N, D); the caller applies W_Ev to the second)
//   out  = e + W_out ê + bias_out                              (dropout on ê), with its mean and sum of squared deviations
//
// A tile of pairs at a time, everything in cache; the batch is cut into chunks that threads take one by one. What is
// written per chunk is added up in the order of the chunks, so that results do not depend on the number of threads.
#pragma once

#include <utility>

#include "rows.h"

namespace grit {

template <class T>
struct PairProblem {
  int64_t nodes, heads, channels, threads;
  const int64_t *row_ptr, *key;
  const T *x, *weight_query, *bias_query, *weight_key, *weight_value;  // (N, D), (D, D), (D), (D, D), (D, D)
  const T *pair, *scale, *shift;                          // (P, D), (D), (D); scale null: pair as it is
  const T *weight_scale, *bias_scale, *weight_shift, *bias_shift;  // (D, D), (D), (D, D), (D)
  const T* score;                                         // (H, C)
  const T *weight_out, *bias_out;                         // (D, D), (D); null: pairs are not rewritten
  double clamp;                                           // infinite: none
  Dropout attention_dropout, pair_dropout;
  int64_t want_moments;

  // Whether the bound on the logits is so low that it can stand for the largest one: then rows need no pass to find that.
  bool bounded() const { return clamp <= 20; }

  // Written by the forward pass, read by the backward pass.
  T *node_sum, *pair_sum;      // (N, D)
  T *top, *inverse;            // (N, H): the largest logit (or its bound), and 1 / Σ exp(logit - top)
  T *out, *mean, *deviations;  // (P, D), (D), (D)
  T* projected;                // (P, 2 padded_width): (u, b) kept for the backward pass; null: computed again there

  // The backward pass: given ...
  const T *grad_node_sum, *grad_pair_sum, *grad_out, *grad_mean, *grad_deviations;  // null where nobody asks
  // ... and wanted.
  T *grad_x, *grad_weight_query, *grad_bias_query, *grad_weight_key, *grad_weight_value;
  T *grad_pair, *grad_scale, *grad_shift;
  T *grad_weight_scale, *grad_bias_scale, *grad_weight_shift, *grad_bias_shift, *grad_score, *grad_weight_out, *grad_bias_out;
};

// Weights and node rows in the kernels' order and packing.
template <class T>
struct Prepared {
  Sizes s;
  std::vector<Chunk> chunks;
  std::vector<long> column;       // (padded_width): the caller's column of each, -1 where padding is nobody's
  std::vector<uint32_t> number;   // the same with 0 for padding, for numbering elements
  T* nodes;                       // (N, 3 padded_width): query, key and value of each node
  T *scale, *shift;               // (natural_width)
  T *projection, *bias;           // packed (D, 2 padded_width), (2 padded_width)
  T* score;                       // (padded_width)
  T *out, *bias_out;              // packed (padded_width, natural_width), (natural_width)
  T *projection_back, *out_back;  // packed transposes: (2 padded_width, natural_width), (D, padded_width)

  static size_t size(const PairProblem<T>& p, const Sizes& s) {
    const size_t n = s.natural_width, m = s.padded_width, d = s.width;
    return (p.nodes + kTileRows) * 3 * m + 3 * d * m + 3 * m + p.threads * kTileRows * n  // nodes
           + 4 * n + 3 * m + d * 2 * m + 2 * m * n + m * n + d * m;
  }

  const T* query(long i) const { return nodes + i * 3 * s.padded_width; }
  const T* key(long j) const { return query(j) + s.padded_width; }
  const T* value(long j) const { return key(j) + s.padded_width; }

  Prepared(const PairProblem<T>& p, const Sizes& sizes, Arena<T>& arena, bool backward) : s(sizes) {
    chunks = cut(p.row_ptr, p.key, p.nodes);
    const long n = s.natural_width, m = s.padded_width, d = s.width;
    column.assign(m, -1);
    for (long h = 0; h < s.heads; ++h)
      for (long c = 0; c < s.channels; ++c) column[s.at(h, c)] = h * s.channels + c;
    for (long from : column) number.push_back(uint32_t(std::max(0L, from)));
    project_nodes(p, arena);
    scale = arena.take(n), shift = arena.take(n);
    projection = arena.take(d * 2 * m), bias = arena.take(2 * m), score = arena.take(m);
    out = arena.take(m * n), bias_out = arena.take(n);
    projection_back = arena.take(2 * m * n), out_back = arena.take(d * m);
    for (long c = 0; c < n; ++c) {
      scale[c] = c < d ? (p.scale ? p.scale[c] : T(1)) : T(0);
      shift[c] = c < d && p.scale ? p.shift[c] : T(0);
      bias_out[c] = c < d && p.weight_out ? p.bias_out[c] : T(0);
    }
    to_kernel_order(s, p.bias_scale, bias);
    to_kernel_order(s, p.bias_shift, bias + m);
    to_kernel_order(s, p.score, score);
    const auto of_projection = [&](long to, long i) {  // both maps, one beside the other
      const long from = column[to < m ? to : to - m];
      return from < 0 ? T(0) : (to < m ? p.weight_scale : p.weight_shift)[from * d + i];
    };
    const auto of_out = [&](long to, long i) { return column[to] < 0 || i >= d ? T(0) : p.weight_out[i * d + column[to]]; };
    pack(d, 2 * m, projection, [&](long i, long to) { return of_projection(to, i); });
    if (p.weight_out) pack(m, n, out, of_out);
    if (!backward) return;
    pack(2 * m, n, projection_back, [&](long to, long i) { return i < d ? of_projection(to, i) : T(0); });
    if (p.weight_out) pack(d, m, out_back, [&](long i, long to) { return of_out(to, i); });
  }

 private:
  void project_nodes(const PairProblem<T>& p, Arena<T>& arena) {
    const long n = s.natural_width, m = s.padded_width, d = s.width;
    nodes = arena.take((p.nodes + kTileRows) * 3 * m);
    T *packed = arena.take(3 * d * m), *node_bias = arena.take(3 * m), *tiles = arena.take(p.threads * kTileRows * n);
    const T* weights[] = {p.weight_query, p.weight_key, p.weight_value};
    pack(d, 3 * m, packed, [&](long i, long to) { return column[to % m] < 0 ? T(0) : weights[to / m][column[to % m] * d + i]; });
    to_kernel_order(s, p.bias_query, node_bias);
    std::fill(node_bias + m, node_bias + 3 * m, T(0));
    const long count = (p.nodes + kTileRows - 1) / kTileRows;
#pragma omp parallel for num_threads(p.threads) schedule(static)
    for (long t = 0; t < count; ++t) {
      const long first = t * kTileRows, rows = std::min(kTileRows, p.nodes - first);
      T* tile = tiles + omp_get_thread_num() * kTileRows * n;
      for (long r = 0; r < rows; ++r) std::copy(p.x + (first + r) * d, p.x + (first + r + 1) * d, tile + r * n);
      product(rows, d, 3 * m, tile, n, packed, nodes + first * 3 * m, 3 * m, node_bias);
    }
  }
};

template <class T>
inline void read_pairs(const PairProblem<T>& p, const Prepared<T>& w, long first, long rows, T* tile) {
  const long d = w.s.width, n = w.s.natural_width;
  for (long r = 0; r < rows; ++r) {
    const T* from = p.pair + (first + r) * d;
    T* to = tile + r * n;
    if (p.scale) {
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
      Word32Vector index;
      for (int lane = 0; lane < kLanes<T>; ++lane) index[lane] = (vector * kLanes<T> + lane) & (s.padded_heads - 1);
      const Word32Vector word = mixed<Word32Vector>((index + uint32_t(base)) ^ dropout.key(base));
      return word < dropout.threshold ? Vector<T>{} : all<T>(T(dropout.scale));
    }
  }
  Vector<T> kept;
  for (int lane = 0; lane < kLanes<T>; ++lane)
    kept[lane] = dropout.one<T>(base + ((vector * kLanes<T> + lane) & (s.padded_heads - 1)));
  return kept;
}

// Multiply a row of ê by its dropout mask, numbered pair * D + channel in the caller's order.
template <class T>
inline void drop_channels(const Dropout& dropout, const Prepared<T>& w, long pair, T* row) {
  const int64_t base = pair * w.s.width;
  if constexpr (std::is_same_v<T, float>) {
    if (uint32_t(base) <= UINT32_MAX - uint32_t(w.s.width)) {  // no carry into the upper word
      const uint32_t key = dropout.key(base), start = uint32_t(base);
      for (long at = 0; at < w.s.padded_width; at += kLanes<T>) {
        Word32Vector number;
        std::memcpy(&number, w.number.data() + at, sizeof(number));
        const Word32Vector word = mixed<Word32Vector>((number + start) ^ key);
        store(row + at, load(row + at) * (word < dropout.threshold ? Vector<T>{} : all<T>(T(dropout.scale))));
      }
      return;
    }
  }
  for (long at = 0; at < w.s.padded_width; ++at) row[at] *= dropout.one<T>(base + w.number[at]);
}

// ê of one pair, written to `hidden`; the logits before clamping in `logits`, one vector per head vector.
template <class T, int Vectors>
inline __attribute__((always_inline)) void attend(const Sizes& s, const T* query, const T* key, const T* projected,
                                                  const T* score, T* hidden, Vector<T>* logits) {
  const long vectors = Vectors ? Vectors : s.vectors, m = vectors * kLanes<T>;
  const long head_vectors = Vectors ? 1 : s.head_vectors;
  for (long u = 0; u < head_vectors; ++u) {
    Vector<T> sum{};
    GRIT_UNROLL
    for (long v = u; v < vectors; v += head_vectors) {
      const long at = v * kLanes<T>;
      const Vector<T> product = (load(query + at) + load(key + at)) * load(projected + at);
      const Vector<T> before = signed_sqrt<T>(product) + load(projected + m + at);
      const Vector<T> after = before < T(0) ? Vector<T>{} : before;  // keeps NaN
      store(hidden + at, after);
      sum += after * load(score + at);
    }
    logits[u] = fold<T>(sum, int(s.padded_heads));
  }
}

template <class T>
inline Vector<T> clamped(Vector<T> x, T bound) {
  x = x < -bound ? all<T>(-bound) : x;
  return x > bound ? all<T>(bound) : x;
}

// The sums of one query, added to from tile to tile.
template <class T>
struct QuerySums {
  T *node, *pair;           // (padded_width)
  Vector<T>*top, *weights;  // per head

  void start(const PairProblem<T>& p, const Sizes& s) const {
    std::fill(node, node + s.padded_width, T(0));
    std::fill(pair, pair + s.padded_width, T(0));
    for (long u = 0; u < s.head_vectors; ++u) {
      top[u] = p.bounded() ? all<T>(T(p.clamp)) : all<T>(T(-INFINITY));
      weights[u] = Vector<T>{};
    }
  }
};

// The pairs of one query within a tile.
template <class T, int Vectors>
inline void forward_segment(const PairProblem<T>& p, const Prepared<T>& w, long query, long first, long rows,
                            const T* projected, T* hidden, Vector<T>* logits, const QuerySums<T>& sums) {
  const Sizes& s = w.s;
  const long vectors = Vectors ? Vectors : s.vectors, m = vectors * kLanes<T>;
  const long head_vectors = Vectors ? 1 : s.head_vectors;
  const int64_t* key = p.key + first;
  for (long r = 0; r < rows; ++r) {
    fetch_ahead(p.pair, first + r + kTileRows, s.width);
    attend<T, Vectors>(s, w.query(query), w.key(key[r]), projected + r * 2 * m, w.score, hidden + r * m,
                       logits + r * head_vectors);
    for (long u = 0; u < head_vectors; ++u)
      logits[r * head_vectors + u] = clamped<T>(logits[r * head_vectors + u], T(p.clamp));
  }
  if (!p.bounded())
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
      if (p.attention_dropout.on()) weight *= kept_heads<T>(p.attention_dropout, s, first + r, u);
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

template <class T>
inline void finish_query(const PairProblem<T>& p, const Sizes& s, long query, const QuerySums<T>& sums) {
  const long lanes = kLanes<T>;
  for (long h = 0; h < s.heads; ++h) {
    const T inverse = T(1) / sums.weights[h / lanes][h % lanes];
    p.top[query * s.heads + h] = sums.top[h / lanes][h % lanes];
    p.inverse[query * s.heads + h] = inverse;
    for (long c = 0; c < s.channels; ++c) {
      p.node_sum[query * s.width + h * s.channels + c] = sums.node[s.at(h, c)] * inverse;
      p.pair_sum[query * s.width + h * s.channels + c] = sums.pair[s.at(h, c)] * inverse;
    }
  }
}

template <class T>
struct ForwardTile {
  T *pairs, *projected, *hidden, *out;
  Vector<T>* logits;
  QuerySums<T> sums;

  static size_t size(const Sizes& s) {
    return kTileRows * (2 * s.natural_width + 3 * s.padded_width + s.head_vectors * kLanes<T>) + 2 * s.padded_width +
           2 * s.head_vectors * kLanes<T>;
  }
  ForwardTile(const Sizes& s, T* memory) {
    auto take = [&](size_t count) { return std::exchange(memory, memory + count); };
    pairs = take(kTileRows * s.natural_width), projected = take(kTileRows * 2 * s.padded_width);
    hidden = take(kTileRows * s.padded_width), out = take(kTileRows * s.natural_width);
    logits = reinterpret_cast<Vector<T>*>(take(kTileRows * s.head_vectors * kLanes<T>));
    sums.node = take(s.padded_width), sums.pair = take(s.padded_width);
    sums.top = reinterpret_cast<Vector<T>*>(take(s.head_vectors * kLanes<T>));
    sums.weights = reinterpret_cast<Vector<T>*>(take(s.head_vectors * kLanes<T>));
  }
};

// out = e + W_out ê + bias, and its sums over the tile's rows, in double.
template <class T>
inline void write_pairs(const PairProblem<T>& p, const Prepared<T>& w, long first, long rows, const ForwardTile<T>& tile,
                        double* moments) {
  const Sizes& s = w.s;
  const long d = s.width, n = s.natural_width, m = s.padded_width;
  if (p.pair_dropout.on())
    for (long r = 0; r < rows; ++r) drop_channels(p.pair_dropout, w, first + r, tile.hidden + r * m);
  product(rows, m, n, tile.hidden, m, w.out, tile.out, n, w.bias_out);
  for (long r = 0; r < rows; ++r) {
    T* to = p.out + (first + r) * d;
    const T *residual = tile.pairs + r * n, *update = tile.out + r * n;
    GRIT_INDEPENDENT
    for (long c = 0; c < d; ++c) to[c] = residual[c] + update[c];
  }
  if (p.want_moments) add_moments(p.out + first * d, rows, d, moments, tile.out);
}

template <class T, int Vectors>
void forward_chunk(const PairProblem<T>& p, const Prepared<T>& w, const Chunk& chunk, const ForwardTile<T>& tile,
                   double* moments) {
  const Sizes& s = w.s;
  long query = chunk.first_query;
  for (long first = chunk.first_pair; first < chunk.last_pair; first += kTileRows) {
    const long rows = std::min(kTileRows, chunk.last_pair - first);
    read_pairs(p, w, first, rows, tile.pairs);
    product(rows, s.width, 2 * s.padded_width, tile.pairs, s.natural_width, w.projection, tile.projected,
            2 * s.padded_width, w.bias);
    if (p.projected) std::copy(tile.projected, tile.projected + rows * 2 * s.padded_width, p.projected + first * 2 * s.padded_width);
    for (long at = first; at < first + rows;) {
      if (at == p.row_ptr[query]) tile.sums.start(p, s);
      const long stop = std::min(first + rows, long(p.row_ptr[query + 1])), r = at - first;
      forward_segment<T, Vectors>(p, w, query, at, stop - at, tile.projected + r * 2 * s.padded_width,
                                  tile.hidden + r * s.padded_width, tile.logits + r * s.head_vectors, tile.sums);
      if (stop == p.row_ptr[query + 1]) finish_query(p, s, query++, tile.sums);
      at = stop;
    }
    if (p.weight_out) write_pairs(p, w, first, rows, tile, moments);
  }
}

template <class T>
using ForwardChunk = void (*)(const PairProblem<T>&, const Prepared<T>&, const Chunk&, const ForwardTile<T>&, double*);

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
void forward(const PairProblem<T>& p) {
  const Sizes s = Sizes::of<T>(p.heads, p.channels);
  const size_t doubles = kLargestChunks * 2 * s.width * sizeof(double) / sizeof(T);
  Arena<T> arena(Prepared<T>::size(p, s) + doubles + p.threads * (ForwardTile<T>::size(s) + 16) + 64);
  double* moments = reinterpret_cast<double*>(arena.take(padded(doubles, 64)));
  T* tiles = arena.take(p.threads * ForwardTile<T>::size(s));
  const Prepared<T> w(p, s, arena, false);
  std::fill(moments, moments + w.chunks.size() * 2 * s.width, 0.0);
  const auto run = forward_chunk_for<T>(s);
  const long count = long(w.chunks.size());
#pragma omp parallel num_threads(p.threads)
  {
    const ForwardTile<T> tile(s, tiles + omp_get_thread_num() * ForwardTile<T>::size(s));
#pragma omp for schedule(dynamic)
    for (long c = 0; c < count; ++c) run(p, w, w.chunks[c], tile, moments + c * 2 * s.width);
  }
  if (!p.weight_out || !p.want_moments) return;
  finish_moments(moments, count, s.width, p.row_ptr[p.nodes], p.mean, p.deviations);
}

}  // namespace grit
