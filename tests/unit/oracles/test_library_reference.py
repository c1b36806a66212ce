"""The reference from a library's own results: randomness, sensitivity, and unspecified results."""

from dataclasses import replace

import numpy as np
import pytest

from miscompile.base.errors import SpecError
from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, Raised, TimedOut, Unsupported, Values
from miscompile.core.tensor import Array, tensor
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.instances.values import Held, Value
from miscompile.oracles.library_judge import judge
from miscompile.oracles.library_reference import NOISES, Dropped, LibraryReference, assess, reference_case, with_outputs
from miscompile.oracles.unspecified.conditions import CONDITIONS
from miscompile.oracles.unspecified.rules import parse_unspecified, unspecified, unspecified_of
from miscompile.producers.instances.migrated import migrate


def held(*values: object) -> tuple[Held, ...]:
    return tuple(Held(tensor(np.asarray(value))) for value in values)


def case_of(instance: Instance) -> Case:
    found = migrate(instance)
    assert found is not None
    return found.case


def ask(instance: Instance, *results: Array | None, again: Array | None = None) -> LibraryReference | Dropped:
    """Assess results of a first run, of a second (the same unless `again`), and of runs under noise (the first's)."""
    case = case_of(instance)
    first = tuple(None if value is None else tensor(value) for value in results)
    second = first if again is None else (tensor(again), *first[1:])
    return assess(instance, case, Values((first, second, *[first] * NOISES)))


ABS = Instance("torch", "torch.abs", "function", held(np.array([1, 2], np.float32)))


def test_the_feed_comes_twice_and_then_moved_a_little() -> None:
    case = reference_case(ABS, to_case(ABS))
    plain, again, *moved = (feed[0] for feed in case.feeds)
    assert plain.same(again)
    assert len(moved) == NOISES
    for value in moved:
        assert not value.same(plain)
        assert np.allclose(value.numbers(), plain.numbers(), rtol=3 * 2.0**-23, atol=0)
    assert [feed[0].array.tobytes() for feed in reference_case(ABS, to_case(ABS)).feeds] == [
        feed[0].array.tobytes() for feed in case.feeds
    ]


def test_integers_are_not_moved() -> None:
    whole = Instance("torch", "torch.abs", "function", held(np.array([3], np.int64)))
    case = reference_case(whole, to_case(whole))
    assert all(feed[0].same(case.feeds[0][0]) for feed in case.feeds)


def test_a_steady_operator_is_a_reference_and_names_its_outputs() -> None:
    found = ask(ABS, np.array([1, 2], np.float32))
    assert isinstance(found, LibraryReference)
    case = with_outputs(to_case(ABS), found)
    assert [(port.dtype, port.shape) for port in case.program.outputs] == [("float32", (2,))]


def test_chance_shows_in_the_second_run() -> None:
    assert ask(ABS, np.array([1, 2], np.float32), again=np.array([1, 3], np.float32)) == Dropped("random")
    assert isinstance(
        ask(ABS, np.array([np.nan, 2], np.float32), again=np.array([np.nan, 2], np.float32)), LibraryReference
    )


def test_saturated_gates_round_although_they_do_not_move() -> None:
    found = ask(replace(ABS, api="torch.nn.GRU"), np.array([2e-6, 1], np.float32))
    plain = ask(ABS, np.array([2e-6, 1], np.float32))
    assert isinstance(found, LibraryReference)
    assert isinstance(plain, LibraryReference)
    assert found.spread[0] is not None
    assert plain.spread[0] is not None
    assert found.spread[0].tolist() == [2.0**-27, 2.0**-27]
    assert not plain.spread[0].any()


@pytest.mark.parametrize("api", ["torch.erf", "Erf", "torch.nn.functional.gelu"])
def test_approximated_functions_have_an_absolute_error(api: str) -> None:
    found = ask(replace(ABS, api=api), np.array([2e-6, 1], np.float32))
    assert isinstance(found, LibraryReference)
    assert found.spread[0] is not None
    assert found.spread[0].tolist() == [2.0**-27, 2.0**-27]


def test_quantised_numbers_may_be_the_neighbouring_step() -> None:
    node = Instance(
        "onnx", "QuantizeLinear", "node", inputs=held(np.array([3, 9], np.float32), np.float32(1)), version=22
    )
    found = ask(node, np.array([3, 9], np.uint8))
    assert isinstance(found, LibraryReference)
    near, far = (judge(found, Values(((tensor(np.array([3, x], np.uint8)),),)), "strict", {}) for x in (8, 7))
    assert (near.kind, far.kind) == (None, "wrong")


