"""Molecules: reading SMILES, their features, and their scaffolds."""
