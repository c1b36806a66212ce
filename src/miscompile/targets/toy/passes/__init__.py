"""The toy's optimiser: one module for each family of rewrites, and the pipeline."""
