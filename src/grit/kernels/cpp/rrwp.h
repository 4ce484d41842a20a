// Relative random walk probabilities of every pair of every graph, written straight into the packed (P, K) layout.
//
// Column j of M^k depends on column j of M^(k-1) alone, so a block of columns as wide as a vector is carried through all K
// steps in cache, then written out. Graphs, and blocks of columns of large graphs, go to threads one by one.
#pragma once

#include "layout.h"

namespace grit {

template <class T>
struct WalkProblem {
  int64_t graphs, steps, threads, nodes;
  const int64_t* node_ptr;          // (B + 1)
  const int64_t *row_ptr, *target;  // out-edges of each node, targets numbered over the batch, each once
  const T* chance;                  // (N): probability of each way out
  T *pair, *node;                   // (P, K), (N, K)
};

// Columns [column, column + lanes) of all powers for one graph.
template <class T>
void walk_columns(const WalkProblem<T>& p, long graph, long first_pair, long column, T* powers) {
  constexpr long lanes = kLanes<T>;
  const long start = p.node_ptr[graph], n = p.node_ptr[graph + 1] - start, steps = p.steps;
  const long columns = std::min(lanes, n - column);
  T* pairs = p.pair + first_pair * steps;
  std::fill(powers, powers + n * lanes, T(0));
  for (long c = 0; c < columns; ++c) powers[(column + c) * lanes + c] = T(1);
  for (long k = 1; k < steps; ++k) {
    const T* before = powers + (k - 1) * n * lanes;
    T* after = powers + k * n * lanes;
    for (long i = 0; i < n; ++i) {
      Vector<T> sum{};
      for (long e = p.row_ptr[start + i]; e < p.row_ptr[start + i + 1]; ++e)
        sum += load(before + (p.target[e] - start) * lanes);
      const bool has_way_out = p.row_ptr[start + i] < p.row_ptr[start + i + 1];
      store(after + i * lanes, has_way_out ? sum * p.chance[start + i] : sum);
    }
  }
  for (long i = 0; i < n; ++i) {
    T* to = pairs + (i * n + column) * steps;
    for (long c = 0; c < columns; ++c)
      for (long k = 0; k < steps; ++k) to[c * steps + k] = powers[(k * n + i) * lanes + c];
  }
  for (long c = 0; c < columns; ++c)
    for (long k = 0; k < steps; ++k)
      p.node[(start + column + c) * steps + k] = powers[(k * n + column + c) * lanes + c];
}

template <class T>
void walk(const WalkProblem<T>& p) {
  constexpr long lanes = kLanes<T>;
  struct Block {
    long graph, first_pair, column;
  };
  std::vector<Block> blocks;
  long largest = 0, pairs = 0;
  for (long g = 0; g < p.graphs; ++g) {
    const long n = p.node_ptr[g + 1] - p.node_ptr[g];
    largest = std::max(largest, n);
    for (long column = 0; column < n; column += lanes) blocks.push_back({g, pairs, column});
    pairs += n * n;
  }
  const long size = padded(largest * lanes * p.steps, 64);
  Arena<T> arena(p.threads * size);
  T* powers = arena.take(p.threads * size);
  const long count = long(blocks.size());
#pragma omp parallel for num_threads(p.threads) schedule(dynamic, 4)
  for (long b = 0; b < count; ++b)
    walk_columns(p, blocks[b].graph, blocks[b].first_pair, blocks[b].column, powers + omp_get_thread_num() * size);
}

}  // namespace grit
