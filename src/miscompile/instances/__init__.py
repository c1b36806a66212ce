"""Operator instances: operators of DL libraries with the very parameters that somebody's test gave them."""
