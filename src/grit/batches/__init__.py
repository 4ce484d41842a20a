"""From graphs to what a model reads: `PairBatch`, and the `Loader` that gathers batches from a store."""
