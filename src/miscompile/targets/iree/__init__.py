"""IREE: the MLIR compiler and its runtime, CPU back end (llvm-cpu)."""
