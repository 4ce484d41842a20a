"""Training: the loop, run folders and checkpoints, predictors, fitting tables, comparing runs."""
