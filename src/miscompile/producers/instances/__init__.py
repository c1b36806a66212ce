"""Operator instances as programs and as seeds of generated graphs."""
