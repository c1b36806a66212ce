"""Lowerings from ONNX operators to jax.numpy and jax.lax, read as text."""
