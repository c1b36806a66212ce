"""PyTorch as a DL library: programs of one operator, run eagerly, whose results are the reference for compilers of
such programs."""
