"""tract as a target: a runtime in Rust that reads ONNX, with one build level."""
