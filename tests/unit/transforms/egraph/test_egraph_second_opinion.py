"""Another engine, egglog, finds the same classes and terms: rules, programs and rounds are given to both."""

import json
import random

import pytest
from egraph_models import rule_text, rules_of

from miscompile.base.rng import stream
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.transforms.egraph.program import program_of
from miscompile.transforms.egraph.saturation import SaturationLimits, saturate

bindings = pytest.importorskip("egglog.bindings", reason="egglog is the second opinion, and not installed here")

KIND = TensorType("float32", (2,))
LEAVES = 3
GRAPHS = 120

PAIRS = (
    ("(Add x y)", "(Add y x)"),
    ("(Mul x y)", "(Mul y x)"),
    ("(Add (Add x y) z)", "(Add x (Add y z))"),
    ("(Mul (Add x y) z)", "(Add (Mul x z) (Mul y z))"),
    ("(Add (Mul x z) (Mul y z))", "(Mul (Add x y) z)"),
    ("(Neg (Neg x))", "x"),
    ("(Neg (Add x y))", "(Add (Neg x) (Neg y))"),
    ("(Mul (Neg x) y)", "(Neg (Mul x y))"),
    ("(Max x x)", "x"),
)


def written(term: str) -> str:
    """Return an S-expression as a pattern of our own."""
    words = term.replace("(", " ( ").replace(")", " ) ").split()

    def read() -> str:
        word = words.pop(0)
        if word != "(":
            return word
        op, operands = words.pop(0), []
        while words[0] != ")":
            operands.append(read())
        words.pop(0)
        return f"{op}({', '.join(operands)})"

    return read()


def drawn(rng: random.Random, count: int) -> list[Node]:
    """Return random nodes over the leaves, each reading earlier values."""
    names, nodes = [f"x{number}" for number in range(LEAVES)], []
    for number in range(count):
        op = rng.choice(("Add", "Mul", "Neg", "Max"))
        reads = tuple(rng.choice(names) for _ in range(1 if op == "Neg" else 2))
        nodes.append(Node(op, reads, (f"v{number}",)))
        names.append(f"v{number}")
    return nodes


def ours(nodes: list[Node], rounds: int) -> tuple[int, int]:
    inputs = tuple(ValueInfo(f"x{number}", KIND) for number in range(LEAVES))
    outputs = tuple(ValueInfo(name, KIND) for node in nodes for name in node.outputs)
    program = program_of(Model(Graph("g", inputs, outputs, tuple(nodes)), {"": 20}))
    rules = rules_of(*(rule_text(f"r{n}", written(left), written(right)) for n, (left, right) in enumerate(PAIRS)))
    saturate(program, rules, SaturationLimits(rounds, 10**6, 0), 0)
    return program.graph.classes, len(program.graph)


def theirs(nodes: list[Node], rounds: int) -> tuple[int, int]:
    read = {name for node in nodes for name in node.inputs}
    lines = ["(datatype T (Leaf i64) (Add T T) (Mul T T) (Max T T) (Neg T))"]
    lines += [f"(rewrite {left} {right})" for left, right in PAIRS]
    lines += [f"(let $x{number} (Leaf {number}))" for number in range(LEAVES) if f"x{number}" in read]
    lines += [f"(let ${n.outputs[0]} ({n.op} {' '.join(f'${name}' for name in n.inputs)}))" for n in nodes]
    engine = bindings.EGraph()
    engine.run_program(*engine.parse_program("\n".join([*lines, f"(run {rounds})"])))
    found = engine.serialize([], max_functions=None, max_calls_per_function=None, include_temporary_functions=False)
    terms = [
        node
        for node in json.loads(found.to_json())["nodes"].values()
        if node["op"] in ("Leaf", "Add", "Mul", "Max", "Neg")
    ]
    return len({node["eclass"] for node in terms}), len(terms)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_both_engines_find_as_many_classes_and_terms(rounds: int) -> None:
    sizes = []
    for number in range(GRAPHS // 3):
        rng = stream(5, "second opinion", rounds, number)
        nodes = drawn(rng, rng.randint(2, 9 if rounds < 3 else 6))
        sizes.append(ours(nodes, rounds))
        assert sizes[-1] == theirs(nodes, rounds), nodes
    assert max(terms for _, terms in sizes) > 15
