"""All systems on one data set under one budget."""
