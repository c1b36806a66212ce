"""Definitions of operators that onnx's reference evaluator mistakes, written from the operators' pages."""
