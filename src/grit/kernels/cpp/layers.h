// All layers of a model in a training step, forward and backward, without a return to Python between them.
//
// What a layer is stands in `pair_attention.h` and `nodes.h`; here they are put together with the batch normalisations, of
// which there are three in a layer, and the seeds of the dropouts, of which there are four, numbered as follows. The last layer does not rewrite pairs.
#pragma once

#include "nodes.h"
#include "pair_attention_backward.h"

namespace grit {

enum Norm { kOfPairs, kOfNodes, kOfFeedForward, kNorms };
enum Seed { kAttention, kPairs, kNodes, kFeedForward, kSeeds };

// The weights of one layer, or their gradients.
template <class T>
struct LayerTensors {
  T *weight_query, *bias_query, *weight_key, *weight_value;
  T *weight_scale, *bias_scale, *weight_shift, *bias_shift, *score, *pair_value;
  T* theta;  // null: no degree scaler
  T *weight_node, *bias_node, *weight_pair, *bias_pair;
  T *weight_in, *bias_in, *weight_out, *bias_out;
  struct {
    T *weight, *bias;
  } norms[kNorms];
};

template <class T>
struct Layers {
  int64_t layers, nodes, heads, channels, hidden, threads;
  const int64_t *row_ptr, *key;
  const int64_t* seeds;  // (L, kSeeds)
  double clamp, eps, momentum;
  Dropout attention_dropout, dropout;     // their seeds are not read
  const T *x, *pair, *log_degree;         // (N, D), (P, D), (N)
  const LayerTensors<T>* weights;         // (L)
  T* const* running;                      // (L, kNorms, 2): mean and variance, which follow those of the batch

  // Written by the forward pass, read by the backward pass.
  T *node_sum, *pair_sum, *updated, *fed;  // (L, N, D)
  T* nodes_out;                            // (L, N, D): x after each layer
  T *top, *inverse;                        // (L, N, H)
  T* pairs_out;                            // (L - 1, P, D)
  T *mean, *deviations, *scale, *shift;    // (L, kNorms, D)

  // The backward pass: given, wanted, and room for it to work in.
  const T* grad;                           // (N, D)
  T *grad_x, *grad_pair;                   // (N, D), (P, D)
  const LayerTensors<T>* grads;            // (L)
  T* room;                                 // (4, N, D)

  long width() const { return heads * channels; }
  long pairs() const { return row_ptr[nodes]; }
  long at_nodes(long layer) const { return layer * nodes * width(); }
  long at_norm(long layer, long norm) const { return (layer * kNorms + norm) * width(); }
  long rows(long norm) const { return norm == kOfPairs ? pairs() : nodes; }

  Dropout drops(const Dropout& like, long layer, Seed which) const {
    return {uint32_t(seeds[layer * kSeeds + which]), like.threshold, like.scale};
  }

  PairProblem<T> attention(long layer) const {
    const LayerTensors<T>& w = weights[layer];
    PairProblem<T> p{};
    p.nodes = nodes, p.heads = heads, p.channels = channels, p.threads = threads, p.row_ptr = row_ptr, p.key = key;
    p.x = layer ? nodes_out + at_nodes(layer - 1) : x;
    p.weight_query = w.weight_query, p.bias_query = w.bias_query, p.weight_key = w.weight_key, p.weight_value = w.weight_value;
    p.pair = layer ? pairs_out + (layer - 1) * pairs() * width() : pair;
    if (layer) p.scale = scale + at_norm(layer - 1, kOfPairs), p.shift = shift + at_norm(layer - 1, kOfPairs);
    p.weight_scale = w.weight_scale, p.bias_scale = w.bias_scale, p.weight_shift = w.weight_shift, p.bias_shift = w.bias_shift;
    p.score = w.score, p.clamp = clamp, p.attention_dropout = drops(attention_dropout, layer, kAttention);
    p.node_sum = node_sum + at_nodes(layer), p.pair_sum = pair_sum + at_nodes(layer);
    p.top = top + layer * nodes * heads, p.inverse = inverse + layer * nodes * heads;
    if (layer + 1 < layers) {
      p.weight_out = w.weight_pair, p.bias_out = w.bias_pair, p.pair_dropout = drops(dropout, layer, kPairs);
      p.out = pairs_out + layer * pairs() * width();
      p.want_moments = 1, p.mean = mean + at_norm(layer, kOfPairs), p.deviations = deviations + at_norm(layer, kOfPairs);
    }
    return p;
  }

