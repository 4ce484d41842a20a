"""The operations over node pairs that attention is made of.

`grit.kernels.plain` has them in plain PyTorch: the definition, on any device and in any floating-point type.
"""
