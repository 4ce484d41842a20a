// Relative random walk probabilities of every pair of every graph, written straight into the packed (P, K) layout.
//
// Column j of M^k depends on column j of M^(k-1) alone, so a block of columns, one or two vectors wide, is carried through
// all K steps in cache, then transposed in registers and written out. Graphs, and blocks of columns of large graphs, go to
// threads one by one. Nodes are taken in the order of their number of ways out, so that the sums over neighbours, short in
// a molecule, have lengths that the compiler knows.
#pragma once

#include "layout.h"

namespace grit {

template <class T>
struct WalkProblem {
  int64_t graphs, steps, threads;
  const int64_t *node_ptr, *edge_ptr;  // (B + 1)
  const int64_t *source, *target;      // (E), numbered over the batch; of one graph in any order, repeated or not
  T *pair, *node;                      // (P, K), (N, K)
};

constexpr long kKnownWays = 4;  // longest sum over neighbours that is unrolled

// The walk matrix of one graph; what it is kept in is used again for the next.
template <class T>
struct Walk {
  struct Node {
    int32_t number, ways, first;  // its distinct ways out begin at `first` in `to`
    T chance;                     // 1 / degree; the degree counts every edge listed
  };
  std::vector<Node> order;       // nodes with 0, 1, ..., kKnownWays distinct ways out, then the others
  long classes[kKnownWays + 3];  // where each class of nodes begins, and the end
  std::vector<int32_t> to;       // targets of each node, rising

  void read(const WalkProblem<T>& p, long graph) {
    const long start = p.node_ptr[graph], n = p.node_ptr[graph + 1] - start;
    const long edges = p.edge_ptr[graph + 1] - p.edge_ptr[graph];
    const int64_t *source = p.source + p.edge_ptr[graph], *target = p.target + p.edge_ptr[graph];
    // Edges by target, then, keeping that order, by source.
    by_target_.resize(edges), sorted_.resize(edges), to.resize(edges), found_.resize(n), order.resize(n);
    count(target, edges, n, start);
    for (long e = 0; e < edges; ++e) by_target_[begin_[target[e] - start]++] = int32_t(e);
    count(source, edges, n, start);
    for (int32_t e : by_target_) sorted_[begin_[source[e] - start]++] = int32_t(target[e] - start);
    // begin_[i] is now where the edges of node i end.
    long size[kKnownWays + 3] = {};
    int32_t used = 0;
    for (long i = 0, e = 0; i < n; ++i) {
      const int32_t first = used, degree = int32_t(begin_[i] - e);
      for (; e < begin_[i]; ++e)
        if (used == first || to[used - 1] != sorted_[e]) to[used++] = sorted_[e];
      found_[i] = {int32_t(i), used - first, first, T(1) / T(std::max(1, degree))};
      ++size[1 + class_of(found_[i])];
    }
    classes[0] = 0;
    for (long c = 1; c < kKnownWays + 3; ++c) classes[c] = classes[c - 1] + size[c];
    long next[kKnownWays + 2];
    std::copy(classes, classes + kKnownWays + 2, next);
    for (const Node& node : found_) order[next[class_of(node)]++] = node;
  }

 private:
  std::vector<int32_t> by_target_, sorted_, begin_;
  std::vector<Node> found_;

  static long class_of(const Node& node) { return std::min<long>(node.ways, kKnownWays + 1); }

