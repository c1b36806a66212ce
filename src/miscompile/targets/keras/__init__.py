"""Keras as a DL library: programs of one layer or operation, run eagerly, against which compilers of such are held."""