  NodeUpdate<T> update(long layer) const {
    const LayerTensors<T>& w = weights[layer];
    NodeUpdate<T> p{};
    p.rows = nodes, p.heads = heads, p.channels = channels, p.threads = threads;
    p.dropout = drops(dropout, layer, kNodes);
    p.node_sum = node_sum + at_nodes(layer), p.pair_sum = pair_sum + at_nodes(layer), p.pair_value = w.pair_value;
    p.x = layer ? nodes_out + at_nodes(layer - 1) : x;
    p.theta = w.theta, p.log_degree = log_degree, p.weight = w.weight_node, p.bias = w.bias_node;
    p.out = updated + at_nodes(layer);
    p.want_moments = 1, p.mean = mean + at_norm(layer, kOfNodes), p.deviations = deviations + at_norm(layer, kOfNodes);
    return p;
  }

  FeedForward<T> feed(long layer) const {
    const LayerTensors<T>& w = weights[layer];
    FeedForward<T> p{};
    p.rows = nodes, p.width = width(), p.hidden = hidden, p.threads = threads;
    p.dropout = drops(dropout, layer, kFeedForward);
    p.in = updated + at_nodes(layer), p.scale = scale + at_norm(layer, kOfNodes), p.shift = shift + at_norm(layer, kOfNodes);
    p.weight_in = w.weight_in, p.bias_in = w.bias_in, p.weight_out = w.weight_out, p.bias_out = w.bias_out;
    p.out = fed + at_nodes(layer), p.want_moments = 1;
    p.mean = mean + at_norm(layer, kOfFeedForward), p.deviations = deviations + at_norm(layer, kOfFeedForward);
    return p;
  }

  T inverse_root(long at, long count) const { return T(1) / std::sqrt(deviations[at] / T(count) + T(eps)); }

  // From the moments of rows to the scale and shift of their normalisation; the running statistics follow.
  void normalise(long layer, long norm) const {
    const long count = rows(norm), first = at_norm(layer, norm);
    const auto& w = weights[layer].norms[norm];
    T *const *follow = running + (layer * kNorms + norm) * 2, *of_mean = follow[0], *of_variance = follow[1];
    for (long c = 0; c < width(); ++c) {
      const long at = first + c;
      scale[at] = w.weight[c] * inverse_root(at, count);
      shift[at] = w.bias[c] - mean[at] * scale[at];
      of_mean[c] += T(momentum) * (mean[at] - of_mean[c]);
      of_variance[c] += T(momentum) * (deviations[at] / T(count) * (T(count) / T(count - 1)) - of_variance[c]);
    }
  }

  // Back from the gradients of scale and shift, which are overwritten by those of the mean and the deviations.
  void normalise_back(long layer, long norm, T* of_scale, T* of_shift) const {
    const long count = rows(norm), first = at_norm(layer, norm);
    const auto& grad = grads[layer].norms[norm];
    for (long c = 0; c < width(); ++c) {
      const long at = first + c;
      const T root = inverse_root(at, count), of_product = (of_scale[c] - of_shift[c] * mean[at]) * root;
      grad.weight[c] = of_product;
      grad.bias[c] = of_shift[c];
      of_scale[c] = -of_shift[c] * scale[at];
      of_shift[c] = of_product * scale[at] * root * T(-0.5) / T(count);
    }
  }
};

template <class T>
void layers_forward(const Layers<T>& s) {
  const long d = s.width();
  for (long layer = 0; layer < s.layers; ++layer) {
    forward(s.attention(layer));
    if (layer + 1 < s.layers) s.normalise(layer, kOfPairs);
    update_nodes(s.update(layer));
    s.normalise(layer, kOfNodes);
    feed_forward(s.feed(layer));
    s.normalise(layer, kOfFeedForward);
    const T *scale = s.scale + s.at_norm(layer, kOfFeedForward), *shift = s.shift + s.at_norm(layer, kOfFeedForward);
    for (long i = 0; i < s.nodes; ++i) {
      const T* from = s.fed + s.at_nodes(layer) + i * d;
      T* to = s.nodes_out + s.at_nodes(layer) + i * d;
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) to[c] = from[c] * scale[c] + shift[c];
    }
  }
}

