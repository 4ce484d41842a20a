// The fused unit: L consecutive layers of GRIT, what it is given and what it gives. `grit.kernels.stack` mirrors the structs.
//
// Shape letters: N nodes, P pairs, H heads, C channels per head, D = H * C, F width of the feed-forward network, L layers.
#pragma once

#include "layout.h"

namespace grit {

enum Norm { kPairNorm, kNodeNorm, kFfnNorm, kNorms };
enum Seed { kAttentionSeed, kPairSeed, kNodeSeed, kFfnSeed, kSeeds };

// The weights of one layer, or their gradients, in the order of `WEIGHTS` of grit.kernels.stack.
template <class T>
struct LayerTensors {
  T *query_weight, *query_bias, *key_weight, *value_weight;              // (D, D), (D), (D, D), (D, D)
  T *scale_weight, *scale_bias, *shift_weight, *shift_bias;              // pair_scale and pair_shift
  T *score, *pair_value;                                                 // (H, C), (H, C, C) [head, in, out]
  T* theta;                                                              // (2, D); null: no degree scaler
  T *node_out_weight, *node_out_bias, *pair_out_weight, *pair_out_bias;  // pair_out null: pairs are not rewritten
  T *ffn_in_weight, *ffn_in_bias, *ffn_out_weight, *ffn_out_bias;        // (F, D), (F), (D, F), (D)
  struct {
    T *weight, *bias;
  } norms[kNorms];  // (D); that of pairs null if they are not rewritten
};

template <class T>
struct Stack {
  int64_t layers, nodes, heads, channels, ffn_width, threads;
  int64_t keep;              // whether a backward pass may follow: otherwise layers share one set of rows
  int64_t batch_statistics;  // whether norms use the batch's moments; otherwise those in `statistics`
  int64_t gelu;              // whether the feed-forward network has GELU instead of ReLU
  void (*sum_over_processes)(double* values, int64_t count);  // null: this process has the whole batch
  const int64_t *row_ptr, *key, *seeds;                       // (N + 1), (P), (L, kSeeds)
  double clamp, eps;                                          // clamp infinite: none
  Dropout attention_dropout, dropout;                         // their seeds are not read
  const T *x, *pair, *log_degree;                             // (N, D), (P, D), (N)
  const LayerTensors<T>* weights;                             // (L)
  const T* const* statistics;                                 // (L, kNorms, 2): running mean and variance

  // Given back: x and, if the last layer rewrites pairs, pairs after the last layer, and the batch's moments.
  T *x_out, *pair_out;  // (N, D), (P, D)
  T *mean, *variance;   // (L, kNorms, D): the variance is that of a sample, divided by rows - 1
  // Kept for the backward pass; with `keep` off only the first of each is there, and layers use it one after another.
  T *node_sum, *pair_sum, *updated, *fed;  // (L, N, D)
  T* nodes_out;                            // (L - 1, N, D): x after every layer but the last
  T* pairs_out;                            // (layers that rewrite pairs, P, D), before their normalisation
  T* logsumexp;                            // (L, N, H): of each query's logits
  T *scale, *shift, *inverse_deviation;    // (L, kNorms, D): each normalisation as rows * scale + shift

  // The backward pass: given (null where nobody asks), wanted, and room to work in.
  const T *grad_x_out, *grad_pair_out;
  T *grad_x, *grad_pair;
  const LayerTensors<T>* grads;  // (L)
  T* room;                       // (4, N, D)

  long width() const { return heads * channels; }
  long num_pairs() const { return row_ptr[nodes]; }
  long at_norm(long layer, long norm) const { return (layer * kNorms + norm) * width(); }
};

// One layer of the stack: where its tensors are.
template <class T>
struct Layer {
  const Stack<T>& stack;
  long number, nodes, pairs, threads;
  Sizes sizes;
  const LayerTensors<T>&w, &grads;
  const T *x, *pair;                 // what the layer reads
  const T *pair_scale, *pair_shift;  // the normalisation of the pairs it reads; null: as they are
  T *node_sum, *pair_sum, *updated, *fed, *x_out, *logsumexp;
  T* pair_out;  // null: pairs are not rewritten
  Dropout attention_dropout, pair_dropout, node_dropout, ffn_dropout;

  Layer(const Stack<T>& s, long layer)
      : stack(s),
        number(layer),
        nodes(s.nodes),
        pairs(s.num_pairs()),
        threads(s.threads),
        sizes(Sizes::of<T>(s.heads, s.channels)),
        w(s.weights[layer]),
        grads(s.grads ? s.grads[layer] : w) {
    const long row = s.keep ? layer : 0, before = s.keep ? layer - 1 : 0, nodes_size = nodes * s.width();
    const long pairs_size = pairs * s.width();
    x = layer ? s.nodes_out + before * nodes_size : s.x;
    pair = layer ? s.pairs_out + before * pairs_size : s.pair;
    pair_scale = layer ? s.scale + s.at_norm(layer - 1, kPairNorm) : nullptr;
    pair_shift = layer ? s.shift + s.at_norm(layer - 1, kPairNorm) : nullptr;
    node_sum = s.node_sum + row * nodes_size, pair_sum = s.pair_sum + row * nodes_size;
    updated = s.updated + row * nodes_size, fed = s.fed + row * nodes_size;
    x_out = layer + 1 == s.layers ? s.x_out : s.nodes_out + row * nodes_size;
    logsumexp = s.logsumexp + row * nodes * s.heads;
    pair_out = w.pair_out_weight ? s.pairs_out + row * pairs_size : nullptr;
    attention_dropout = seeded(s.attention_dropout, kAttentionSeed), pair_dropout = seeded(s.dropout, kPairSeed);
    node_dropout = seeded(s.dropout, kNodeSeed), ffn_dropout = seeded(s.dropout, kFfnSeed);
  }

  // Whether the bound on the logits is so low that it can stand for the largest one: then rows need no pass to find that.
  bool bounded() const { return stack.clamp <= 20; }
  T clamp() const { return T(stack.clamp); }

  T* scale(Norm norm) const { return stack.scale + stack.at_norm(number, norm); }
  T* shift(Norm norm) const { return stack.shift + stack.at_norm(number, norm); }

 private:
  Dropout seeded(const Dropout& like, Seed which) const {
    return {uint32_t(stack.seeds[number * kSeeds + which]), like.threshold, like.scale};
  }
};

}  // namespace grit
