// The fused unit, forward: L layers of GRIT over packed pairs. i is a query node, j a key node.
//
//   e_ij = pair_scale ⊙ pair_ij + pair_shift           the normalisation of the layer before, applied on reading
//   q, k, v = W_Q x + b, W_K x, W_V x
//   u_ij, b_ij = W_Ew e_ij + b, W_Eb e_ij + b
//   ê_ij = relu(signed_sqrt((q_i + k_j) ⊙ u_ij) + b_ij)
//   logit_ij = clamp(<ê_ij, W_A>) per head,   α_ij = exp(logit_ij - logsumexp_i)        dropout on α
//   node_sum_i = Σ_j α_ij v_j,   pair_sum_i = Σ_j α_ij ê_ij                             `pair_forward.h`
//   pair'_ij = e_ij + W_Eo ê_ij + b                    dropout on ê; with the moments for its normalisation
//   a_i = node_sum_i + W_Ev pair_sum_i per head        dropout on a
//   updated_i = x_i + W_O (a_i ⊙ (θ1 + ln(1 + d_i) θ2)) + b                             `node_forward.h`
//   h_i = norm(updated_i)
//   fed_i = h_i + W_2 σ(W_1 h_i + b_1) + b_2           dropout on σ(...)
//   x'_i = norm(fed_i)
//
// Of the intermediate results the backward pass needs only those with names in `Stack`: per layer five node tensors and one
// pair tensor. Everything else it computes again.
#pragma once

#include "node_forward.h"
#include "pair_forward.h"

namespace grit {

// rows * scale + shift -> to, which may be `rows` itself.
template <class T>
void apply_norm(const Layer<T>& layer, Norm norm, const T* rows, long count, T* to) {
  const long d = layer.sizes.width;
  const T *scale = layer.scale(norm), *shift = layer.shift(norm);
#pragma omp parallel for num_threads(layer.threads) schedule(static) if (count > 4 * kTileRows)
  for (long r = 0; r < count; ++r) {
    GRIT_INDEPENDENT
    for (long c = 0; c < d; ++c) to[r * d + c] = rows[r * d + c] * scale[c] + shift[c];
  }
}

template <class T>
void stack_forward(const Stack<T>& s) {
  for (long number = 0; number < s.layers; ++number) {
    const Layer<T> layer(s, number);
    pair_forward(layer);
    node_update_forward(layer);
    ffn_forward(layer);
    apply_norm(layer, kFfnNorm, layer.fed, s.nodes, layer.x_out);
    if (number + 1 == s.layers && layer.pair_out) apply_norm(layer, kPairNorm, layer.pair_out, layer.pairs, s.pair_out);
  }
}

}  // namespace grit
