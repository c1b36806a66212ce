"""The elements of an output that a finding stores."""

import numpy as np
from oracle_cases import case, pair_of_runs, values

from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Violated
from miscompile.oracles.elements import MOST, compared
from miscompile.oracles.judge import judge_pair


def floats(*numbers: float) -> Tensor:
    return tensor(np.array(numbers, np.float32))


def test_each_element_has_its_index_its_values_and_its_bound() -> None:
    found = compared(floats(1.0, 2.0), floats(1.5, 2.5), np.array([0.25, 1.0]))
    assert found == [
        {"place": [0], "reference": "1.0", "faulty": "1.5", "allowed": 0.25, "wrong": True},
        {"place": [1], "reference": "2.0", "faulty": "2.5", "allowed": 1.0, "wrong": False},
    ]


def test_of_a_large_output_the_first_wrong_elements_are_stored() -> None:
    want, got = np.zeros((20, 20), np.int32), np.zeros((20, 20), np.int32)
    got[1:] = 1
    found = compared(tensor(want), tensor(got))
    assert (len(found), found[0]["place"]) == (MOST, [1, 0])
    assert all(one["wrong"] for one in found)


def test_scalars_nan_and_strings_are_compared() -> None:
    assert compared(floats(1.0), floats(float("nan")))[0]["wrong"]
    assert not compared(floats(float("nan")), floats(float("nan")))[0]["wrong"]
    assert compared(tensor(np.array(1, np.int8)), tensor(np.array(2, np.int8)))[0]["place"] == []
    one, other = (Tensor("string", np.array([text], object)) for text in ("a", "b"))
    assert compared(one, other) == [{"place": [0], "reference": "a", "faulty": "b", "allowed": 0.0, "wrong": True}]


def test_outputs_that_cannot_be_compared_give_none() -> None:
    assert compared(None, floats(1.0)) == compared(floats(1.0), floats(1.0, 2.0)) == []
    assert compared(floats(1.0), tensor(np.array([1], np.int32))) == []


def test_the_fixed_rule_stores_them_in_its_evidence() -> None:
    verdict = judge_pair(pair_of_runs(case()), (values([1.0, 2.0, 3.0]), values([1.0, 2.5, 3.0])), "fixed")
    assert isinstance(verdict, Violated)
    assert [one["wrong"] for one in verdict.evidence.details["elements"]] == [False, True, False]
