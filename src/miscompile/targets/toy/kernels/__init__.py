"""The toy's kernels: one module for each family, each with a table from operator to kernel."""
