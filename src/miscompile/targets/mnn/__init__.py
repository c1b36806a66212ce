"""MNN as a target: Alibaba's inference engine, whose converter reads ONNX."""
