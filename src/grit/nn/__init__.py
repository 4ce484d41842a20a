"""What models are built from: attention, layer, stem, heads, norms. Every module takes explicit arguments and stands alone."""
