// The backward pass of `pair_attention.h`. Of the forward pass it has the pair tensors and, per query, the two sums and the
// softmax's normalisation; everything else of a tile is computed again.
//
// With g_j = <∂node_i, v_j> + <∂pair_i, ê_ij> per head (times the dropout mask), the softmax gives
// ∂logit_ij = α_ij (g_j - Σ_k α_ik g_k), and the sum is <∂node_i, node_i> + <∂pair_i, pair_i>: one pass is enough.
#pragma once

#include "pair_attention.h"

namespace grit {

// What one chunk adds up; chunks are added to one another in order.
template <class T>
struct ChunkGradients {
  T *projection, *bias;        // (natural_width, 2 padded_width), (2 padded_width)
  T *out, *bias_out;           // (padded_width, natural_width), (natural_width)
  T* score;                    // (padded_width)
  T *scale, *shift;            // (natural_width)
  T *key, *value;              // (keys of the chunk, padded_width)

  static size_t fixed_size(const Sizes& s) {
    const size_t n = s.natural_width, m = s.padded_width;
    return n * 2 * m + 2 * m + m * n + n + m + 2 * n;
  }
  static size_t size(const Sizes& s, const Chunk& chunk) {
    return fixed_size(s) + 2 * (chunk.last_key - chunk.first_key) * s.padded_width;
  }
  ChunkGradients(const Sizes& s, const Chunk& chunk, T* memory) {
    auto take = [&](size_t count) { return std::exchange(memory, memory + count); };
    const long n = s.natural_width, m = s.padded_width, keys = chunk.last_key - chunk.first_key;
    projection = take(n * 2 * m), bias = take(2 * m), out = take(m * n), bias_out = take(n), score = take(m);
    scale = take(n), shift = take(n), key = take(keys * m), value = take(keys * m);
  }
};

// One query's rows in the kernels' order.
template <class T>
struct QueryGradients {
  T *node, *pair, *query;         // ∂node_i, ∂pair_i, and ∂query_i as it is added up: (padded_width)
  Vector<T>*top, *inverse, *sum;  // per head; the sum is Σ_k α_ik g_k

  void start(const PairProblem<T>& p, const Sizes& s, long i) const {
    const long d = s.width, lanes = kLanes<T>;
    if (p.grad_node_sum) to_kernel_order(s, p.grad_node_sum + i * d, node);
    else std::fill(node, node + s.padded_width, T(0));
    if (p.grad_pair_sum) to_kernel_order(s, p.grad_pair_sum + i * d, pair);
    else std::fill(pair, pair + s.padded_width, T(0));
    std::fill(query, query + s.padded_width, T(0));
    for (long u = 0; u < s.head_vectors; ++u)
      for (long lane = 0; lane < lanes; ++lane) {
        const long h = (u * lanes + lane) & (s.padded_heads - 1);
        const bool real = h < s.heads;
        T dot = 0;
        for (long c = 0; real && c < s.channels; ++c) {
          const long at = i * d + h * s.channels + c;
          if (p.grad_node_sum) dot += p.grad_node_sum[at] * p.node_sum[at];
          if (p.grad_pair_sum) dot += p.grad_pair_sum[at] * p.pair_sum[at];
        }
        top[u][lane] = real ? p.top[i * s.heads + h] : T(0);
        inverse[u][lane] = real ? p.inverse[i * s.heads + h] : T(0);
        sum[u][lane] = dot;
      }
  }
};

template <class T>
struct BackwardTile {
  T *pairs, *projected, *hidden, *grad_out, *grad_hidden, *grad_pairs;
  QueryGradients<T> query;

