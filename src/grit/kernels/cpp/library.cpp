// What Python calls, with plain C names and no dependence on torch's headers: tensors arrive as pointers.
#include "floor.h"
#include "layers.h"
#include "rrwp.h"

extern "C" {

int64_t grit_abi() { return 1; }
int64_t grit_vector_bytes() { return grit::kVectorBytes; }

// Width of a row of `PairProblem::projected`.
int64_t grit_projected_width_float(int64_t heads, int64_t channels) { return 2 * grit::Sizes::of<float>(heads, channels).padded_width; }
int64_t grit_projected_width_double(int64_t heads, int64_t channels) { return 2 * grit::Sizes::of<double>(heads, channels).padded_width; }

void grit_pair_forward_float(const grit::PairProblem<float>* p) { grit::forward(*p); }
void grit_pair_forward_double(const grit::PairProblem<double>* p) { grit::forward(*p); }
void grit_pair_backward_float(const grit::PairProblem<float>* p) { grit::backward(*p); }
void grit_pair_backward_double(const grit::PairProblem<double>* p) { grit::backward(*p); }
void grit_update_nodes_float(const grit::NodeUpdate<float>* p) { grit::update_nodes(*p); }
void grit_update_nodes_double(const grit::NodeUpdate<double>* p) { grit::update_nodes(*p); }
void grit_update_nodes_backward_float(const grit::NodeUpdate<float>* p) { grit::update_nodes_backward(*p); }
void grit_update_nodes_backward_double(const grit::NodeUpdate<double>* p) { grit::update_nodes_backward(*p); }
void grit_feed_forward_float(const grit::FeedForward<float>* p) { grit::feed_forward(*p); }
void grit_feed_forward_double(const grit::FeedForward<double>* p) { grit::feed_forward(*p); }
void grit_feed_forward_backward_float(const grit::FeedForward<float>* p) { grit::feed_forward_backward(*p); }
void grit_feed_forward_backward_double(const grit::FeedForward<double>* p) { grit::feed_forward_backward(*p); }
void grit_layers_forward_float(const grit::Layers<float>* p) { grit::layers_forward(*p); }
void grit_layers_forward_double(const grit::Layers<double>* p) { grit::layers_forward(*p); }
void grit_layers_backward_float(const grit::Layers<float>* p) { grit::layers_backward(*p); }
void grit_layers_backward_double(const grit::Layers<double>* p) { grit::layers_backward(*p); }
void grit_floor_float(const grit::FloorProblem* p) { grit::run_floor<float>(*p); }
void grit_walk_float(const grit::WalkProblem<float>* p) { grit::walk(*p); }
void grit_walk_double(const grit::WalkProblem<double>* p) { grit::walk(*p); }
}
