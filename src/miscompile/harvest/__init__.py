"""What library tests and documentation know: patterns of optimisations and instances of operators."""
