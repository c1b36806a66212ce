"""Merging of equal nodes and equal constants, as a compiler's common-subexpression elimination does.

The reverse of duplication. Values get more readers, which disables fusions that require a single reader.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.core.tensor import Tensor
from miscompile.graph.equality import difference
from miscompile.graph.model import Model, Node
from miscompile.graph.prune import callee_key
from miscompile.graph.rename import redirect
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes
from miscompile.transforms.functions.calls import pure


@dataclass(frozen=True, slots=True)
class Merge(Placed):
    """Merges equal nodes and initialisers of a scope. Places are the later ones of each equal pair.

    Nodes are equal when operator, operands and attributes are, bit by bit. Nodes with bodies, nodes that compute an
    output of their scope, and random operators are never merged.
    """

    stream_name: ClassVar[str] = "Merge"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes and initialisers that can be merged into an earlier one, if all others are merged."""
        return tuple(place for scope in scopes(model) for place in _merged(scope, model, None)[1])

    def apply(self, model: Model) -> Model:
        """Return `model` with equal parts merged. Raises RejectedDraft when none are equal."""
        picked = self.picked(self.places(model))
        return rewrite(model, lambda scope: _merged(scope, model, picked)[0])


def _merged(scope: NodeScope, model: Model, picked: frozenset[str] | None) -> tuple[NodeScope, list[str]]:
    """Return `scope` with the `picked` places (None: all) merged, and the places that were merged."""
    initializers, instead, done = _merged_constants(scope, picked)
    kept: list[Node] = []
    earlier: dict[object, list[Node]] = {}
    for node in scope.nodes:
        changed = redirect(node, instead) if instead else node
        key = (callee_key(changed), changed.inputs)
        place = scope.place_of(node)
        twin = None
        if _mergeable(changed, scope, model):
            if picked is None or place in picked:
                twin = next((other for other in earlier.get(key, ()) if _same(other, changed)), None)
            if twin is None:
                earlier.setdefault(key, []).append(changed)
        elif pure((changed,), model) and not any(True for _ in changed.subgraphs()):
            earlier.setdefault(key, []).append(changed)  # computes an output, which others may read as well
        if twin is None:
            kept.append(changed)
        else:
            done.append(place)
            instead.update((name, there) for name, there in zip(changed.outputs, twin.outputs, strict=True) if name)
    if not done:
        return scope, done
    return replace(scope, initializers=initializers).with_nodes(tuple(kept)), done


def _merged_constants(
    scope: NodeScope, picked: frozenset[str] | None
) -> tuple[dict[str, Tensor], dict[str, str], list[str]]:
    given, outputs = scope.given, scope.output_names
    kept: dict[str, Tensor] = {}
    instead: dict[str, str] = {}
    done: list[str] = []
    candidates: list[str] = []
    for name, value in scope.initializers.items():
        twin = None
        if name not in given and name not in outputs and (picked is None or scope.place(name) in picked):
            twin = next((other for other in candidates if scope.initializers[other].same(value)), None)
        if twin is None:
            kept[name] = value
            if name not in given:
                candidates.append(name)
        else:
            instead[name] = twin
            done.append(scope.place(name))
    return kept, instead, done


def _mergeable(node: Node, scope: NodeScope, model: Model) -> bool:
    return (
        scope.output_names.isdisjoint(node.outputs)
        and not any(True for _ in node.subgraphs())
        and pure((node,), model)
    )  # fmt: skip


def _same(one: Node, other: Node) -> bool:
    """Tell whether `one`, with the same operator and operands, computes all results of `other`."""
    return (
        len(one.outputs) == len(other.outputs)
        and all(here or not there for here, there in zip(one.outputs, other.outputs, strict=True))
        and difference(one.attributes, other.attributes) is None
    )
