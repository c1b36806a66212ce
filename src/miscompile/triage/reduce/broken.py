"""The node of a draft that is invalid on purpose: found, cut out of the graph, and judged again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.edges import reads
from miscompile.graph.emit import emit
from miscompile.graph.model import Node, TensorType, ValueInfo, ValueType
from miscompile.graph.prune import prune
from miscompile.graph.typing import value_types
from miscompile.ops.registry import schema
from miscompile.producers.disruptive.checker import ResultTypes
from miscompile.producers.disruptive.draft import DraftOperand, InvalidDraft
from miscompile.producers.disruptive.proof import Proof, Prover, keeps_page
from miscompile.producers.disruptive.violation import (
    Standing,
    Violation,
    described,
    page_of,
    refusal,
    standing,
)
from miscompile.triage.reduce.capture import Capture, Captured
from miscompile.triage.reduce.defined import Guard
from miscompile.triage.reduce.draft import Draft, needed

_LARGE = 64
"""Largest float operand, in elements, whose values the rules of an operator's page are given."""


@dataclass(frozen=True, slots=True)
class BrokenNode:
    """The node that breaks the rule, as a call of its own, with the judges' answers and the proof for the program."""

    call: InvalidDraft
    standing: Standing
    proof: Proof
    detail: str


@dataclass(slots=True)
class Examiner:
    """Judges drafts by the broken rule that the recipe records.

    It is a capture as well: of the values before the broken node, because no build need give values for that node and
    those after it. onnx's inference never sees the broken node in this process, because it is C++ code that some
    invalid models crash.
    """

    prover: Prover
    infer: Callable[[bytes], ResultTypes]
    inner: Capture
    violation: Violation
    _last: tuple[str, Node, list[InvalidDraft]] | None = field(default=None, init=False)

    def examine(self, draft: Draft, *, repair: bool = True) -> BrokenNode:
        """Return the broken node of `draft`; with `repair` False no repair of it is searched for.

        Raises ModelError when no node breaks the rule, when the rest of the graph is invalid or not well defined, or
        when the values before the node are not known.
        """
        node, calls = self._locate(draft)
        self._require_rest(draft, node)
        found, *others = [standing(self.prover, call, self.violation, repair=repair) for call in calls]
        if any(other != found for other in others):
            raise ModelError("the feeds break different rules")
        return BrokenNode(calls[0], found, self._proof(draft, calls[0]), described(calls[0], self.violation))

    def __call__(self, draft: Draft) -> Captured:
        """Return the known values of `draft`, for each feed."""
        try:
            node, _ = self._locate(draft)
        except ModelError:
            return tuple({**draft.graph.initializers, **feed} for feed in draft.feeds)
        return self._before(draft, node)

    def types(self, draft: Draft) -> Mapping[str, ValueType]:
        """Return the types of the values, those of the broken node's results as far as they are declared or likely.

        Raises ModelError when no node breaks the rule, or the rest of the graph is invalid.
        """
        node, calls = self._locate(draft)
        rest = _without(draft, node, calls[0].outputs)
        leaves = {name: TensorType(value.dtype, value.shape) for name, value in draft.graph.initializers.items()}
        return {**leaves, **value_types(rest.model)}

    def retyped(self, draft: Draft) -> Draft:
        """Return the draft with newly inferred output types.

        The outputs' sizes are symbolic, because the broken node's results have no sizes.
        A wrongly declared output keeps its declaration, because that is the broken rule. Raises ModelError as `types`.
        """
        if self.violation.kind == "declared":
            return draft
        node, calls = self._locate(draft)
        hiding, plain = (emit(calls[0].model(how, bare=True)) for how in ("sizes", "plain"))
        found = {**self.infer(hiding), **self.infer(plain)}  # a rule on sizes alone leaves the rank to be inferred
        results = {name: found[f"y{place}"] for place, name in enumerate(node.outputs) if f"y{place}" in found}
        own = {name: TensorType(dtype, (None,) * rank) for name, (dtype, rank) in results.items()}
        types = {**self.types(draft), **own}
        return draft.with_graph(outputs=tuple(_unsized(info, types) for info in draft.graph.outputs))

    def _locate(self, draft: Draft) -> tuple[Node, list[InvalidDraft]]:
        """Return the first node that breaks the rule, and its calls on the feeds. Raises ModelError for none."""
        digest = draft.digest
        if self._last is not None and self._last[0] == digest:
            return self._last[1:]
        why = ModelError(f"no {self.violation.op} breaks the rule on every feed: {self.violation.detail}")
        for node in draft.graph.nodes:
            if node.op != self.violation.op or any(True for _ in node.subgraphs()):
                continue
            try:
                calls = list(self._calls(draft, node))
                if all(standing(self.prover, call, self.violation, repair=False).invalid for call in calls):
                    self._last = digest, node, calls
                    return node, calls
            except ModelError as error:
                why = error
        raise why

    def _before(self, draft: Draft, node: Node) -> Captured:
        return self.inner(upstream(draft, node) or draft.with_nodes(()))

    def _calls(self, draft: Draft, node: Node) -> Iterator[InvalidDraft]:
        """Yield the call of `node` on each feed."""
        before = {name for other in draft.graph.nodes for name in other.outputs}
        captured = self._before(draft, node) if before.intersection(reads(node)) else ()
        for place, feed in enumerate(draft.feeds or ({},)):
            known = {**(captured[place] if captured else {}), **draft.graph.initializers, **feed}
            missing = [name for name in node.inputs if name and name not in known]
            if missing:
                raise ModelError(f"the value of {missing[0]} is not known")
            parts = tuple(_operand(known[name], name, draft) if name else None for name in node.inputs)
            outputs = tuple(_declared(draft, node, number, parts) for number in range(len(node.outputs)))
            yield InvalidDraft(node.op, draft.model.opset, parts, node.attributes, outputs, node.domain)

    def _proof(self, draft: Draft, call: InvalidDraft) -> Proof:
        """Return why the program is invalid; the checker comes first, because people can repeat its error."""
        said = self.prover.check(emit(draft.model))
        if said:
            return Proof("checker", said)
        said = refusal(self.prover, call, self.violation)
        if said:
            return Proof("runtime", said)
        early = not hidden(draft) and (
            not call.fed() or not keeps_page(call, page_of(call, self.violation), before_run=True)
        )
        return Proof("rule" if early else "runtime", f"the page of {call.op} forbids it")

    def _require_rest(self, draft: Draft, node: Node) -> None:
        """Check all nodes besides the broken one. Raises ModelError when they are invalid, or not well defined."""
        rest = _without(draft, node, self._locate(draft)[1][0].outputs)
        if rest.graph.outputs:
            check(rest.model)
        first = upstream(draft, node)
        if first is not None and not Guard(self.inner)(first):
            raise ModelError("a node before the broken one is not well defined")


