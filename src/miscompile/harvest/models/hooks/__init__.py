"""Child processes that import a model library."""
