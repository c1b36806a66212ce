"""tinygrad, CPU device: rewriting and kernel generation by tinygrad, compilation of kernels by clang."""
