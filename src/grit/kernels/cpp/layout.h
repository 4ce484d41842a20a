// How channels, weights and the work itself are laid out.
//
// In the kernels the channels of a node or pair are ordered with the head fastest, [channel of head][head], and the number of
// heads is padded to a power of two. A vector of channels then lines up with a vector of heads repeated, whatever the width
// of a head: a head's weight multiplies its channels, and a sum over a head's channels is a sum of vectors.
#pragma once

#include <omp.h>

#include <algorithm>
#include <vector>

#include "gemm.h"

namespace grit {

constexpr long kTileRows = 96;         // pairs that are worked on at once; a multiple of every kTileRowsStep
constexpr long kLargestChunks = 32;    // pieces of a batch: what is summed over pairs is summed per piece, then in order
constexpr long kSmallestChunk = 512;   // pairs

inline long padded(long size, long step) { return (size + step - 1) / step * step; }

struct Sizes {
  long heads, channels, width;  // H, C, D = H * C
  long padded_heads;            // a power of two
  long padded_width;            // D in the kernels' order, and
  long natural_width;           // D in the caller's order, both multiples of the vector length
  long head_vectors;            // vectors that hold one number per head, repeated if there are fewer heads than lanes
  long vectors;                 // padded_width in vectors

  template <class T>
  static Sizes of(long heads, long channels) {
    Sizes s{};
    s.heads = heads, s.channels = channels, s.width = heads * channels;
    s.padded_heads = 1;
    while (s.padded_heads < heads) s.padded_heads *= 2;
    s.padded_width = padded(channels * s.padded_heads, kLanes<T>);
    s.natural_width = padded(s.width, kLanes<T>);
    s.head_vectors = std::max(1L, s.padded_heads / kLanes<T>);
    s.vectors = s.padded_width / kLanes<T>;
    return s;
  }

  long at(long head, long channel) const { return channel * padded_heads + head; }
};

// Ask for a row that is needed a tile later, while there is arithmetic to do meanwhile; asking beyond the end does no harm.
template <class T>
inline void fetch_ahead(const T* rows, long row, long width) {
  if (!rows) return;
  const char* at = reinterpret_cast<const char*>(rows + row * width);
  for (long byte = 0; byte < width * long(sizeof(T)); byte += 64) __builtin_prefetch(at + byte, 0, 2);
}

// (rows, D) in the caller's order -> (rows, padded_width) in the kernels', zeros in the padding.
template <class T>
inline void to_kernel_order(const Sizes& s, const T* from, T* to) {
  std::fill(to, to + s.padded_width, T(0));
  for (long h = 0; h < s.heads; ++h)
    for (long c = 0; c < s.channels; ++c) to[s.at(h, c)] = from[h * s.channels + c];
}

template <class T>
inline void to_caller_order(const Sizes& s, const T* from, T* to) {
  for (long h = 0; h < s.heads; ++h)
    for (long c = 0; c < s.channels; ++c) to[h * s.channels + c] = from[s.at(h, c)];
}

// A batch cut at query nodes into chunks of about equal numbers of pairs. It depends on the batch alone, never on threads.
struct Chunk {
  long first_query, last_query;  // [first, last)
  long first_pair, last_pair;
  long first_key, last_key;  // keys that these queries attend to lie in [first, last)
};

inline std::vector<Chunk> cut(const int64_t* row_ptr, const int64_t* key, long nodes) {
  const long pairs = row_ptr[nodes];
  const long wanted = std::clamp(pairs / kSmallestChunk, 1L, kLargestChunks);
  std::vector<Chunk> chunks;
  long query = 0;
  for (long c = 0; c < wanted && query < nodes; ++c) {
    const long goal = pairs * (c + 1) / wanted;
    Chunk chunk{query, query, row_ptr[query], 0, nodes, 0};
    while (query < nodes && (query == chunk.first_query || row_ptr[query + 1] <= goal || c + 1 == wanted)) {
      // Keys rise within a row.
      chunk.first_key = std::min(chunk.first_key, long(key[row_ptr[query]]));
      chunk.last_key = std::max(chunk.last_key, long(key[row_ptr[query + 1] - 1]) + 1);
      ++query;
    }
    chunk.last_query = query;
    chunk.last_pair = row_ptr[query];
    chunks.push_back(chunk);
  }
  return chunks;
}

// Memory that is kept by the calling thread from one call to the next, so that pages are not faulted in anew every time.
template <class T>
class Arena {
 public:
  explicit Arena(size_t size) {
    thread_local std::vector<char> kept;
    size_t bytes = size * sizeof(T) + 64;
    if (kept.size() < bytes) {
      std::vector<char>().swap(kept);
      kept.resize(bytes);
    }
    next_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(kept.data()) + 63) / 64 * 64);
  }
  T* take(size_t count) {
    T* taken = next_;
    next_ += count;
    return taken;
  }

 private:
  T* next_;
};

}  // namespace grit
