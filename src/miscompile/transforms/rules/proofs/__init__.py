"""Proofs of rewrite rules: symbolic elements, normal forms, an SMT solver, and exhaustive evaluation of small floats."""
