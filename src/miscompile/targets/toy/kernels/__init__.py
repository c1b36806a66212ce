"""What the toy can compute: one module for each family, each with a table from operator to kernel."""
