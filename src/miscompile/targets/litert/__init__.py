"""LiteRT, formerly TensorFlow Lite: its optimised kernels and its XNNPACK delegate against its reference kernels."""