  // Where each key begins once sorted.
  void count(const int64_t* key, long size, long keys, long lowest) {
    begin_.assign(keys + 1, 0);
    for (long e = 0; e < size; ++e) ++begin_[key[e] - lowest + 1];
    for (long k = 0; k < keys; ++k) begin_[k + 1] += begin_[k];
  }
};

// One more step for the nodes [first, last) of the order, which have Ways ways out (-1: any number), and a block of columns
// of Wide vectors.
template <class T, int Wide, int Ways>
inline void walk_on(const Walk<T>& matrix, long first, long last, const T* before, T* after) {
  constexpr long row = Wide * kLanes<T>;
  for (long at = first; at < last; ++at) {
    const auto& node = matrix.order[at];
    const int32_t* to = matrix.to.data() + node.first;
    const long ways = Ways < 0 ? node.ways : Ways;
    Vector<T> sum[Wide] = {};
    for (long e = 0; e < ways; ++e)
      for (int w = 0; w < Wide; ++w) sum[w] += load(before + to[e] * row + w * kLanes<T>);
    for (int w = 0; w < Wide; ++w) store(after + node.number * row + w * kLanes<T>, sum[w] * node.chance);
  }
}

// A vector of Bytes.
template <class T, int Bytes>
struct Lanes {
  static constexpr long count = Bytes / long(sizeof(T));
  typedef T Row __attribute__((vector_size(Bytes)));

  static Row load(const T* from) {
    Row value;
    std::memcpy(&value, from, Bytes);
    return value;
  }
  static void store(T* to, Row value) { std::memcpy(to, &value, Bytes); }
};

// Rows r and r + Distance exchange the off-diagonal blocks of Distance x Distance.
template <class T, int Bytes, int Distance, int... Lane>
inline void exchange(typename Lanes<T, Bytes>::Row* rows, std::integer_sequence<int, Lane...>) {
  using Row = typename Lanes<T, Bytes>::Row;
  constexpr int count = int(Lanes<T, Bytes>::count);
  GRIT_UNROLL
  for (int r = 0; r < count; ++r)
    if (!(r & Distance)) {
      const Row a = rows[r], b = rows[r + Distance];
      rows[r] = chosen<Row, (Lane & Distance ? count + Lane - Distance : Lane)...>(a, b);
      rows[r + Distance] = chosen<Row, (Lane & Distance ? count + Lane : Lane + Distance)...>(a, b);
    }
}

template <class T, int Bytes, int Distance>
inline void exchange(typename Lanes<T, Bytes>::Row* rows) {
  if constexpr (Distance < Lanes<T, Bytes>::count)
    exchange<T, Bytes, Distance>(rows, std::make_integer_sequence<int, int(Lanes<T, Bytes>::count)>());
}

// from[k * stride + c] -> to[c * steps + k] for c < columns, at most as many as a vector has lanes: squares are transposed in
// registers, in vectors as short as will do.
template <class T, int Bytes>
inline void write_transposed(const T* from, long stride, long steps, long columns, T* to) {
  using L = Lanes<T, Bytes>;
  if constexpr (Bytes > 16)
    if (columns <= L::count / 2 || steps < L::count) {
      for (long c = 0; c < columns; c += L::count / 2)
        write_transposed<T, Bytes / 2>(from + c, stride, steps, std::min(L::count / 2, columns - c), to + c * steps);
      return;
    }
  if (steps < L::count) {
    for (long c = 0; c < columns; ++c)
      for (long k = 0; k < steps; ++k) to[c * steps + k] = from[k * stride + c];
    return;
  }
  for (long done = 0; done < steps; done += L::count) {
    const long k = std::min(done, steps - L::count);  // the last square overlaps the one before
    typename L::Row rows[L::count];
    GRIT_UNROLL
    for (long r = 0; r < L::count; ++r) rows[r] = L::load(from + (k + r) * stride);
    exchange<T, Bytes, 1>(rows);
    exchange<T, Bytes, 2>(rows);
    exchange<T, Bytes, 4>(rows);
    exchange<T, Bytes, 8>(rows);
    GRIT_UNROLL
    for (long c = 0; c < L::count; ++c)
      if (c < columns) L::store(to + c * steps + k, rows[c]);
  }
}

// Columns of Wide vectors, from `column` on, of all powers for one graph.
template <class T, int Wide>
void walk_columns(const WalkProblem<T>& p, const Walk<T>& matrix, long graph, long first_pair, long column, T* powers) {
  constexpr long lanes = kLanes<T>, row = Wide * lanes;
  const long start = p.node_ptr[graph], n = p.node_ptr[graph + 1] - start, steps = p.steps;
  const long columns = std::min(row, n - column);
  const long* begin = matrix.classes;
  std::fill(powers, powers + n * row, T(0));
  for (long c = 0; c < columns; ++c) powers[(column + c) * row + c] = T(1);
  for (long k = 1; k < steps; ++k) {
    const T* before = powers + (k - 1) * n * row;
    T* after = powers + k * n * row;
    walk_on<T, Wide, 0>(matrix, begin[0], begin[1], before, after);
    walk_on<T, Wide, 1>(matrix, begin[1], begin[2], before, after);
    walk_on<T, Wide, 2>(matrix, begin[2], begin[3], before, after);
    walk_on<T, Wide, 3>(matrix, begin[3], begin[4], before, after);
    walk_on<T, Wide, 4>(matrix, begin[4], begin[5], before, after);
    walk_on<T, Wide, -1>(matrix, begin[5], begin[6], before, after);
  }
  for (long i = 0; i < n; ++i) {
    T* to = p.pair + (first_pair + i * n + column) * steps;
    if (i + 1 < n) {
      const char* next = reinterpret_cast<const char*>(to + n * steps);
      for (long byte = 0; byte < columns * steps * long(sizeof(T)); byte += 64) __builtin_prefetch(next + byte, 1, 2);
    }
    for (long c = 0; c < columns; c += lanes)
      write_transposed<T, kVectorBytes>(powers + i * row + c, n * row, steps, std::min(lanes, columns - c), to + c * steps);
  }
  for (long c = 0; c < columns; ++c)
    for (long k = 0; k < steps; ++k) p.node[(start + column + c) * steps + k] = powers[(k * n + column + c) * row + c];
}

// Columns that are carried together: so many that their powers stay in the second-level cache.
template <class T>
inline long columns_together(long n, long steps) {
  constexpr long in_cache = 1 << 20;  // bytes
  constexpr long lanes = kLanes<T>;
  return n > lanes && 2 * lanes * n * steps * long(sizeof(T)) <= in_cache ? 2 * lanes : lanes;
}

template <class T>
struct WalkBuffers {
  std::vector<T*> powers;  // per thread

