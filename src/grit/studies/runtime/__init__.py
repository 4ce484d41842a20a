"""Time and memory of training, and the tools that measure them."""
