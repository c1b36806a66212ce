"""XLA for the CPU, fed through JAX."""
