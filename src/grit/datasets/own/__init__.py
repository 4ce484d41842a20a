"""Data of your own: tables and lists of SMILES, graphs of PyG and NetworkX."""
