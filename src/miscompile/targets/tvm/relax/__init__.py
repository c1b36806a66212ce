"""Transforms of Relax modules inside the TVM adapter: moving bindings into functions, and splicing patterns."""
