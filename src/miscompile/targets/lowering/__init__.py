"""From graphs to source code of a Python framework, for compilers that take no ONNX."""
