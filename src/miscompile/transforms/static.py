"""The transform `static`: every symbolic size is replaced by its fed size, and the program is built for these alone.

A program that is compiled once for all sizes must give the same results at each of them.
"""

from miscompile.core.case import Feed, Port, Program
from miscompile.graph.emit import emit
from miscompile.graph.read import read
from miscompile.graph.specialise import bindings, is_symbolic, specialised


def specialise(program: Program, feed: Feed) -> Program:
    """Return `program` with the sizes of `feed`; itself if no size of its inputs is symbolic.

    Outputs keep their flags; their sizes follow as far as their symbols are bound by inputs. Raises ModelError when
    `feed` contradicts the program's signature, or the program cannot be read.
    """
    if not is_symbolic(program.inputs):
        return program
    shapes = {port.name: value.shape for port, value in zip(program.inputs, feed, strict=True)}
    bound = bindings([(port.name, port.shape) for port in program.inputs], shapes)
    payload = emit(specialised(read(program.payload), shapes))
    inputs = tuple(port._replace(shape=shapes[port.name]) for port in program.inputs)
    return Program(program.kind, payload, inputs, tuple(_bound(port, bound) for port in program.outputs))


def _bound(port: Port, bound: dict[str, int]) -> Port:
    if port.shape is None:
        return port
    return port._replace(shape=tuple(bound.get(size, size) if isinstance(size, str) else size for size in port.shape))
