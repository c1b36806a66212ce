"""Proofs of rewrite rules: symbolic elements, normal forms, an SMT solver, and evaluation of short floats."""
