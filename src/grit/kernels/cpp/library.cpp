// What Python calls, with plain C names and no dependence on torch's headers: tensors arrive as pointers.
#include "floor.h"
#include "layer_backward.h"
#include "rrwp.h"

extern "C" {

int64_t grit_abi() { return 2; }
int64_t grit_vector_bytes() { return grit::kVectorBytes; }

// Sizes of the structs that Python mirrors.
int64_t grit_sizeof_stack() { return sizeof(grit::Stack<float>); }
int64_t grit_sizeof_walk() { return sizeof(grit::WalkProblem<float>); }
int64_t grit_sizeof_floor() { return sizeof(grit::FloorProblem); }

void grit_stack_forward_float(const grit::Stack<float>* p) { grit::stack_forward(*p); }
void grit_stack_forward_double(const grit::Stack<double>* p) { grit::stack_forward(*p); }
void grit_stack_backward_float(const grit::Stack<float>* p) { grit::stack_backward(*p); }
void grit_stack_backward_double(const grit::Stack<double>* p) { grit::stack_backward(*p); }
void grit_walk_float(const grit::WalkProblem<float>* p) { grit::walk(*p); }
void grit_walk_double(const grit::WalkProblem<double>* p) { grit::walk(*p); }
void grit_floor_float(const grit::FloorProblem* p) { grit::run_floor<float>(*p); }
}
