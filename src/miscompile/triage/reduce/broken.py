"""The node of a draft that is invalid on purpose: found, cut out of the graph, and judged again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.edges import reads
from miscompile.graph.emit import emit
from miscompile.graph.model import Node, TensorType, ValueInfo, ValueType
from miscompile.graph.typing import value_types
from miscompile.ops.registry import schema
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
"""Elements above which a rule of an operator's page is not told those of a float operand."""


@dataclass(frozen=True, slots=True)
class BrokenNode:
    """The node that breaks the rule, as a call of its own, with the judges' answers and the proof for the program."""

    call: InvalidDraft
    standing: Standing
    proof: Proof
    detail: str


@dataclass(frozen=True, slots=True)
class Examiner:
    """Judges drafts by the broken rule that the recipe records.

    It is a capture as well: of the values before the broken node, because no build need give values for that node and
    those after it.
    """

    prover: Prover
    inner: Capture
    violation: Violation

    def examine(self, draft: Draft, *, repair: bool = True) -> BrokenNode:
        """Return the broken node of `draft`; with `repair` False no repair of it is searched for.

        Raises ModelError when no node breaks the rule, when the rest of the graph is invalid or not well defined, or
        when the values before the node are not known.
        """
        types = value_types(draft.model, strict=False)
        node, calls = self._locate(draft, types)
        self._require_rest(draft, node, types)
        found, *others = [standing(self.prover, call, self.violation, repair=repair) for call in calls]
        if any(other != found for other in others):
            raise ModelError("the feeds break different rules")
        return BrokenNode(calls[0], found, self._proof(draft, calls[0]), described(calls[0], self.violation))

    def __call__(self, draft: Draft) -> Captured:
        """Return the known values of `draft`, for each feed."""
        try:
            node, _ = self._locate(draft, value_types(draft.model, strict=False))
        except ModelError:
            return tuple({**draft.graph.initializers, **feed} for feed in draft.feeds)
        return self._before(draft, node)

    def _locate(self, draft: Draft, types: Mapping[str, ValueType]) -> tuple[Node, list[InvalidDraft]]:
        """Return the first node that breaks the rule, and its calls on the feeds. Raises ModelError for none."""
        why = ModelError(f"no {self.violation.op} breaks the rule on every feed: {self.violation.detail}")
        for node in draft.graph.nodes:
            if node.op != self.violation.op or any(True for _ in node.subgraphs()):
                continue
            try:
                calls = list(self._calls(draft, node, types))
                if all(standing(self.prover, call, self.violation, repair=False).invalid for call in calls):
                    return node, calls
            except ModelError as error:
                why = error
        raise why

    def _before(self, draft: Draft, node: Node) -> Captured:
        return self.inner(upstream(draft, node) or draft.with_nodes(()))

    def _calls(self, draft: Draft, node: Node, types: Mapping[str, ValueType]) -> Iterator[InvalidDraft]:
        """Yield the call of `node` on each feed."""
        before = {name for other in draft.graph.nodes for name in other.outputs}
        captured = self._before(draft, node) if before.intersection(reads(node)) else ()
        for place, feed in enumerate(draft.feeds or ({},)):
            known = {**(captured[place] if captured else {}), **draft.graph.initializers, **feed}
            missing = [name for name in node.inputs if name and name not in known]
            if missing:
                raise ModelError(f"the value of {missing[0]} is not known")
            parts = tuple(_operand(known[name], name, draft) if name else None for name in node.inputs)
            outputs = tuple(_declared(draft, node, number, types) for number in range(len(node.outputs)))
            yield InvalidDraft(node.op, draft.model.opset, parts, node.attributes, outputs, node.domain)

    def _proof(self, draft: Draft, call: InvalidDraft) -> Proof:
        """Return why the program is invalid; the checker comes first, because people can repeat its error."""
        said = self.prover.check(emit(draft.model))
        if said:
            return Proof("checker", said)
        said = refusal(self.prover, call, self.violation)
        if said:
            return Proof("runtime", said)
        hidden = any(not _is_shown(info) for info in draft.fed())
        early = not hidden and (not call.fed() or not keeps_page(call, page_of(call, self.violation), before_run=True))
        return Proof("rule" if early else "runtime", f"the page of {call.op} forbids it")

    def _require_rest(self, draft: Draft, node: Node, types: Mapping[str, ValueType]) -> None:
        """Check all other nodes, in a graph in which the broken node's results are inputs. Raises ModelError."""
        rest = [other for other in draft.graph.nodes if other is not node]
        if not rest:
            return
        used = {name for other in rest for name in reads(other)}
        results = [(number, name) for number, name in enumerate(node.outputs) if name in used]
        inputs = tuple(ValueInfo(name, _declared(draft, node, number, types)) for number, name in results)
        made = {name for other in rest for name in other.outputs if name}
        ends = made & ({info.name for info in draft.graph.outputs} | set(reads(node)))
        outputs = tuple(ValueInfo(name, types.get(name)) for name in sorted(ends))
        if ends:
            check(
                needed(
                    draft.with_graph(nodes=tuple(rest), inputs=(*draft.graph.inputs, *inputs), outputs=outputs)
                ).model
            )
        first = upstream(draft, node)
        if first is not None and not Guard(self.inner)(first):
            raise ModelError("a node before the broken one is not well defined")


