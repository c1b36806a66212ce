"""Lowering of graphs to source code of a Python framework, for compilers that do not read ONNX."""
