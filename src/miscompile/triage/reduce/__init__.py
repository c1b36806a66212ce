"""Reduction of cases: one engine that owns the predicate, and small classes that propose edits."""
