"""Related operators: each that is kept computes what the other does, and graphs are rewritten call by call."""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from miscompile.targets.inductor.relations import COMPOSED, METHODS, NAMED_APART, SAME

torch: Any = pytest.importorskip("torch", reason="torch is not installed here")

from miscompile.targets.inductor.related import (  # noqa: E402 - needs torch
    operator_of,
    related_operators,
    replace_call,
    ways_for,
    with_related,
)

pytestmark = pytest.mark.compiler

GROUPS = [*(group.split() for group in SAME), *([f"torch.{name}", f"Tensor.{name}"] for name in METHODS.split())]
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int8", "uint8", "bool")
VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.0, 100.0, -100.0, 6e4, 1e-8, float("inf"), -float("inf"), float("nan"))
WHOLE = (0, 1, -1, 2, 3, -3, 100, 127, -128, 5)


def other(x: Any) -> Any:
    return x.flatten().roll(1).reshape(x.shape)


def places(x: Any) -> Any:
    return torch.zeros(x.shape, dtype=torch.int64)


BINARY = (
    "bitwise_and", "bitwise_or", "bitwise_xor", "div", "eq", "ge", "gt", "le", "lt", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "pow",
)  # fmt: skip

REST: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "addmm": lambda x: (x, x),
    "matmul": lambda x: (x,),
    "softmax": lambda x: (0,),
    "logsumexp": lambda x: (0,),
    "transpose": lambda x: (0, -1),
    "amax": lambda x: ((0,), True),
    "amin": lambda x: ((0,), True),
    "argmin": lambda x: (-1, True),
    "bitwise_left_shift": lambda x: (1,),
    "chunk": lambda x: (2, 0),
    "clamp": lambda x: (-1, 2),
    "cumprod": lambda x: (0,),
    "cumsum": lambda x: (0,),
    "fmod": lambda x: (3,),
    "gather": lambda x: (0, places(x)),
    "index_select": lambda x: (0, places(x).flatten()[:1]),
    "narrow": lambda x: (0, 0, 1),
    "permute": lambda x: tuple(range(x.dim()))[::-1],
    "reshape": lambda x: (*x.shape[::-1], 1),
    "scatter": lambda x: (0, places(x), 1),
    "scatter_add": lambda x: (0, places(x), x),
    "split": lambda x: (2, 0),
    "unsqueeze": lambda x: (-1,),
    **dict.fromkeys(BINARY, lambda x: (other(x),)),
}  # fmt: skip
"""What the operators of a group are called with beside the first tensor; with nothing where they are not listed."""

SPARED = {
    "det": ("float32", "float64"),  # of 16 bits and of integers there is none
    "fmod": tuple(name for name in DTYPES if name != "bool"),
}
"""Element types for which a group is asked; all where it is not listed. What both sides refuse counts as the same."""


def tensors(group: Sequence[str]) -> Iterator[Any]:
    name = group[0].rpartition(".")[2]
    for dtype in SPARED.get(name, DTYPES):
        kind = getattr(torch, dtype)
        values = VALUES if kind.is_floating_point else [value for value in WHOLE if kind.is_signed or value >= 0]
        whole = torch.tensor(values * 2).to(kind)
        yield whole[:9].reshape(3, 3)
        yield whole[-9:].reshape(3, 3)
        yield whole[:0].reshape(0, 3)
        yield whole[2]


def called(
    operator: Any, x: Any, rest: Sequence[Any], words: dict[str, Any] | None = None
) -> tuple[Any, Any, list[Any]]:
    """Return a graph of one call, the call, and what the graph is given."""
    graph = torch.fx.Graph()
    given: list[Any] = []

    def operand(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(given)}")
        node.meta["example_value"] = value
        given.append(value)
        return node

    operands = tuple(map(operand, (x, *rest)))
    kind = "call_method" if isinstance(operator, str) else "call_function"
    node = graph.create_node(kind, operator, operands, words or {})
    graph.output(node)
    return torch.fx.GraphModule(torch.nn.Module(), graph), node, given


def outcome(module: Any, given: Sequence[Any]) -> Any:
    """Return the results as types, shapes and bits; None where torch refuses."""
    try:
        results = torch.fx.Interpreter(module).run(*given)
    except (RuntimeError, TypeError, IndexError, NotImplementedError):
        return None
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [(one.dtype, one.shape, bits(one)) for one in results]


def bits(value: Any) -> tuple[Any, ...]:
    """Return the elements, not-a-numbers alike and zeros by their signs."""
    numbers = value.detach().double() if value.is_floating_point() else value
    return tuple("nan" if one != one else struct.pack("d", one) if isinstance(one, float) else one
                 for one in numbers.flatten().tolist())  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_related_operators_compute_the_same_bits(group: list[str]) -> None:
    related, ran = related_operators(), 0
    rest = REST.get(group[0].rpartition(".")[2], lambda x: ())
    for x in tensors(group):
        for name in group:
            operator = operator_of(name)
            more = rest(x)
            if name in ("torch.permute", "torch.reshape"):
                more = (more,)
            module, node, given = called(operator, x, more)
            want = outcome(module, given)
            ways = [way for way in ways_for(node, related) if len(way) == 1]
            assert len(ways) == len(group) - 1
            for way in ways:
                module, node, given = called(operator, x, more)
                replace_call(module.graph, node, way)
                assert outcome(module, given) == want, (name, way, x)
            ran += want is not None
    assert ran > 5, "nothing was compared"


