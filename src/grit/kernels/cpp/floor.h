// The matrix products of a layer and nothing else, on the same tiles: the time below which no implementation of this design
// gets. For benchmarks.
#pragma once

#include "layout.h"

namespace grit {

struct FloorProblem {
  int64_t pairs, nodes, width, threads, updates_pairs, backward;
};

template <class T>
class FloorTile {
 public:
  explicit FloorTile(long width) : width_(width), memory_(kTileRows * 5 * width + 8 * width * width, T(1e-3)) {}

  // y = x W^T for a tile: (rows, in) -> (rows, out).
  void forward(long rows, long in, long out) {
    product(rows, in, out, left(), in, weight(), right(), out, static_cast<const T*>(nullptr));
  }

  // ∂x and ∂W.
  void backward(long rows, long in, long out) {
    forward(rows, out, in);
    add_outer_product(rows, in, out, left(), in, right(), out, weight() + 4 * width_ * width_, out);
  }

 private:
  T* left() { return memory_.data(); }
  T* right() { return left() + kTileRows * 2 * width_; }
  T* weight() { return left() + kTileRows * 5 * width_; }

  long width_;
  std::vector<T> memory_;
};

template <class T>
void run_floor(const FloorProblem& p) {
  const long d = padded(p.width, kLanes<T>);
  const long pair_tiles = (p.pairs + kTileRows - 1) / kTileRows, node_tiles = (p.nodes + kTileRows - 1) / kTileRows;
#pragma omp parallel num_threads(p.threads)
  {
    FloorTile<T> tile(d);
#pragma omp for schedule(dynamic, 4)
    for (long t = 0; t < pair_tiles; ++t) {
      const long rows = std::min(kTileRows, p.pairs - t * kTileRows);
      tile.forward(rows, d, 2 * d);  // in the backward pass: computed again
      if (!p.backward && p.updates_pairs) tile.forward(rows, d, d);
      if (p.backward) {
        tile.backward(rows, d, 2 * d);
        if (p.updates_pairs) tile.backward(rows, d, d);
      }
    }
#pragma omp for schedule(dynamic, 1)
    for (long t = 0; t < node_tiles; ++t) {
      const long rows = std::min(kTileRows, p.nodes - t * kTileRows);
      for (const auto& [in, out] :
           {std::pair(d, 2 * d), std::pair(d, d), std::pair(d, d), std::pair(d, 2 * d), std::pair(2 * d, d)}) {
        if (p.backward)
          tile.backward(rows, in, out);
        else
          tile.forward(rows, in, out);
      }
    }
  }
}

}  // namespace grit
