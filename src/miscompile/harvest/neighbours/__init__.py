"""Instances one or two steps away from those of library tests, chosen by pairwise coverage of what the tests lack.

call.py          an instance as named parameters, a change to some of them, and the steps' view of an operator
presence.py, attributes.py, element_types.py, shapes.py, draws.py, operands.py    the steps
classes.py       the classes of an instance's parameters, whose pairs are to be covered
coverage.py      pairs that are covered, refused, or never tried
walk.py          which neighbours are tried, and kept
onnx.py, run.py  the operators of ONNX, and the processes that do the work
"""