@pytest.mark.parametrize("relation", COMPOSED, ids=lambda relation: f"{relation[0]}={relation[2]}({relation[1]})")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_composed_operators_are_off_by_two_units_at_most(relation: tuple[str, str, str], dtype: str) -> None:
    kind = getattr(torch, dtype)
    if kind.itemsize == 2:
        x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(kind)  # all there are
    else:
        whole = {4: torch.int32, 8: torch.int64}[kind.itemsize]
        limits = torch.iinfo(whole)
        drawn = torch.randint(limits.min, limits.max, (100_000,), generator=torch.Generator().manual_seed(0))
        x = torch.cat((drawn.to(whole).view(kind), torch.tensor([*VALUES, torch.finfo(kind).max], dtype=kind)))
    first, second, then = map(operator_of, relation)
    want, got = first(x), then(second(x))
    assert torch.equal(want.isnan(), got.isnan())
    want, got = want.nan_to_num(nan=1.0, posinf=2.0, neginf=3.0), got.nan_to_num(nan=1.0, posinf=2.0, neginf=3.0)
    assert torch.equal(want.signbit(), got.signbit())
    assert bool(((want.double() - got.double()).abs() <= 2 * torch.finfo(kind).eps * want.double().abs()).all())


def test_one_after_another_is_for_floats_alone() -> None:
    related = related_operators()
    for dtype, longest in (("float32", 2), ("float16", 2), ("int64", 1), ("bool", 1)):
        node = called(torch.sqrt, torch.ones(2, dtype=getattr(torch, dtype)), ())[1]
        assert max(map(len, ways_for(node, related))) == longest


def test_what_is_not_called_on_a_tensor_first_is_left_alone() -> None:
    related, x = related_operators(), torch.ones(2, 2)
    assert ways_for(called(torch.pow, x, (2,))[1], related)
    assert not ways_for(called(torch.pow, 2, (x,))[1], related)
    assert not ways_for(called(torch.transpose, x, (0,), {"dim1": 1})[1], related)
    assert not ways_for(called(torch.relu, x, ())[1], related)
    assert {"dim0", "axis0"} <= NAMED_APART


def captured(program: Callable[..., Any], *given: Any) -> Any:
    """Return the graph that torch.compile makes of a program."""
    found: list[Any] = []

    def keep(graph: Any, inputs: Any) -> Any:
        del inputs
        found.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.compile(program, backend=keep, fullgraph=True, dynamic=False)(*given)
    return found[0]


def calls(module: Any) -> list[Any]:
    return [
        node.target
        for body in module.modules()
        if isinstance(body, torch.fx.GraphModule)
        for node in body.graph.nodes
        if node.op in ("call_function", "call_method")
    ]


def program(x: Any, y: Any) -> Any:
    a = torch.abs(x)
    root = torch.sqrt(a)
    turned = root.permute(1, 0)
    flat = turned.reshape(-1, 2)
    soft = torch.softmax(flat, dim=1)
    either = torch.cond(y.sum() > 0, lambda: (torch.neg(x.clone()),), lambda: (x.tanh(),), ())
    return soft, either[0], torch.clamp(x, 0.0, None)


GIVEN = (torch.linspace(-2, 3, 6).reshape(2, 3), torch.ones(3))


def test_the_whole_graph_is_rewritten_and_computes_the_same() -> None:
    want = program(*GIVEN)
    module = captured(program, *GIVEN)
    before = calls(module)
    assert calls(with_related(module, 0, 0.0)) == before
    with_related(module, 0, 1.0)
    after = calls(module)
    original = {torch.abs, torch.sqrt, "permute", "reshape", torch.softmax, torch.neg, "clone", "tanh", torch.clamp}
    assert original <= set(before)
    assert not original & set(after)
    module.graph.lint()
    assert all("example_value" in node.meta for node in module.graph.nodes if node.op == "call_method")
    for one, two in zip(module(*GIVEN), want, strict=True):
        assert torch.allclose(one, two, rtol=1e-6)


def test_draws_hang_on_seed_share_and_name_alone() -> None:
    def changed(seed: int, share: float, function: Callable[..., Any] = program) -> list[Any]:
        return calls(with_related(captured(function, *GIVEN), seed, share))

    def longer(x: Any, y: Any) -> Any:
        return torch.tanh(y), *program(x, y)

    assert changed(3, 0.5) == changed(3, 0.5)
    assert len({tuple(map(str, changed(seed, 0.5))) for seed in range(3)}) > 1
    assert [target for target in changed(3, 0.5, longer) if target in changed(3, 0.5)] == changed(3, 0.5)
