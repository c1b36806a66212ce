"""A program whose operands are all constants, and the same one with all of them fed.

The library cannot say how far the results of such a program move under noise, because nothing is fed. It runs the
program with fed operands instead, whose results are the same.
"""

from dataclasses import replace

from miscompile.core.case import Case
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held


def of_constants(instance: Instance) -> bool:
    """Tell whether the program of an instance has constants as its only operands."""
    tensors = all(value is None or isinstance(value, Held | Drawn) for value in instance.inputs)
    return instance.operands == "constant" and tensors and not instance.options


def fed(case: Case) -> Case:
    """Return the case of a program that feeds nothing, with its initialisers as inputs.

    Raises ModelError for a program that cannot be read.
    """
    model = read(case.program.payload)
    given = model.graph.initializers
    infos = tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in given.items())
    melted = Model(replace(model.graph, inputs=infos, initializers={}), model.opsets)
    return replace(case, program=to_program(melted), feeds=(tuple(given.values()),))


def fixed(case: Case) -> Case:
    """Return the case with the first feed as its initialisers, which undoes `fed`.

    Raises ModelError for a program that cannot be read.
    """
    model = read(case.program.payload)
    names = [info.name for info in model.graph.inputs]
    given = dict(zip(names, case.feeds[0], strict=True))
    frozen = Model(replace(model.graph, inputs=(), initializers=given), model.opsets)
    return replace(case, program=to_program(frozen), feeds=((),))
