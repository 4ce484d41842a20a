"""The model: attention, layer, stem, heads, and GRIT itself. Every module takes explicit arguments and stands alone."""