  static size_t size(const Sizes& s) {
    return kTileRows * (3 * s.natural_width + 4 * s.padded_width) + 3 * s.padded_width +
           3 * s.head_vectors * kLanes<T>;
  }
  BackwardTile(const Sizes& s, T* memory) {
    auto take = [&](size_t count) { return std::exchange(memory, memory + count); };
    const long n = s.natural_width, m = s.padded_width, heads = s.head_vectors * kLanes<T>;
    pairs = take(kTileRows * n), projected = take(kTileRows * 2 * m), hidden = take(kTileRows * m);
    grad_out = take(kTileRows * n), grad_hidden = take(kTileRows * m), grad_pairs = take(kTileRows * n);
    query.node = take(m), query.pair = take(m), query.query = take(m);
    query.top = reinterpret_cast<Vector<T>*>(take(heads));
    query.inverse = reinterpret_cast<Vector<T>*>(take(heads));
    query.sum = reinterpret_cast<Vector<T>*>(take(heads));
  }
};

// The pairs of one query within a tile. On entry `projected` holds (u, b) and `grad_hidden` what W_out sends back;
// on return `projected` holds (∂u, ∂b) and `hidden` what W_out was given.
template <class T, int Vectors>
inline void backward_segment(const PairProblem<T>& p, const Prepared<T>& w, long i, long first, long rows, long first_key,
                             T* projected, T* hidden, const T* grad_hidden, const QueryGradients<T>& query,
                             const ChunkGradients<T>& grads) {
  const Sizes& s = w.s;
  const long vectors = Vectors ? Vectors : s.vectors, m = vectors * kLanes<T>;
  const long head_vectors = Vectors ? 1 : s.head_vectors;
  const T bound = T(p.clamp);
  Vector<T> logit_of[Vectors ? 1 : 16], weight_of[Vectors ? 1 : 16], grad_of[Vectors ? 1 : 16];
  T mask[Vectors ? Vectors * kLanes<T> : 1024];
  const T* q = w.query(i);
  // What every row adds to, in registers where their number is known: ∂query, ∂score, ∂bias of scale and shift.
  T* const sums[] = {query.query, grads.score, grads.bias, grads.bias + m};
  Vector<T> kept_sums[4][Vectors ? Vectors : 1];
  GRIT_UNROLL
  for (int which = 0; which < 4; ++which) {
    GRIT_UNROLL
    for (long v = 0; v < Vectors; ++v) kept_sums[which][v] = load(sums[which] + v * kLanes<T>);
  }
  for (long r = 0; r < rows; ++r) {
    const long j = p.key[first + r];
    fetch_ahead(p.pair, first + r + kTileRows, s.width);
    fetch_ahead(p.grad_out, first + r + kTileRows, s.width);
    if (p.weight_out) fetch_ahead(static_cast<const T*>(p.out), first + r + kTileRows, s.width);
    const T *k = w.key(j), *value = w.value(j), *from_out = grad_hidden + r * m;
    T *row = hidden + r * m, *u_b = projected + r * 2 * m;
    T *grad_key = grads.key + (j - first_key) * m, *grad_value = grads.value + (j - first_key) * m;
    attend<T, Vectors>(s, q, k, u_b, w.score, row, logit_of);
    for (long u = 0; u < head_vectors; ++u) {
      Vector<T> reached{};  // g_j
      GRIT_UNROLL
      for (long v = u; v < vectors; v += head_vectors) {
        const long at = v * kLanes<T>;
        reached += load(query.node + at) * load(value + at) + load(query.pair + at) * load(row + at);
      }
      reached = fold<T>(reached, int(s.padded_heads));
      const Vector<T> logit = logit_of[u];
      const Vector<T> weight = exponential<T>(clamped<T>(logit, bound) - query.top[u]) * query.inverse[u];
      const Vector<T> kept = p.attention_dropout.on() ? kept_heads<T>(p.attention_dropout, s, first + r, u) : all<T>(T(1));
      const Vector<T> grad = weight * (kept * reached - query.sum[u]);
      grad_of[u] = absolute<T>(logit) > bound ? Vector<T>{} : grad;
      weight_of[u] = weight * kept;
    }
    const bool drops = p.pair_dropout.on();
    if (drops) {
      std::fill(mask, mask + m, T(1));
      drop_channels(p.pair_dropout, w, first + r, mask);
    }
    for (long u = 0; u < head_vectors; ++u) {
      const Vector<T> weight = weight_of[u], grad_logit = grad_of[u];
      GRIT_UNROLL
      for (long v = u; v < vectors; v += head_vectors) {
        const long at = v * kLanes<T>;
        const Vector<T> after = load(row + at), sum = load(q + at) + load(k + at), scale = load(u_b + at);
        Vector<T> from = load(from_out + at);
        if (drops) from *= load(mask + at);
        const Vector<T> grad_after = from + weight * load(query.pair + at) + grad_logit * load(w.score + at);
        const Vector<T> grad_before = after <= T(0) ? Vector<T>{} : grad_after;
        const Vector<T> grad_product = grad_before * T(0.5) * root_of<T>(absolute<T>(sum * scale)).inverse;
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
        if (drops) store(row + at, after * load(mask + at));
      }
    }
  }
  GRIT_UNROLL
  for (int which = 0; which < 4; ++which) {
    GRIT_UNROLL
    for (long v = 0; v < Vectors; ++v) store(sums[which] + v * kLanes<T>, kept_sums[which][v]);
  }
}

// ∂pair = scale * ∂e, ∂scale = Σ ∂e pair, ∂shift = Σ ∂e, with ∂e = ∂out + what the projection sends back.
template <class T>
inline void write_grad_pairs(const PairProblem<T>& p, const Prepared<T>& w, long first, long rows,
                             const BackwardTile<T>& tile, const ChunkGradients<T>& grads) {
  const long d = w.s.width, n = w.s.natural_width;
  for (long r = 0; r < rows; ++r) {
    T *grad = tile.grad_pairs + r * n, *to = p.grad_pair + (first + r) * d;
    const T *residual = tile.grad_out + r * n, *pair = p.pair + (first + r) * d;
    if (p.weight_out) {
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) grad[c] += residual[c];
    }
    if (p.scale) {
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

template <class T, int Vectors>
void backward_chunk(const PairProblem<T>& p, const Prepared<T>& w, const RowGradient<T>& gradient, const Chunk& chunk,
                    const BackwardTile<T>& tile, const ChunkGradients<T>& grads, T* grad_nodes) {
  const Sizes& s = w.s;
  const long n = s.natural_width, m = s.padded_width;
  long query = chunk.first_query;
  for (long first = chunk.first_pair; first < chunk.last_pair; first += kTileRows) {
    const long rows = std::min(kTileRows, chunk.last_pair - first);
    read_pairs(p, w, first, rows, tile.pairs);
    if (p.projected)
      std::copy(p.projected + first * 2 * m, p.projected + (first + rows) * 2 * m, tile.projected);
    else
      product(rows, s.width, 2 * m, tile.pairs, n, w.projection, tile.projected, 2 * m, w.bias);
    if (p.weight_out) {
      gradient.read(first, rows, tile.grad_out, n, grads.bias_out);
      product(rows, s.width, m, tile.grad_out, n, w.out_back, tile.grad_hidden, m, static_cast<const T*>(nullptr));
    } else {
      std::fill(tile.grad_hidden, tile.grad_hidden + rows * m, T(0));
    }
    for (long at = first; at < first + rows;) {
      if (at == p.row_ptr[query]) tile.query.start(p, s, query);
      const long stop = std::min(first + rows, long(p.row_ptr[query + 1])), r = at - first;
      backward_segment<T, Vectors>(p, w, query, at, stop - at, chunk.first_key, tile.projected + r * 2 * m,
                                   tile.hidden + r * m, tile.grad_hidden + r * m, tile.query, grads);
      if (stop == p.row_ptr[query + 1]) {
        std::copy(tile.query.query, tile.query.query + m, grad_nodes + query * 3 * m);
        ++query;
      }
      at = stop;
    }
    if (p.weight_out) add_outer_product(rows, m, n, tile.hidden, m, tile.grad_out, n, grads.out, n);
    add_outer_product(rows, n, 2 * m, tile.pairs, n, tile.projected, 2 * m, grads.projection, 2 * m);
    product(rows, 2 * m, n, tile.projected, 2 * m, w.projection_back, tile.grad_pairs, n, static_cast<const T*>(nullptr));
    write_grad_pairs(p, w, first, rows, tile, grads);
  }
}

template <class T>
using BackwardChunk = void (*)(const PairProblem<T>&, const Prepared<T>&, const RowGradient<T>&, const Chunk&,
                               const BackwardTile<T>&, const ChunkGradients<T>&, T*);

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
void add_up(const PairProblem<T>& p, const Prepared<T>& w, const std::vector<ChunkGradients<T>>& grads, T* grad_nodes) {
  const Sizes& s = w.s;
  const long d = s.width, n = s.natural_width, m = s.padded_width, fixed = long(ChunkGradients<T>::fixed_size(s));
  const ChunkGradients<T>& total = grads[0];
#pragma omp parallel num_threads(p.threads)
  {
#pragma omp for schedule(static)
    for (long block = 0; block < (fixed + 511) / 512; ++block)
      for (size_t c = 1; c < grads.size(); ++c) {
        T *to = total.projection + block * 512, *from = grads[c].projection + block * 512;
        for (long at = 0; at < std::min(512L, fixed - block * 512); ++at) to[at] += from[at];
      }
#pragma omp for schedule(static)
    for (long j = 0; j < p.nodes; ++j) {
      T* sum = grad_nodes + j * 3 * m + m;  // of key and value
      std::fill(sum, sum + 2 * m, T(0));
      for (size_t c = 0; c < grads.size(); ++c)
        if (j >= w.chunks[c].first_key && j < w.chunks[c].last_key) {
          const long at = (j - w.chunks[c].first_key) * m;
          GRIT_INDEPENDENT
          for (long x = 0; x < m; ++x) sum[x] += grads[c].key[at + x], sum[m + x] += grads[c].value[at + x];
        }
    }
#pragma omp for schedule(static)
    for (long from = 0; from < d; ++from) {
      const long to = s.at(from / s.channels, from % s.channels);
      for (long i = 0; i < d; ++i) {
        p.grad_weight_scale[from * d + i] = total.projection[i * 2 * m + to];
        p.grad_weight_shift[from * d + i] = total.projection[i * 2 * m + m + to];
        if (p.weight_out) p.grad_weight_out[i * d + from] = total.out[to * n + i];
      }
    }
  }
  to_caller_order(s, total.bias, p.grad_bias_scale);
  to_caller_order(s, total.bias + m, p.grad_bias_shift);
  to_caller_order(s, total.score, p.grad_score);
  if (p.weight_out) std::copy(total.bias_out, total.bias_out + d, p.grad_bias_out);
  if (p.scale) {
    std::copy(total.scale, total.scale + d, p.grad_scale);
    std::copy(total.shift, total.shift + d, p.grad_shift);
  }
}

// From the gradients of query, key and value to those of x and the three maps.
template <class T>
void node_gradients(const PairProblem<T>& p, const Prepared<T>& w, const T* grad_nodes, T* memory) {
  const Sizes& s = w.s;
  const long d = s.width, n = s.natural_width, m = s.padded_width, chunks = node_chunks(p.nodes), size = n * 3 * m + m;
  T *back = memory, *tiles = back + 3 * m * n, *sums = tiles + p.threads * kTileRows * (2 * n + 3 * m);
  const T* weights[] = {p.weight_query, p.weight_key, p.weight_value};
  pack(3 * m, n, back, [&](long to, long i) {
    return i >= d || w.column[to % m] < 0 ? T(0) : weights[to / m][w.column[to % m] * d + i];
  });
#pragma omp parallel for num_threads(p.threads) schedule(dynamic)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    T *x = tiles + omp_get_thread_num() * kTileRows * (2 * n + 3 * m), *grad_x = x + kTileRows * n, *grad = grad_x + kTileRows * n;
    T *weight = sums + chunk * size, *bias = weight + n * 3 * m;
    std::fill(weight, weight + size, T(0));
    const long start = p.nodes * chunk / chunks, stop = p.nodes * (chunk + 1) / chunks;
    for (long first = start; first < stop; first += kTileRows) {
      const long rows = std::min(kTileRows, stop - first);
      for (long r = 0; r < rows; ++r) {
        std::copy(p.x + (first + r) * d, p.x + (first + r + 1) * d, x + r * n);
        std::copy(grad_nodes + (first + r) * 3 * m, grad_nodes + (first + r + 1) * 3 * m, grad + r * 3 * m);
        GRIT_INDEPENDENT
        for (long c = 0; c < m; ++c) bias[c] += grad[r * 3 * m + c];
      }
      add_outer_product(rows, n, 3 * m, x, n, grad, 3 * m, weight, 3 * m);
      product(rows, 3 * m, n, grad, 3 * m, back, grad_x, n, static_cast<const T*>(nullptr));
      for (long r = 0; r < rows; ++r) std::copy(grad_x + r * n, grad_x + r * n + d, p.grad_x + (first + r) * d);
    }
  }
  add_chunks(sums, chunks, size);
  T* wanted[] = {p.grad_weight_query, p.grad_weight_key, p.grad_weight_value};
  for (long which = 0; which < 3; ++which)
    for (long to = 0; to < m; ++to)
      for (long i = 0; w.column[to] >= 0 && i < d; ++i) wanted[which][w.column[to] * d + i] = sums[i * 3 * m + which * m + to];
  to_caller_order(s, sums + n * 3 * m, p.grad_bias_query);
}

template <class T>
size_t node_gradients_size(const PairProblem<T>& p, const Sizes& s) {
  const size_t n = s.natural_width, m = s.padded_width;
  return 3 * m * n + p.threads * kTileRows * (2 * n + 3 * m) + node_chunks(p.nodes) * (n * 3 * m + m);
}

template <class T>
void backward(const PairProblem<T>& p) {
  const Sizes s = Sizes::of<T>(p.heads, p.channels);
  std::vector<Chunk> chunks = cut(p.row_ptr, p.key, p.nodes);
  size_t wanted = 0;
  for (const Chunk& chunk : chunks) wanted += padded(ChunkGradients<T>::size(s, chunk), 64);
  const size_t tile_size = padded(BackwardTile<T>::size(s), 64);
  const size_t node_size = node_gradients_size(p, s);
  Arena<T> arena(wanted + p.threads * tile_size + Prepared<T>::size(p, s) + p.nodes * 3 * s.padded_width + node_size);
  T* memory = arena.take(wanted);
  std::vector<ChunkGradients<T>> grads;
  for (const Chunk& chunk : chunks) {
    grads.emplace_back(s, chunk, memory);
    memory += padded(ChunkGradients<T>::size(s, chunk), 64);
  }
  T *tiles = arena.take(p.threads * tile_size), *grad_nodes = arena.take(p.nodes * 3 * s.padded_width);
  T* node_memory = arena.take(node_size);
  const Prepared<T> w(p, s, arena, true);
  const RowGradient<T> gradient(p.grad_out, p.out, p.mean, p.grad_mean, p.grad_deviations, s.width, p.row_ptr[p.nodes]);
  const auto run = backward_chunk_for<T>(s);
  const long count = long(w.chunks.size());
#pragma omp parallel num_threads(p.threads)
  {
    const BackwardTile<T> tile(s, tiles + omp_get_thread_num() * tile_size);
#pragma omp for schedule(dynamic)
    for (long c = 0; c < count; ++c) {
      std::fill(grads[c].projection, grads[c].projection + ChunkGradients<T>::size(s, w.chunks[c]), T(0));
      run(p, w, gradient, w.chunks[c], tile, grads[c], grad_nodes);
    }
  }
  add_up(p, w, grads, grad_nodes);
  node_gradients(p, w, grad_nodes, node_memory);
}

}  // namespace grit