template <class T>
void layers_backward(const Layers<T>& s) {
  const long d = s.width(), size = s.nodes * d;
  T *of_rows = s.room, *of_updated = of_rows + size, *of_node_sum = of_updated + size, *of_pair_sum = of_node_sum + size;
  T* of_x = s.grad_x;  // of what a layer gives; in the end, of what the first layer was given
  std::copy(s.grad, s.grad + size, of_x);
  std::vector<T> memory(6 * d);  // gradients of scale and shift of each normalisation; of pairs, as the layer after gave them
  T *of_scale[kNorms], *of_shift[kNorms];
  for (long norm = 0; norm < kNorms; ++norm) of_scale[norm] = memory.data() + 2 * norm * d, of_shift[norm] = of_scale[norm] + d;
  std::vector<double> sums(2 * d);
  for (long layer = s.layers - 1; layer >= 0; --layer) {
    const LayerTensors<T>& grads = s.grads[layer];
    std::fill(sums.begin(), sums.end(), 0.0);
    double *sum_scale = sums.data(), *sum_shift = sum_scale + d;
    const T* scale = s.scale + s.at_norm(layer, kOfFeedForward);
    for (long i = 0; i < s.nodes; ++i) {
      const T *given = of_x + i * d, *row = s.fed + s.at_nodes(layer) + i * d;
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) {
        of_rows[i * d + c] = given[c] * scale[c];
        sum_scale[c] += double(given[c]) * double(row[c]);
        sum_shift[c] += double(given[c]);
      }
    }
    for (long c = 0; c < d; ++c) of_scale[kOfFeedForward][c] = T(sum_scale[c]), of_shift[kOfFeedForward][c] = T(sum_shift[c]);
    s.normalise_back(layer, kOfFeedForward, of_scale[kOfFeedForward], of_shift[kOfFeedForward]);

    FeedForward<T> feed = s.feed(layer);
    feed.grad_out = of_rows, feed.grad_mean = of_scale[kOfFeedForward], feed.grad_deviations = of_shift[kOfFeedForward];
    feed.grad_in = of_updated, feed.grad_scale = of_scale[kOfNodes], feed.grad_shift = of_shift[kOfNodes];
    feed.grad_weight_in = grads.weight_in, feed.grad_bias_in = grads.bias_in;
    feed.grad_weight_out = grads.weight_out, feed.grad_bias_out = grads.bias_out;
    feed_forward_backward(feed);
    s.normalise_back(layer, kOfNodes, of_scale[kOfNodes], of_shift[kOfNodes]);

    NodeUpdate<T> update = s.update(layer);
    update.grad_out = of_updated, update.grad_mean = of_scale[kOfNodes], update.grad_deviations = of_shift[kOfNodes];
    update.grad_node_sum = of_node_sum, update.grad_pair_sum = of_pair_sum, update.grad_x = of_rows;
    update.grad_pair_value = grads.pair_value, update.grad_theta = grads.theta;
    update.grad_weight = grads.weight_node, update.grad_bias = grads.bias_node;
    update_nodes_backward(update);

    PairProblem<T> attention = s.attention(layer);
    attention.grad_node_sum = of_node_sum, attention.grad_pair_sum = of_pair_sum;
    if (layer + 1 < s.layers) {
      s.normalise_back(layer, kOfPairs, of_scale[kOfPairs], of_shift[kOfPairs]);
      attention.grad_mean = of_scale[kOfPairs], attention.grad_deviations = of_shift[kOfPairs];
      attention.grad_out = s.grad_pair;  // overwritten: every tile is read before it is written
      attention.grad_weight_out = grads.weight_pair, attention.grad_bias_out = grads.bias_pair;
    }
    attention.grad_x = of_x, attention.grad_pair = s.grad_pair;
    attention.grad_scale = of_scale[kOfPairs], attention.grad_shift = of_shift[kOfPairs];
    attention.grad_weight_query = grads.weight_query, attention.grad_bias_query = grads.bias_query;
    attention.grad_weight_key = grads.weight_key, attention.grad_weight_value = grads.weight_value;
    attention.grad_weight_scale = grads.weight_scale, attention.grad_bias_scale = grads.bias_scale;
    attention.grad_weight_shift = grads.weight_shift, attention.grad_bias_shift = grads.bias_shift;
    attention.grad_score = grads.score;
    backward(attention);
    GRIT_INDEPENDENT
    for (long at = 0; at < size; ++at) of_x[at] += of_rows[at];
  }
}

}  // namespace grit
