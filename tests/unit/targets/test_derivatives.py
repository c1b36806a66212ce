"""The transform `derivative`: its options, the outputs that it adds, its directions, and its noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_spec
from miscompile.core.case import Port, Program
from miscompile.engine.checks import chosen, families
from miscompile.targets.derivatives import Derivative, derivative_of, moving, of_the_program, result_ports, rewritten_by
from miscompile.targets.directions import direction
from miscompile.targets.registry import parse_target
from miscompile.targets.rounding import EPS, SHIFTS, signs
from miscompile.transforms.catalogue import alters, is_own

PROGRAM = Program(
    "onnx",
    b"",
    (Port("x", "float32", (2, 3)), Port("i", "int64", (2,)), Port("h", "float16", ())),
    (Port("y", "float32", (2,), True), Port("k", "bool", (3,), True), Port("b", "bfloat16", (4,))),
)


@pytest.mark.parametrize("mode", ["reverse", "training"])
def test_gradients_follow_the_outputs(mode: str) -> None:
    found = result_ports(PROGRAM, parse_spec(f"derivative{{mode={mode}}}"))
    assert [(port.name, port.dtype, port.shape) for port in found[3:]] == [
        ("gradient of x", "float32", (2, 3)),
        ("gradient of h", "float16", ()),
    ]
    assert [port.name for port in found[:3]] == ["y", "k", "b"]
    assert not any(port.exact for port in found)


def test_tangents_have_the_types_of_outputs() -> None:
    found = result_ports(PROGRAM, parse_spec("derivative{mode=forward, seed=3}"))
    assert found[3:] == (Port("tangent of y", "float32", (2,)), Port("tangent of b", "bfloat16", (4,)))


def test_the_adjoint_product_is_one_number() -> None:
    (product,) = result_ports(PROGRAM, parse_spec("derivative{mode=adjoint}"))[3:]
    assert product == Port("adjoint product", "float64", ())


def test_other_transforms_add_nothing() -> None:
    for spec in (None, parse_spec("strided{seed=1}"), parse_spec("functions{seed=1}")):
        assert derivative_of(spec) is None
        assert result_ports(PROGRAM, spec) is PROGRAM.outputs


def test_the_transform_before_a_derivative_has_its_seed() -> None:
    spec = parse_spec("derivative{mode=forward, rewriting=order, seed=7}")
    assert rewritten_by(spec) == parse_spec("order{seed=7}")
    assert of_the_program(spec) == parse_spec("derivative{mode=forward, seed=7}")
    for other in (None, parse_spec("order{seed=7}"), parse_spec("derivative{mode=forward}")):
        assert rewritten_by(other) is None
        assert of_the_program(other) == other


def test_floats_alone_have_derivatives() -> None:
    assert moving(PROGRAM.inputs) == [0, 2]


def test_noise_moves_nothing_or_all_up_or_all_down_or_some() -> None:
    assert not signs(5, 0).any()
    assert (signs(5, 1) == 1).all()
    assert (signs(5, 2) == -1).all()
    shares = [(signs(4000, number) > 0).mean() for number in range(4, 8)]
    assert np.allclose(shares, [1 / 16, 1 / 2, 1 / 2, 15 / 16], atol=0.05)
    assert np.array_equal(signs(50, 9, 3), signs(50, 9, 3))
    assert not np.array_equal(signs(50, 9, 3), signs(50, 9, 4))


def test_a_shift_moves_zeros_alone() -> None:
    for dtype in ("float16", "float32", "float64"):
        kind, shift = np.dtype(dtype), SHIFTS[dtype]
        assert np.asarray(shift, kind) > 0
        assert np.asarray(1e-2, kind) + np.asarray(shift, kind) == np.asarray(1e-2, kind)
        assert np.finfo(kind).eps == EPS[dtype]


@pytest.mark.parametrize(
    "text", ["derivative{mode=sideways}", "derivative{seed=x}", "derivative{share=0.5}", "derivative{of=egraph}"]
)
def test_bad_options_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        derivative_of(parse_spec(text))


def test_a_derivative_is_the_adapters_and_changes_results() -> None:
    spec = parse_spec("derivative{mode=forward, seed=3}")
    assert is_own(spec)
    assert alters(spec)
    assert derivative_of(spec) == Derivative(3, "forward")


@given(st.integers(0, 2**31), st.integers(0, 20), st.lists(st.integers(0, 4), max_size=4))
def test_directions_depend_on_seed_and_place_alone(seed: int, place: int, sizes: list[int]) -> None:
    shape = tuple(sizes)
    drawn = direction(shape, seed, place)
    assert np.array_equal(drawn, direction(shape, seed, place))
    assert drawn.shape == shape
    assert ((np.abs(drawn) >= 0.5) & (np.abs(drawn) <= 2)).all()


def test_directions_have_both_signs_and_differ() -> None:
    drawn = direction((100,), 1, 0)
    assert (drawn > 0).any()
    assert (drawn < 0).any()
    assert not np.array_equal(drawn, direction((100,), 1, 1))
    assert not np.array_equal(drawn, direction((100,), 2, 0))


@pytest.mark.parametrize("target", ["xla", "inductor"])
def test_the_check_draws_every_mode(target: str) -> None:
    about = parse_target(target).about
    assert chosen(["gradients"], [about]) == ("gradients",)
    (family,) = families(("gradients",), about)
    assert {dict(spec.options)["mode"] for (spec,) in family} == set(about.derivatives)
    assert sum("rewriting" in dict(spec.options) for (spec,) in family) == len(family) / 2
    assert "derivative" not in {spec.name for drawn in families(("exact",), about)[0] for spec in drawn}


def test_a_target_without_derivatives_has_no_such_check() -> None:
    from miscompile.base.errors import UsageError

    with pytest.raises(UsageError, match="differentiates no programs"):
        chosen(["gradients"], [parse_target("onnxruntime").about])
