"""PyTorch Inductor on CPU, fed with programs of torch operators made from ONNX models."""
