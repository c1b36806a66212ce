"""tinygrad, CPU device: its own rewriting and kernel generation, with clang as the assembler."""
