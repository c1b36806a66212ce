"""The generator of HIRFUZZ as the paper describes it: its 58 operators expressed in ONNX, and its insertion modes."""