  WalkBuffers(Arena& arena, long threads, long size) {
    for (long t = 0; t < threads; ++t) powers.push_back(arena.take<T>(size));
  }
};

template <class T>
void walk(const WalkProblem<T>& p) {
  constexpr long task_columns = 16 * 2 * kLanes<T>;  // columns for which a graph is read once
  struct Task {
    long graph, first_pair, column;
  };
  std::vector<Task> tasks;
  long size = 0, pairs = 0;
  for (long g = 0; g < p.graphs; ++g) {
    const long n = p.node_ptr[g + 1] - p.node_ptr[g];
    size = std::max(size, padded(n * columns_together<T>(n, p.steps) * p.steps, 64));
    for (long column = 0; column < n; column += task_columns) tasks.push_back({g, pairs, column});
    pairs += n * n;
  }
  const auto buffers = allocate<WalkBuffers<T>>(p.threads, size);
  const long count = long(tasks.size());
#pragma omp parallel num_threads(p.threads)
  {
    Walk<T> matrix;
    T* mine = buffers.powers[omp_get_thread_num()];
#pragma omp for schedule(dynamic, 1)
    for (long t = 0; t < count; ++t) {
      const Task& task = tasks[t];
      const long n = p.node_ptr[task.graph + 1] - p.node_ptr[task.graph], last = std::min(n, task.column + task_columns);
      const long together = columns_together<T>(n, p.steps);
      matrix.read(p, task.graph);
      for (long column = task.column; column < last; column += together)
        if (together > kLanes<T>)
          walk_columns<T, 2>(p, matrix, task.graph, task.first_pair, column, mine);
        else
          walk_columns<T, 1>(p, matrix, task.graph, task.first_pair, column, mine);
    }
  }
}

}  // namespace grit
