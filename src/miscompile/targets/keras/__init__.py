"""Keras as a DL library: programs of one layer or operation, run eagerly, whose results are the reference for
compilers."""