def _without(draft: Draft, node: Node, kinds: Sequence[TensorType]) -> Draft:
    """Return the graph without `node`, whose results are inputs of these types; the ends of the rest are outputs."""
    rest = tuple(other for other in draft.graph.nodes if other is not node)
    inputs = tuple(ValueInfo(name, kind) for name, kind in zip(node.outputs, kinds, strict=True) if name)
    made = {name for other in rest for name in other.outputs if name}
    ends = dict.fromkeys([*(info.name for info in draft.graph.outputs), *reads(node)])
    outputs = tuple(ValueInfo(name, None) for name in ends if name in made)
    whole = draft.with_graph(nodes=rest, inputs=(*draft.graph.inputs, *inputs), outputs=outputs, types={})
    model = prune(whole.model)
    types = value_types(model)
    typed = tuple(ValueInfo(info.name, types.get(info.name)) for info in outputs)
    return replace(whole, model=replace(model, graph=replace(model.graph, outputs=typed)))


def upstream(draft: Draft, node: Node) -> Draft | None:
    """Return the nodes before `node` that its operands need; None where there are none."""
    made = {name for other in draft.graph.nodes for name in other.outputs}
    wanted = [name for name in dict.fromkeys(reads(node)) if name in made]
    return needed(draft.with_graph(outputs=tuple(ValueInfo(name, None) for name in wanted))) if wanted else None


def hidden(draft: Draft) -> dict[str, bool]:
    """Return the fed inputs whose sizes are not declared; True where the rank is not declared either."""
    return {
        info.name: isinstance(info.type, TensorType) and info.type.shape is None
        for info in draft.fed()
        if not _is_shown(info)
    }


def hidden_again(draft: Draft, names: Mapping[str, bool]) -> Draft:
    """Return the draft with the sizes of the inputs `names` hidden, and their ranks where the value is True."""

    def hide(info: ValueInfo) -> ValueInfo:
        if info.name not in names or not isinstance(info.type, TensorType):
            return info
        shape = info.type.shape
        open_shape = None if names[info.name] or shape is None else tuple(None for _ in shape)
        return replace(info, type=TensorType(info.type.dtype, open_shape))

    return draft.with_graph(inputs=tuple(map(hide, draft.graph.inputs)))


def _is_shown(info: ValueInfo) -> bool:
    shape = info.type.shape if isinstance(info.type, TensorType) else None
    return shape is not None and all(isinstance(size, int) for size in shape)


def _operand(value: Tensor, name: str, draft: Draft) -> DraftOperand:
    known = value.array.dtype.kind not in "fc" or value.array.size <= _LARGE
    return DraftOperand(value, "constant" if name in draft.graph.initializers else "fed", known)


def _declared(draft: Draft, node: Node, number: int, parts: Sequence[DraftOperand | None]) -> TensorType:
    """Return the declared type of a result; where none is declared, the likely type by the schema and the operands."""
    name = node.outputs[number]
    declared = next((info.type for info in draft.graph.outputs if info.name == name), draft.graph.types.get(name))
    if isinstance(declared, TensorType):
        return declared
    rank = max((len(part.shape) for part in parts if part is not None), default=0)
    given = [(place, part.dtype) for place, part in enumerate(parts) if part is not None]
    form = schema(node.op, draft.model.opset, node.domain)
    alike: list[str] = []
    if form is not None and form.outputs:
        variable = form.outputs[min(number, len(form.outputs) - 1)].type_str
        alike = [dtype for place, dtype in given if form.inputs[min(place, len(form.inputs) - 1)].type_str == variable]
    likely = [*alike, *(dtype for _, dtype in given), "float32"]
    return TensorType(likely[0], (None,) * rank)


def _unsized(info: ValueInfo, types: Mapping[str, ValueType]) -> ValueInfo:
    kind = types.get(info.name, info.type)
    if not isinstance(kind, TensorType) or kind.shape is None:
        return ValueInfo(info.name, kind)
    return ValueInfo(info.name, TensorType(kind.dtype, (None,) * len(kind.shape)))
