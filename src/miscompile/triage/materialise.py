"""A transformed program, as a case of its own.

A compiler that gets a transformed program wrong mostly does so because of what that program contains, and then
one program says all that there is to say: it is smaller to report than two that mean the same, and it reduces better.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.specs import Spec
from miscompile.core.case import Case, Feed, Program
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.transforms.catalogue import SEEDLESS, is_own, present


def materialised(case: Case, transform: Spec | None, reprogram: Callable[[Model, Feed], Program]) -> Iterator[Case]:
    """Yield the cases that consist of what `transform` makes of `case`; none where there is no such ONNX model.

    `reprogram` makes a program of a model and says which of its outputs are exact; it raises RejectedDraft or
    ModelError for one that it does not take.
    """
    if transform is None or transform in SEEDLESS or is_own(transform):
        return
    for share in present(case, transform):
        if share.case.program == case.program:
            continue
        try:
            program = reprogram(read(share.case.program.payload), share.case.feeds[0])
        except (RejectedDraft, ModelError):
            continue
        yield replace(share.case, program=program, recipe=case.recipe)
