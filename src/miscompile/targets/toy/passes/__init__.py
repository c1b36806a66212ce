"""What the toy does to a program: one module for each family of rewrites, and the pipeline."""