def test_sensitivity_is_by_element() -> None:
    case, first = to_case(ABS), (tensor(np.array([1, 2], np.int64)),)
    jumps = (tensor(np.array([1, 3], np.int64)),)
    found = assess(ABS, case, Values((first, first, *[jumps] * NOISES)))
    assert isinstance(found, LibraryReference)
    assert found.spread[0] is not None
    assert found.spread[0].tolist() == [0.0, 1.0]
    other = (tensor(np.array([1], np.int64)),)
    assert assess(ABS, case, Values((first, first, *[other] * NOISES))) == Dropped("unstable")


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Raised("run", "RuntimeError", "no"), "invalid"),
        (Unsupported("run", "int is no tensor"), "no tensor"),
        (OutOfMemory("run"), "too large"),
        (Crashed("run", 11), "library dies"),
        (TimedOut("run", 1.0), "library hangs"),
        (Values(((),) * (2 + NOISES)), "no tensor"),
    ],
)
def test_what_the_library_does_not_answer_is_dropped(outcome: Outcome, reason: str) -> None:
    found = assess(ABS, to_case(ABS), outcome)
    assert isinstance(found, Dropped)
    assert found.reason == reason


def test_nan_that_was_given_need_not_come_out() -> None:
    least = Instance("torch", "torch.amin", "function", held(np.array([np.nan, 2], np.float32)))
    found = ask(least, np.array([np.nan, 1.0], np.float32))
    assert isinstance(found, LibraryReference)
    assert found.spread[0] is not None
    assert found.spread[0].tolist() == [np.inf, 0.0]


def test_operators_that_leave_their_results_open() -> None:
    x = held(np.array([2, 1, 2], np.float32))
    empty = Instance("torch", "torch.empty_like", "function", x)
    assert isinstance(ask(empty, np.array([0, 0, 0], np.float32)), Dropped)
    sort = Instance("torch", "torch.sort", "function", x)
    found = ask(sort, np.array([1, 2, 2], np.float32), np.array([1, 0, 2], np.int64))
    assert isinstance(found, LibraryReference)
    assert found.spread[1] is None
    stable = ask(
        Instance("torch", "torch.sort", "function", x, {"stable": True}),
        np.array([1], np.float32),
        np.array([1], np.int64),
    )
    assert isinstance(stable, LibraryReference)
    assert stable.spread[1] is not None


def test_the_order_of_topk_is_open_only_without_sorted() -> None:
    """The attribute is 1 unless it is given, and the order of equal elements is laid down."""
    operands = held(np.array([3, 1, 2], np.float32), np.array([2], np.int64))
    cases: list[tuple[int, dict[str, Value]]] = [(11, {}), (11, {"sorted": 1}), (10, {}), (11, {"sorted": 0})]
    topk = [Instance("onnx", "TopK", "node", (), given, operands, version=version) for version, given in cases]
    feed = tuple(one.tensor for one in operands)
    assert [bool(unspecified_of(one, feed)) for one in topk] == [False, False, False, True]


def test_undefined_conversions_and_shifts() -> None:
    cast = Instance("torch", "torch.Tensor.int", "method", held(np.array([np.inf], np.float32)))
    assert ask(cast, np.array([0], np.int32)) == Dropped("undefined", "floats beyond the integers")
    far = Instance(
        "torch", "torch.bitwise_left_shift", "function", held(np.array([1], np.int32), np.array([40], np.int32))
    )
    near = Instance(
        "torch", "torch.bitwise_left_shift", "function", held(np.array([1], np.int32), np.array([4], np.int32))
    )
    assert isinstance(ask(far, np.array([0], np.int32)), Dropped)
    assert isinstance(ask(near, np.array([16], np.int32)), LibraryReference)


def holds(condition: str, *values: object) -> bool:
    inputs = held(*values)
    return CONDITIONS[condition](Instance("onnx", "Op", "node", (), {}, inputs), tuple(one.tensor for one in inputs))


def test_a_rule_about_older_operator_sets() -> None:
    x = held(np.ones((1, 2), np.float32))
    old, new = (Instance("onnx", "Dropout", "node", (), {}, x, version=version) for version in (11, 13))
    assert [bool(unspecified_of(one, (x[0].tensor,))) for one in (old, new)] == [True, False]


