"""A small optimising compiler of our own, with faults that can be switched on; it is the target for tests of this
tool."""
