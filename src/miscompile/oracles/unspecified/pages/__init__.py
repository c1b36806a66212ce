"""Conditions that the pages of ONNX's operators state: a node that breaks one is no test."""
