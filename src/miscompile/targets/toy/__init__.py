"""A small optimising compiler of our own, with faults that can be switched on: the target that tests the tool."""
