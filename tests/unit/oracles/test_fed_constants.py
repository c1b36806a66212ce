"""Programs whose operands are all constants, and what the library runs for them."""

from dataclasses import replace

import numpy as np

from miscompile.core.tensor import tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held
from miscompile.oracles.fed_constants import fed, fixed, of_constants
from miscompile.oracles.library_reference import NOISES, reference_case
from miscompile.producers.instances.migrated import migrate

X = np.array([[1.0, 2.0, 4.0]], np.float32)


def clip(operands: str = "constant", *inputs: object) -> Instance:
    held = tuple(Held(tensor(np.asarray(one))) for one in inputs or (X, np.float32(0), np.float32(3)))
    one = Instance("onnx", "Clip", "node", inputs=held, version=13)
    return replace(one, operands=operands)  # type: ignore[arg-type]


def test_all_operands_are_constants() -> None:
    made = migrate(clip())
    assert made is not None
    assert (made.case.program.inputs, made.case.feeds) == ((), ((),))
    assert of_constants(made.instance)


def test_the_library_gets_them_as_inputs_with_noise() -> None:
    made = migrate(clip())
    assert made is not None
    case = reference_case(made.instance, made.case)
    assert [port.shape for port in case.program.inputs] == [(1, 3), (), ()]
    first, again, *noisy = case.feeds
    assert first[0].same(tensor(X))
    assert again[0].same(first[0])
    assert len(noisy) == NOISES
    assert any(not one[0].same(first[0]) for one in noisy)


def test_the_front_end_gets_the_program_of_constants_back() -> None:
    made = migrate(clip())
    assert made is not None
    case = reference_case(made.instance, made.case)
    back = fixed(replace(case, feeds=case.feeds[:1]))
    assert (back.program, back.feeds) == (made.case.program, made.case.feeds)
    assert fed(back).program == fed(made.case).program


def test_a_program_of_constants_that_another_policy_gives_stays_as_it_is() -> None:
    numbers = tuple(Held(tensor(np.asarray(one, np.float32))) for one in (0, 4, 1))
    made = migrate(Instance("onnx", "Range", "node", inputs=numbers, version=11))
    assert made is not None
    assert made.case.program.inputs == ()
    assert reference_case(made.instance, made.case).program == made.case.program


def test_other_programs_are_fed_as_they_are() -> None:
    made = migrate(clip("first fed"))
    assert made is not None
    assert reference_case(made.instance, made.case).program == made.case.program
    assert not of_constants(clip("first constant"))
    assert not of_constants(replace(clip(), options={"captured": Held(tensor(X))}))
