"""Reduction of a model for which a predicate holds: any function of a model, such as "this importer crashes on it".

The search, its reductions and its order are those of findings. A model has no inputs to run on here, so each of its
inputs is fed a placeholder of zeros, which tells the reductions its size.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.case import Case, Dim, Program
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence, Holds, Verdict, Violated
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType, ValueType
from miscompile.graph.read import read
from miscompile.graph.specialise import specialised
from miscompile.graph.typing import value_types
from miscompile.triage.reduce.capture import Captured
from miscompile.triage.reduce.catalogue import standard
from miscompile.triage.reduce.cost import cost_of
from miscompile.triage.reduce.draft import Draft, tidy
from miscompile.triage.reduce.inputs import Frozen
from miscompile.triage.reduce.reduction import Cost, Reduction

ModelPredicate = Callable[[onnx.ModelProto], bool]
"""Tells of a model whether it has the property that a reduction shall keep."""

SIZE = 2
"""The size that a placeholder has for a symbolic or unknown one."""

_NAME = "predicate"
_HOLDS = tensor(np.asarray(True))


@dataclass(frozen=True, slots=True)
class PredicateRunner:
    """A runner that asks a predicate, in this process, and gives its answer as the only output of a run.

    Exceptions of the predicate are not caught.
    """

    predicate: ModelPredicate

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return an outcome with one bool for each run."""
        models = (onnx.load_model_from_string(run.case.program.payload) for run in runs)
        return [Values(((tensor(np.asarray(bool(self.predicate(model)))),),)) for model in models]


class PredicateHolds:
    """An oracle that a model violates when the predicate holds for it."""

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the one run that asks the predicate."""
        del rng
        return (Run(case, _NAME, Build("off"), "reduce"),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Return the verdict for the predicate's answer."""
        (run,), (outcome,) = runs, outcomes
        assert isinstance(outcome, Values)
        answer = outcome.results[0][0]
        if answer is not None and answer.same(_HOLDS):
            return Violated(Evidence("wrong", _NAME, "the predicate holds", run))
        return Holds()


@dataclass(frozen=True, slots=True)
class ModelDrafts:
    """The draft kind of models that are not run. With `valid`, only models that keep ONNX's rules are candidates."""

    valid: bool = True

    def take_apart(self, case: Case, evidence: Evidence) -> Draft:
        """Return the draft of a model. Raises ModelError when it cannot be read."""
        del evidence
        return with_placeholders(read(case.program.payload))

    def tidy(self, draft: Draft) -> Draft:
        """Return the draft without the parts that its outputs do not need."""
        return tidy(draft)

    def cost(self, draft: Draft) -> Cost:
        """Return the cost of a draft; see `cost_of`."""
        return cost_of(draft)

    def digest(self, draft: Draft) -> str:
        """Return the digest of the model and the placeholders."""
        return draft.digest

    def put_together(self, draft: Draft, recipe: Mapping[str, Any]) -> Case:
        """Return the case of a draft. Raises ModelError for a model that breaks ONNX's rules, if they count."""
        if self.valid:
            check(draft.model)
        return case_of(draft.model, recipe)

    def defined(self, draft: Draft) -> bool:
        """Return True: what a model computes is not asked."""
        del draft
        return True

    def reductions(self) -> Sequence[Reduction[Draft]]:
        """Return the standard reductions but the one that makes inputs constant, because their values are unknown."""
        return [StaticSizes(), *(one for one in standard(placeholders) if not isinstance(one, Frozen))]


@dataclass(frozen=True, slots=True)
class StaticSizes:
    """Replaces symbolic and unknown sizes by those of the placeholders, so that inner values have known sizes too."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the draft with the sizes of its placeholders, if these do not contradict the model."""
        (feed,) = draft.feeds
        with suppress(ModelError):
            yield replace(draft, model=specialised(draft.model, {name: value.shape for name, value in feed.items()}))


def case_of(model: Model | bytes, recipe: Mapping[str, Any]) -> Case:
    """Return the case of a model that is not run, so that it needs no signature and no feeds."""
    return Case(Program("onnx", model if isinstance(model, bytes) else emit(model), (), ()), (), recipe)


def with_placeholders(model: Model) -> Draft:
    """Return the draft of a model whose inputs are fed zeros; equal symbols have equal sizes."""
    fed = [info for info in model.graph.inputs if info.name not in model.graph.initializers]
    feed = {info.name: value for info in fed if (value := _placeholder(info.type, static=False)) is not None}
    if len(feed) < len(fed):
        missing = next(info.name for info in fed if info.name not in feed)
        raise ModelError(f"'{missing}' is no tensor; only models with tensors as inputs can be reduced")
    return Draft(model, (feed,))


def placeholders(draft: Draft) -> Captured:
    """Return zeros for the inner values whose sizes are known, so that a cut can make them inputs."""
    try:
        types = value_types(draft.model, strict=False)
    except ModelError:
        types = {}
    made = [name for node in draft.graph.nodes for name in node.outputs if name]
    inner = {name: value for name in made if (value := _placeholder(types.get(name), static=True)) is not None}
    (feed,) = draft.feeds
    return ({**inner, **draft.graph.initializers, **feed},)


def _placeholder(kind: ValueType | None, *, static: bool) -> Tensor | None:
    if not isinstance(kind, TensorType) or kind.dtype not in DTYPES or (static and not kind.static):
        return None
    sizes: tuple[Dim, ...] = kind.shape or ()
    shape = [size if isinstance(size, int) else SIZE for size in sizes]
    if kind.dtype == "string":
        return Tensor(kind.dtype, np.full(shape, "", object))
    return Tensor(kind.dtype, np.zeros(shape, DTYPES[kind.dtype].storage))
