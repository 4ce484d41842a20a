"""Recipes: the configuration tree, the published recipes, and what is built from them."""