def upstream(draft: Draft, node: Node) -> Draft | None:
    """Return the nodes before `node` that its operands need; None where there are none."""
    made = {name for other in draft.graph.nodes for name in other.outputs}
    wanted = [name for name in dict.fromkeys(reads(node)) if name in made]
    return needed(draft.with_graph(outputs=tuple(ValueInfo(name, None) for name in wanted))) if wanted else None


def retyped(draft: Draft, violation: Violation) -> Draft:
    """Return the draft with the outputs typed as far as inference goes; sizes are left open, as they may be wrong.

    A wrongly declared output keeps its declaration, because that is the broken rule.
    """
    if violation.kind == "declared":
        return draft
    bare = tuple(ValueInfo(info.name, None) for info in draft.graph.outputs)
    types = value_types(draft.with_graph(outputs=bare).model, strict=False)
    makers = {name: (node, number) for node in draft.graph.nodes for number, name in enumerate(node.outputs)}
    outputs = []
    for info in draft.graph.outputs:
        maker = makers.get(info.name)
        kind = types.get(info.name, info.type) if maker is None else _declared(draft, *maker, types)
        outputs.append(ValueInfo(info.name, _unsized(kind) if isinstance(kind, TensorType) else kind))
    return draft.with_graph(outputs=tuple(outputs))


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


def _declared(draft: Draft, node: Node, number: int, types: Mapping[str, ValueType]) -> TensorType:
    """Return the declared or inferred type of a result; where neither is known, the likely type by the schema."""
    name = node.outputs[number]
    declared = {info.name: info.type for info in draft.graph.outputs}.get(name)
    known = types.get(name, declared)
    if isinstance(known, TensorType) and known.shape is not None:
        return known
    form = schema(node.op, draft.model.opset, node.domain)
    operands = [types.get(one) for one in node.inputs]
    tensors = [one for one in operands if isinstance(one, TensorType)]
    ranks = [len(one.shape) for one in tensors if one.shape is not None]
    dtype = next((one.dtype for one in (known, declared) if isinstance(one, TensorType)), None)
    if dtype is None and form is not None and form.outputs:
        variable = form.outputs[min(number, len(form.outputs) - 1)].type_str
        alike = [
            one.dtype
            for place, one in enumerate(operands)
            if isinstance(one, TensorType) and form.inputs[min(place, len(form.inputs) - 1)].type_str == variable
        ]
        dtype = alike[0] if alike else None
    dtype = dtype or next((one.dtype for one in tensors), "float32")
    return TensorType(dtype, (None,) * max(ranks, default=0))


def _unsized(kind: TensorType) -> TensorType:
    return TensorType(kind.dtype, None if kind.shape is None else (None,) * len(kind.shape))
