"""Models, rules and runs that the tests of the e-graph share."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.tensor import Array
from miscompile.graph.edges import producers, reads
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node
from miscompile.graph.text.parser import parse_model
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.egraph.layers import Space, space_of
from miscompile.transforms.egraph.program import TermProgram, program_of
from miscompile.transforms.egraph.saturation import RuleSet, RuleTally, SaturationLimits, rule_set, saturate
from miscompile.transforms.rules.parse import parse_rules

USUAL = SaturationLimits()

ENTRY = '[[rule]]\nname = "{}"\ngroup = "g"\nexactness = "rounding"\ndtypes = "any"\nsource = "here"\n{}\n'


def rule_text(name: str, left: str, right: str, *more: str) -> str:
    return ENTRY.format(name, "\n".join((f'left = "{left}"', f'right = "{right}"', *more)))


RING = "\n".join(
    (
        rule_text("add-comm", "Add(x, y)", "Add(y, x)"),
        rule_text("mul-comm", "Mul(x, y)", "Mul(y, x)"),
        rule_text("add-assoc", "Add(Add(x, y), z)", "Add(x, Add(y, z))"),
        rule_text("mul-over-add", "Mul(Add(x, y), z)", "Add(Mul(x, z), Mul(y, z))", "both = true"),
        rule_text("neg-neg", "Neg(Neg(x))", "x"),
        rule_text(
            "tr-tr",
            "Transpose(Transpose(x, perm=p), perm=q)",
            "x",
            'where = "take(p, q) == tuple(range(x.rank))"',
        ),
    )
)

STRUCTURE = "\n".join(
    (
        rule_text(
            "split-of-concat",
            "x",
            "Split(Concat(x, x, axis=a), axis=a, sizes=(x.shape[a], x.shape[a]))[0]",
            'draw = {a = "axis(x.rank)"}',
        ),
        rule_text(
            "add-tr",
            "Add(x, y)",
            "Transpose(Add(Transpose(x, perm=p), Transpose(y, perm=p)), perm=inverse(p))",
            'where = "x.rank == y.rank"',
            'draw = {p = "permutation(x.rank)"}',
        ),
    )
)


@cache
def ring() -> RuleSet:
    return rule_set(parse_rules(RING, "ring"))


@cache
def everything() -> RuleSet:
    return rule_set(parse_rules(RING + "\n" + STRUCTURE, "everything"))


def rules_of(*entries: str) -> RuleSet:
    return rule_set(parse_rules("\n".join(entries), "test"))


def model_of(body: str, head: str = "%x: float32[2,3], %z: float32[2,3]", out: str = "%y: float32[2,3]") -> Model:
    return parse_model(f"ir 8 opset 17 graph g({head}) -> ({out}) {{ {body} }}")


SHARED = """init %c: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
%a = Add(%x, %z) %b = Add(%a, %c) %d = Mul(%b, %z) %s = Sin(%d) %y = Add(%s, %x) %w = Neg(%b)"""


def shared() -> Model:
    return model_of(SHARED, out="%y: float32[2,3], %w: float32[2,3]")


def saturated(
    model: Model, rules: RuleSet, seed: int = 0, limits: SaturationLimits = USUAL
) -> tuple[TermProgram, Space, RuleTally]:
    program = program_of(model)
    tally = saturate(program, rules, limits, seed)
    return program, space_of(program), tally


@cache
def cases(count: int, seed: int = 3, nodes: int = 8, integral: float | None = None) -> tuple[Case, ...]:
    """Return generated cases; `integral` is the share of those that are fed integers only."""
    options = GeneratorOptions(nodes=nodes) if integral is None else GeneratorOptions(nodes=nodes, integral=integral)
    producer = Strict(options, Support(open=True))
    return tuple(producer.propose(stream(seed, "egraph", number)) for number in range(count))


def reference(model: Model, feeds: Mapping[str, Array]) -> Sequence[Array]:
    """Run `model` as the standard says; division by zero and the like are none of our business here."""
    with np.errstate(all="ignore"):
        results: Sequence[Array] = evaluator(emit(model)).run(None, dict(feeds))
    return results


def operators(model: Model) -> tuple[str, ...]:
    """Return the operators of the main graph in the order of dataflow: depth first, from the first output on.

    The order does not depend on the order of the nodes. Dead nodes and constants are left out.
    """
    graph = model.graph
    made = producers(graph)
    order: list[int] = []
    seen: set[int] = set()
    for info in graph.outputs:
        if info.name in made:
            _visit(graph, made, made[info.name], seen, order)
    return tuple(_called(graph.nodes[place]) for place in order if graph.nodes[place].op != "Constant")


def _visit(graph: Graph, made: Mapping[str, int], start: int, seen: set[int], order: list[int]) -> None:
    """Append the positions of `start` and its unvisited ancestors to `order`, operands first."""
    stack = [] if start in seen else [(start, _below(graph, made, start))]
    seen.add(start)
    while stack:
        place, waiting = stack[-1]
        if not waiting:
            order.append(place)
            stack.pop()
            continue
        child = waiting.pop()
        if child not in seen:
            seen.add(child)
            stack.append((child, _below(graph, made, child)))


def _below(graph: Graph, made: Mapping[str, int], place: int) -> list[int]:
    return [made[name] for name in reads(graph.nodes[place]) if name in made][::-1]


def _called(node: Node) -> str:
    return f"{node.domain}::{node.op}" if node.domain else node.op
