// How channels and work are laid out, and the memory that a call works in.
//
// In the kernels the channels of a node or pair are ordered with the head fastest, [channel of head][head], and the number of
// heads is padded to a power of two. A vector of channels then lines up with a vector of heads repeated, whatever the width
// of a head: a head's weight multiplies its channels, and a sum over a head's channels is a sum of vectors.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gemm.h"

#if defined(__SANITIZE_ADDRESS__)
#define GRIT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRIT_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(GRIT_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace grit {

constexpr long kTileRows = 96;        // rows that are worked on at once; a multiple of every kRowsStep
constexpr long kLargestChunks = 32;   // pieces of a batch: what is summed over pairs is summed per piece, then in order
constexpr long kSmallestChunk = 512;  // pairs
static_assert(kTileRows % kRowsStep == 0);

inline long padded(long size, long step) { return (size + step - 1) / step * step; }

struct Sizes {
  long heads, channels, width;  // H, C, D = H * C
  long padded_heads;            // a power of two
  long caller_width;            // D in the caller's order, and
  long kernel_width;            // D in the kernels' order, both padded to whole vectors
  long head_vectors;            // vectors that hold one number per head, repeated if there are fewer heads than lanes
  long vectors;                 // kernel_width in vectors

  template <class T>
  static Sizes of(long heads, long channels) {
    Sizes s{};
    s.heads = heads, s.channels = channels, s.width = heads * channels;
    s.padded_heads = 1;
    while (s.padded_heads < heads) s.padded_heads *= 2;
    s.caller_width = padded(s.width, kLanes<T>);
    s.kernel_width = padded(channels * s.padded_heads, kLanes<T>);
    s.head_vectors = std::max(1L, s.padded_heads / kLanes<T>);
    s.vectors = s.kernel_width / kLanes<T>;
    return s;
  }

  // The kernels' column of a channel.
  long at(long head, long channel) const { return channel * padded_heads + head; }
};

// A row (D) in the caller's order -> (kernel_width) in the kernels' order, zeros in the padding.
template <class T>
inline void to_kernel_order(const Sizes& s, const T* from, T* to) {
  std::fill(to, to + s.kernel_width, T(0));
  for (long h = 0; h < s.heads; ++h)
    for (long c = 0; c < s.channels; ++c) to[s.at(h, c)] = from[h * s.channels + c];
}

template <class T>
inline void to_caller_order(const Sizes& s, const T* from, T* to) {
  for (long h = 0; h < s.heads; ++h)
    for (long c = 0; c < s.channels; ++c) to[h * s.channels + c] = from[s.at(h, c)];
}

// Ask for a row that is needed a tile later, while there is arithmetic to do meanwhile; asking beyond the end does no harm.
template <class T>
inline void fetch_ahead(const T* rows, long row, long width) {
  if (!rows) return;
  const uintptr_t at = reinterpret_cast<uintptr_t>(rows) + uintptr_t(row * width) * sizeof(T);
  for (uintptr_t byte = 0; byte < uintptr_t(width) * sizeof(T); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(at + byte), 0, 2);
}

// A batch cut at query nodes into chunks of about equal numbers of pairs. It depends on the batch alone, never on threads.
struct Chunk {
  long first_query, last_query;  // [first, last)
  long first_pair, last_pair;
  long first_key, last_key;  // keys that these queries attend to lie in [first, last)

  long keys() const { return last_key - first_key; }
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

// Nodes are cut into chunks, too, for the same reason as pairs: an even number, so that two threads share them well.
inline long node_chunks(long nodes) { return 2 * std::clamp(nodes / 256, 1L, kLargestChunks / 2); }

// The rows of `chunk`, tile by tile: work(first, count).
template <class Work>
inline void for_tiles(long rows, long chunk, long chunks, Work work) {
  const long start = rows * chunk / chunks, stop = rows * (chunk + 1) / chunks;
  for (long first = start; first < stop; first += kTileRows) work(first, std::min(kTileRows, stop - first));
}

// Hands out buffers, each beginning at a multiple of 64 bytes. Without memory it only measures.
class Arena {
 public:
  Arena() = default;
  Arena(char* memory, size_t capacity) : memory_(memory), capacity_(capacity) {
#if defined(GRIT_ADDRESS_SANITIZER)
    ASAN_UNPOISON_MEMORY_REGION(memory, capacity);
#endif
  }

  template <class T>
  T* take(long count) {
    const size_t start = used_, bytes = size_t(count) * sizeof(T);
    used_ += (bytes + 63) / 64 * 64 + kGap;
    if (!memory_) return nullptr;
    if (used_ > capacity_) {
      std::fprintf(stderr, "grit: a kernel took %zu bytes of working memory, %zu were set aside\n", used_, capacity_);
      std::abort();
    }
#if defined(GRIT_ADDRESS_SANITIZER)
    ASAN_POISON_MEMORY_REGION(memory_ + start + bytes, used_ - start - bytes);
#endif
    return reinterpret_cast<T*>(memory_ + start);
  }

  size_t used() const { return used_; }

 private:
#if defined(GRIT_ADDRESS_SANITIZER)
  static constexpr size_t kGap = 64;  // so that writing past a buffer's end is seen
#else
  static constexpr size_t kGap = 0;
#endif
  char* memory_ = nullptr;
  size_t capacity_ = 0, used_ = 0;
};

// Memory that the calling thread keeps from one call to the next, so that pages are not faulted in anew every time.
inline Arena kept_memory(size_t bytes) {
  thread_local std::unique_ptr<char[]> kept;
  thread_local size_t size = 0;
  if (size < bytes + 64) {
#if defined(GRIT_ADDRESS_SANITIZER)
    if (kept) ASAN_UNPOISON_MEMORY_REGION(kept.get(), size);
#endif
    kept.reset();
    size = bytes + 64;
    kept.reset(new char[size]);
  }
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(kept.get()) + 63) / 64 * 64);
  return Arena(aligned, bytes);
}

// The buffers of a call: a struct whose constructor takes each of them from an arena, and so states its size once. It is
// constructed twice, first to measure. Only one such struct is alive in a thread at a time.
template <class Buffers, class... Arguments>
inline Buffers allocate(const Arguments&... arguments) {
  Arena measure;
  Buffers(measure, arguments...);
  Arena arena = kept_memory(measure.used());
  return Buffers(arena, arguments...);
}

// As many of such structs as there are threads, each taken from the arena of its caller.
template <class Tile, class... Arguments>
inline std::vector<Tile> for_threads(Arena& arena, long threads, const Arguments&... arguments) {
  std::vector<Tile> tiles;
  for (long t = 0; t < threads; ++t) tiles.emplace_back(arena, arguments...);
  return tiles;
}

}  // namespace grit
