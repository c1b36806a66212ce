"""Apache TVM: Relax, its ONNX importer and its virtual machine, on the CPU through LLVM."""
