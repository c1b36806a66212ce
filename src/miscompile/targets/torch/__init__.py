"""PyTorch as a DL library: programs of one operator, run eagerly, against which compilers of such programs are held."""
