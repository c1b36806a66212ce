"""The conversion of models to half precision in onnxconverter-common."""
