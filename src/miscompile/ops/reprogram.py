"""Models as programs, with the outputs that every correct implementation must give to the bit."""

from dataclasses import replace

from miscompile.core.case import Feed, Port, Program
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.ops.analysis import analyse, require_well_formed
from miscompile.ops.spec import Operand


def reprogram(model: Model, feed: Feed) -> Program:
    """Return `model` as a program whose exact outputs are worked out anew from `feed`.

    Where sizes are symbolic, the model is analysed at the feed's sizes and keeps its symbols. Raises RejectedDraft when
    an edit has made a node that breaks its operator's rules.
    """
    program = to_program(model)
    names = [port.name for port in program.inputs]
    shapes = {name: value.shape for name, value in zip(names, feed, strict=True)}
    symbolic = is_symbolic(program.inputs)
    concrete = folded(specialised(model, shapes)) if symbolic else model
    operands = analyse(concrete, dict(zip(names, feed, strict=True)))
    require_well_formed(concrete, operands)
    outputs = [
        port._replace(exact=port.name in operands and operands[port.name].facts.exact) for port in program.outputs
    ]
    if not symbolic:
        outputs = [_sized(port, operands.get(port.name)) for port in outputs]
    return replace(program, outputs=tuple(outputs))


def _sized(port: Port, known: Operand | None) -> Port:
    """Fill in the sizes that follow from what is fed, which inference on the graph alone does not see."""
    return port if known is None or known.dtype != port.dtype else port._replace(shape=known.shape)