def test_conditions() -> None:
    assert holds("divides by zero", np.array([1], np.int32), np.array([0], np.int32))
    assert holds("divides by zero", np.array([-128], np.int8), np.array([-1], np.int8))
    assert not holds("divides by zero", np.array([1], np.float32), np.array([0], np.float32))
    assert holds("all operands are integers", np.array([1], np.uint8))
    assert not holds("all operands are integers", np.array([1], np.float32))


def test_the_rules_that_come_with_the_tool_are_well_formed() -> None:
    assert len(unspecified()) > 10
    assert all(rule.reason and rule.apis for rule in unspecified())


@pytest.mark.parametrize(
    "text",
    [
        "[[unspecified]]\nlibrary = 'torch'",
        "[[unspecified]]\nlibrary='torch'\napis=['a']\nkind='odd'\nreason='x'",
        "[[unspecified",
        "[[unspecified]]\nlibrary='torch'\napis=['a']\nkind='random'\nreason='x'\nwhen='the moon is full'",
        "[[unspecified]]\nlibrary='torch'\napis=['a']\nkind='random'\nreason='x'\ngiven=['sorted']",
    ],
)  # fmt: skip
def test_malformed_rules_are_named(text: str) -> None:
    with pytest.raises(SpecError, match="malformed"):
        parse_unspecified(text)


def test_a_case_keeps_the_outputs_that_it_has() -> None:
    found = ask(ABS, np.array([1, 2], np.float32))
    assert isinstance(found, LibraryReference)
    case: Case = with_outputs(to_case(ABS), found)
    assert with_outputs(case, found) is case


NORMAL = Instance("onnx", "StringNormalizer", "node", inputs=held(np.array(["a", "b"], object)), version=10)


def test_texts_that_noise_leaves_alone_are_promised() -> None:
    found = ask(NORMAL, np.array(["A", "B"], object))
    assert isinstance(found, LibraryReference)
    assert found.spread[0] is not None
    assert found.spread[0].tolist() == [0.0, 0.0]


def test_texts_that_hang_on_the_last_place_are_left_open() -> None:
    cast = Instance("onnx", "Cast", "node", (), {"to": 8}, held(np.array([0.1, 2], np.float32)), version=13)
    case, first = case_of(cast), (tensor(np.array(["0.1", "2"], object)),)
    moved = (tensor(np.array(["0.10000001", "2"], object)),)
    found = assess(cast, case, Values((first, first, *[moved] * NOISES)))
    assert isinstance(found, LibraryReference)
    assert found.spread[0] is not None
    assert found.spread[0].tolist() == [np.inf, 0.0]


def test_dropout_that_trains_draws_whatever_its_seed() -> None:
    def dropout(training: bool) -> LibraryReference | Dropped:
        operands = held(np.array([1, 2], np.float32), np.float32(0.5), np.bool_(training))
        instance = Instance("onnx", "Dropout", "node", (), {"seed": 0}, operands, version=13)
        return ask(instance, np.array([2, 0], np.float32))

    found = dropout(True)
    assert isinstance(found, Dropped)
    assert found.reason == "random"
    assert isinstance(dropout(False), LibraryReference)


def test_nan_among_the_constants_need_not_come_out_either() -> None:
    least = Instance(
        "torch", "torch.minimum", "function", held(np.array([1, 2], np.float32), np.array([np.nan, 2], np.float32))
    )
    case = to_case(least, constants=True)
    assert len(case.feeds[0]) == 1
    first = (tensor(np.array([np.nan, 2], np.float32)),)
    found = assess(least, case, Values((first, first, *[first] * NOISES)))
    assert isinstance(found, LibraryReference)
    assert found.spread[0] is not None
    assert found.spread[0].tolist() == [np.inf, 0.0]


@pytest.mark.parametrize(("given", "judged"), [({"p": 1.0}, False), ({"p": 1.0, "training": False}, True)])
def test_dropout_of_everything_is_for_training_all_the_same(given: dict[str, Value], judged: bool) -> None:
    found = ask(
        Instance("torch", "torch.nn.functional.dropout", "function", ABS.args, given), np.array([0, 0], np.float32)
    )
    assert isinstance(found, LibraryReference) is judged
