"""GRIT as a predictor for tables of molecules, beside what chemists use today."""
