"""From the rows of a source to a store: tables, downloads, featurising in parallel, splits, writing."""
