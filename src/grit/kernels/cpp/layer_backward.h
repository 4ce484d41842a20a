// The fused unit, backward. ∂y is the gradient of what `layer_forward.h` calls y; what it does not keep is computed again.
//
// A normalisation y = scale ⊙ r + shift of rows r, with scale = w / deviation, shift = b - mean ⊙ scale (`rows.h`):
//   ∂scale = Σ ∂y ⊙ r,  ∂shift = Σ ∂y,  ∂w = (∂scale - mean ⊙ ∂shift) / deviation,  ∂b = ∂shift
//   ∂r = scale ⊙ ∂y - scale ⊙ ∂shift / R - (r - mean) ⊙ ∂w ⊙ scale / (R deviation)      the last two with the batch's moments
// The feed-forward network and the node update (`node_backward.h`):
//   ∂σ = W_2^T ∂fed,  ∂h = ∂fed + W_1^T (σ' ⊙ ∂σ),  ∂x = ∂updated + ...,  ∂a = (θ1 + ln(1 + d) θ2) ⊙ W_O^T ∂updated
//   ∂node_sum = ∂a,  ∂pair_sum = W_Ev^T ∂a
// The attention and the pair update (`pair_backward.h`):
//   g_ij = <∂node_sum_i, v_j> + <∂pair_sum_i, ê_ij> per head (times the dropout mask)
//   ∂logit_ij = α_ij (g_ij - Σ_k α_ik g_ik), 0 beyond the clamp; the sum is <∂node_sum_i, node_sum_i> + <∂pair_sum_i,
//   pair_sum_i>, so that one pass over a row is enough ∂ê_ij = W_Eo^T ∂pair'_ij + α_ij ∂pair_sum_i + ∂logit_ij W_A,  ∂b_ij =
//   ∂ê_ij where ê_ij > 0 ∂z_ij = ∂b_ij / (2 sqrt|z_ij|), 0 where z_ij = (q_i + k_j) ⊙ u_ij = 0;  ∂u_ij = (q_i + k_j) ⊙ ∂z_ij,
//   ∂q_i + ∂k_j += u_ij ⊙ ∂z_ij ∂v_j = Σ_i α_ij ∂node_sum_i,  ∂e_ij = ∂pair'_ij + W_Ew^T ∂u_ij + W_Eb^T ∂b_ij
#pragma once

#include "layer_forward.h"
#include "node_backward.h"
#include "pair_backward.h"

namespace grit {

// From ∂y of rows r, (R, D), to scale ⊙ ∂y in `to`, which may be `given`, and ∂scale and ∂shift, summed per chunk and in order.
template <class T>
void apply_norm_back(const Layer<T>& layer, Norm norm, const T* given, const T* rows, long count, T* to, T* grad_scale,
                     T* grad_shift) {
  const long d = layer.sizes.width, chunks = node_chunks(count);
  const T* scale = layer.scale(norm);
  std::vector<T> sums(chunks * 2 * d, T(0));
#pragma omp parallel for num_threads(layer.threads) schedule(static)
  for (long chunk = 0; chunk < chunks; ++chunk) {
    T *of_scale = sums.data() + chunk * 2 * d, *of_shift = of_scale + d;
    for (long r = count * chunk / chunks; r < count * (chunk + 1) / chunks; ++r) {
      GRIT_INDEPENDENT
      for (long c = 0; c < d; ++c) {
        const T grad = given[r * d + c];
        of_scale[c] += grad * rows[r * d + c];
        of_shift[c] += grad;
        to[r * d + c] = grad * scale[c];
      }
    }
  }
  add_chunks(sums.data(), chunks, 2 * d);
  std::copy(sums.data(), sums.data() + d, grad_scale);
  std::copy(sums.data() + d, sums.data() + 2 * d, grad_shift);
}

template <class T>
void stack_backward(const Stack<T>& s) {
  const long d = s.width(), size = s.nodes * d;
  T *grad_rows = s.room, *grad_updated = grad_rows + size, *grad_node_sum = grad_updated + size,
    *grad_pair_sum = grad_node_sum + size;
  std::vector<T> sums(4 * d);
  T *grad_scale = sums.data(), *grad_shift = grad_scale + d;     // of the norms of nodes
  T *pair_scale = grad_shift + d, *pair_shift = pair_scale + d;  // of the norm of the pairs that the layer writes
  for (long number = s.layers - 1; number >= 0; --number) {
    const Layer<T> layer(s, number);
    const bool last = number + 1 == s.layers;
    apply_norm_back(layer, kFfnNorm, last ? s.grad_x_out : s.grad_x, layer.fed, s.nodes, grad_rows, grad_scale, grad_shift);
    const RowGradient<T> of_fed{grad_rows, layer.fed, normalise_back(layer, kFfnNorm, s.nodes, grad_scale, grad_shift), d};
    ffn_backward(layer, of_fed, grad_updated, grad_scale, grad_shift);
    const RowGradient<T> of_updated{grad_updated, layer.updated,
                                    normalise_back(layer, kNodeNorm, s.nodes, grad_scale, grad_shift), d};
    node_update_backward(layer, of_updated, grad_node_sum, grad_pair_sum, grad_rows);

    PairGradients<T> pair{grad_node_sum, grad_pair_sum, {nullptr, layer.pair_out, {}, d}, s.grad_x, s.grad_pair,
                          pair_scale,    pair_shift};
    if (layer.pair_out) {
      if (last)
        apply_norm_back(layer, kPairNorm, s.grad_pair_out, layer.pair_out, layer.pairs, s.grad_pair, pair_scale, pair_shift);
      pair.out.given = s.grad_pair;
      pair.out.more = normalise_back(layer, kPairNorm, layer.pairs, pair_scale, pair_shift);
    }
    pair_backward(layer, pair);
    GRIT_INDEPENDENT
    for (long at = 0; at < size; ++at) s.grad_x[at] += grad_rows[at];  // what came by way of the residual
  }
}

}  // namespace grit
