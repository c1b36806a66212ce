"""Disruptive generation: single-operator programs that break one constraint on purpose and must be rejected."""
