"""The data sets of the table `DATASETS`, one file each."""
