// What Python calls, with plain C names and no dependence on torch's headers: tensors arrive as pointers.
#include "pair_attention_backward.h"
#include "rrwp.h"

extern "C" {

int64_t grit_abi() { return 1; }
int64_t grit_vector_bytes() { return grit::kVectorBytes; }

void grit_pair_forward_float(const grit::PairProblem<float>* p) { grit::forward(*p); }
void grit_pair_forward_double(const grit::PairProblem<double>* p) { grit::forward(*p); }
void grit_pair_backward_float(const grit::PairProblem<float>* p) { grit::backward(*p); }
void grit_pair_backward_double(const grit::PairProblem<double>* p) { grit::backward(*p); }
void grit_walk_float(const grit::WalkProblem<float>* p) { grit::walk(*p); }
void grit_walk_double(const grit::WalkProblem<double>* p) { grit::walk(*p); }
}
