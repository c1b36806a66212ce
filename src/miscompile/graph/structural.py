"""Structural constants: those whose elements determine shapes or structure instead of being data.

`ops/operand_roles.py` says which operands they are.
"""

STRUCTURAL_SIZE = 64
"""The most elements of a constant that may be a shape, axes and the like; larger ones never determine a shape."""
