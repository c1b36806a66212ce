"""Compiled left sides find what a naive matcher finds."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from egraph_models import cases, everything, rule_text, rules_of, saturated

from miscompile.base.rng import stream
from miscompile.graph.read import read
from miscompile.transforms.egraph.applying import RefusedRewrite, TermPlan, TermStep
from miscompile.transforms.egraph.engine import EGraph
from miscompile.transforms.egraph.matching import Ready, flag_of, flags_of, ready
from miscompile.transforms.egraph.saturation import chosen
from miscompile.transforms.rules.library import groups, library
from miscompile.transforms.rules.parse import parse_rules
from miscompile.transforms.rules.rule import Apply, TermPattern, Variable
from miscompile.transforms.rules.terms import Symbol, TermType

X = TermType("float32", (2, 3))


def naive(graph: EGraph, pattern: TermPattern, number: int, bound: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what `pattern` may bind in a class, node by node and without any index; compound parameters unchecked."""
    if isinstance(pattern, Variable):
        if bound.setdefault(pattern.name, number) == number:
            yield bound
        return
    for node in graph.nodes_of(number):
        key = graph.terms[node]
        assert key is not None
        symbol = graph.symbols[key[0]]
        if (symbol.op, symbol.output, len(key) - 1) != (pattern.op, pattern.output, len(pattern.arguments)):
            continue
        found = parameters(pattern, symbol, dict(bound))
        if found is not None:
            yield from operands(graph, pattern.arguments, key[1:], found)


def parameters(pattern: Apply, symbol: Symbol, bound: dict[str, Any]) -> dict[str, Any] | None:
    for expression, value in zip(pattern.parameters, symbol.parameters, strict=True):
        if expression.variable is not None:
            if bound.setdefault(expression.variable, value) != value:
                return None
        elif not expression.names and expression.value({}) != value:
            return None
    return bound


