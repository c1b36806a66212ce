"""Transformed programs as cases of their own.

When a compiler miscompiles a transformed program, the transformed program alone mostly shows the bug. A finding with
one program is smaller than one with two equivalent programs, and it reduces better.
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
    """Yield the cases with the results of `transform` on `case`; none where these are no ONNX models.

    `reprogram` makes a program of a model and marks its exact outputs; it raises RejectedDraft or ModelError for a
    model that it does not accept.
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
