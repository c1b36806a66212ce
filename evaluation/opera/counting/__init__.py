"""Counting of the operators in the compilers' own tests (Num_DLC in OPERA)."""