def operands(
    graph: EGraph, patterns: tuple[TermPattern, ...], children: tuple[int, ...], bound: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    if not patterns:
        yield bound
        return
    for found in naive(graph, patterns[0], children[0], dict(bound)):
        yield from operands(graph, patterns[1:], children[1:], dict(found))


def found_by(each: Ready, graph: EGraph) -> list[tuple[Any, ...]]:
    index = graph.index()
    assert each.root is not None
    return each.find(index.get(each.root, {}), index, graph.symbols)


def named(each: Ready, match: tuple[Any, ...]) -> tuple[int, tuple[tuple[str, Any], ...]]:
    names = (*each.tensors, *each.parameters)
    return match[0], tuple(sorted(zip(names, match[1 : 1 + len(names)], strict=True)))


def expected_of(each: Ready, graph: EGraph) -> list[tuple[int, tuple[tuple[str, Any], ...]]]:
    left = each.rule.left
    return [(n, tuple(sorted(bound.items()))) for n in graph.members for bound in naive(graph, left, n, {})]


def test_compiled_matchers_find_what_a_naive_one_finds() -> None:
    total = 0
    rules = [each for each in (*everything().arithmetic, *chosen().arithmetic) if each.root is not None]
    for number, case in enumerate(cases(8)):
        program, _, _ = saturated(read(case.program.payload), everything(), number)
        for each in rules:
            if isinstance(each.rule.left, Apply):
                expected = expected_of(each, program.graph)
                actual = [named(each, match) for match in found_by(each, program.graph)]
                assert sorted(actual, key=repr) == sorted(expected, key=repr), each.rule.name
                total += len(expected)
    assert total > 100


def graph_of(*terms: tuple[str, tuple[Any, ...], tuple[int, ...]]) -> EGraph:
    graph = EGraph()
    for op, values, children in terms:
        graph.add(graph.intern(Symbol(op, values)), children, X, 0)
    return graph


def single(left: str, right: str, *more: str) -> Ready:
    rules = rules_of(rule_text("one", left, right, *more))
    return (*rules.arithmetic, *rules.structural)[0]


def test_a_repeated_variable_must_be_one_class() -> None:
    each = single("Add(x, x)", "x")
    graph = graph_of(("value", ("a",), ()), ("value", ("b",), ()), ("Add", (), (0, 1)), ("Add", (), (1, 1)))
    assert [match[0] for match in found_by(each, graph)] == [3]


def test_a_number_on_the_left_side_is_compared() -> None:
    each = single("Mul(x, Constant(dtype=d, shape=s, value=1))", "x")
    one, two = ("float32", (2, 3), 1.0), ("float32", (2, 3), 2.0)
    terms = (("value", ("a",), ()), ("Constant", one, ()), ("Constant", two, ()))
    graph = graph_of(*terms, ("Mul", (), (0, 1)), ("Mul", (), (0, 2)))
    assert [(match[0], match[1]) for match in found_by(each, graph)] == [(3, 0)]


def test_a_repeated_parameter_must_have_one_value() -> None:
    each = single("Transpose(Transpose(x, perm=p), perm=p)", "x")
    back, other = (((1, 0),)), (((0, 1),))
    graph = graph_of(
        ("value", ("a",), ()), ("Transpose", back, (0,)), ("Transpose", back, (1,)), ("Transpose", other, (1,))
    )
    assert [match[0] for match in found_by(each, graph)] == [2]


def test_a_computed_parameter_is_checked_against_what_is_bound() -> None:
    each = single("Transpose(Transpose(x, perm=p), perm=inverse(p))", "x")
    turn, back = ((1, 2, 0),), ((2, 0, 1),)
    graph = graph_of(
        ("value", ("a",), ()), ("Transpose", turn, (0,)), ("Transpose", turn, (1,)), ("Transpose", back, (1,))
    )
    matches = {match[0]: each.admit(match, (X,)) for match in found_by(each, graph)}
    assert matches[2] is None
    assert matches[3] == (X, (1, 2, 0))


def test_an_output_other_than_asked_for_is_not_found() -> None:
    each = single("Split(x, axis=a, sizes=s)[1]", "x")
    graph = EGraph()
    leaf = graph.add(graph.intern(Symbol("value", ("a",))), (), X, 0)
    for output in (0, 1):
        graph.add(graph.intern(Symbol("Split", (0, (1, 1)), output)), (leaf,), X, 0)
    assert [match[0] for match in found_by(each, graph)] == [2]


def test_a_plan_of_another_type_is_refused() -> None:
    each = single("Neg(x)", "Transpose(x, perm=(1, 0))")
    assert each.build((X,), X, 17) == RefusedRewrite(TermType("float32", (3, 2)))
    square = TermType("float32", (2, 2))
    turned = Symbol("Transpose", ((1, 0),))
    assert each.build((square,), square, 17) == TermPlan((TermStep(turned, (0,), square),), -1)


def test_a_plan_that_is_ill_formed_is_refused() -> None:
    assert single("Neg(x)", "MatMul(x, x)").build((X,), X, 17) == RefusedRewrite(None)


def test_an_operator_that_the_opset_lacks_gives_no_plan() -> None:
    each = single("Add(x, y)", "Add(y, x)")
    small = TermType("int8", (2,))
    assert each.build((small, small), small, 13) is None
    assert each.build((small, small), small, 14) is not None


def test_what_a_rule_computes_goes_into_its_plan() -> None:
    each = single("Transpose(x, perm=p)", "Transpose(Neg(x), perm=q)", 'let = { q = "inverse(inverse(p))" }')
    kind, turned = TermType("float32", (2, 3, 4)), TermType("float32", (3, 4, 2))
    values = each.admit((5, 1, (1, 2, 0)), (kind,))
    assert values == (kind, (1, 2, 0))
    steps = (TermStep(Symbol("Neg"), (0,), kind), TermStep(Symbol("Transpose", ((1, 2, 0),)), (-1,), turned))
    assert each.build(values, turned, 17) == TermPlan(steps, -2)


def test_element_types_and_conditions_are_looked_at() -> None:
    each = single("Add(x, y)", "Add(y, x)", 'where = "x.rank == y.rank"')
    row = TermType("float32", (3,))
    assert each.admit((7, 1, 2), (X, row)) is None
    assert each.admit((7, 1, 2), (X, X)) == (X, X)
    (rule,) = parse_rules(rule_text("two", "Neg(x)", "x").replace('"any"', '"float"'), "test")
    assert ready(rule).admit((7, 1), (TermType("int32", (2,)),)) is None
    assert ready(rule).admit((7, 1), (X,)) == (X,)


def test_what_is_drawn_stands_after_what_is_bound() -> None:
    each = single("x", "Transpose(Transpose(x, perm=p), perm=inverse(p))", 'draw = { p = "permutation(x.rank)" }')
    values = each.drawn((X,), stream(0, "x"))
    assert values == (X, (1, 0))
    plan = each.build(values, X, 17)
    assert isinstance(plan, TermPlan)
    assert [step.kind.shape for step in plan.steps] == [(3, 2), (2, 3)]
    assert each.drawn((TermType("float32", (2,)),), stream(0, "x")) is None


def test_groups_take_part_by_seed_and_name() -> None:
    flags = {group: flag_of(group) for group in groups()}
    assert len(set(flags.values())) == len(flags)
    counts = [{group for group, flag in flags.items() if flag & flags_of(0.25, seed)} for seed in range(400)]
    times = [sum(group in some for some in counts) for group in flags]
    assert min(times) > 60
    assert max(times) < 140
    together = [sum(group in some and other in some for some in counts) for group, other in pairwise(flags)]
    assert 15 < sum(together) / len(together) < 35
    assert all(flags_of(0.25, seed) & flags_of(0.5, seed) == flags_of(0.25, seed) for seed in range(20))


def test_every_rule_of_the_library_compiles() -> None:
    for rule in library():
        each = ready(rule)
        assert (each.root is None) == isinstance(rule.left, Variable)
        assert all(callable(part) for part in (each.find, each.admit, each.build))
        assert each.find({}, {}, ()) == []
