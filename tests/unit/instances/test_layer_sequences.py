"""Layers of Keras in sequences: which ones are made, and that they still count as uses of their layer."""

from dataclasses import replace

import pytest

from miscompile.base.errors import UsageError
from miscompile.core.outcome import Raised
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import SEQUENTIAL, SOURCE, in_sequence, layer_of, sequences
from miscompile.instances.values import Drawn, Made
from miscompile.migration.ranking.partition import setting
from miscompile.migration.ranking.score import operator_of, signature_scores
from miscompile.triage.converters import converter_of

X = Drawn("float32", (2, 3))


def dense(units: int, source: str = "tests") -> Instance:
    return Instance("keras", "keras.layers.Dense", "module", (units,), {"use_bias": False}, (X,), source=source)


OTHERS = (
    Instance("keras", "keras.ops.add", "function", (X, X)),
    Instance("keras", "keras.layers.Add", "module", (), {}, ([X, X],)),
    Instance("keras", "keras.layers.LSTM", "module", (2,), {}, (X,), {"mask": X}),
    Instance("keras", "keras.activations.relu", "function", (X,)),
    Instance("torch", "torch.nn.Linear", "module", (3, 2), {}, (X,)),
    in_sequence(dense(9)),
)


def test_layers_of_one_tensor_are_put_into_sequences() -> None:
    (found,) = sequences([*OTHERS, dense(4)])
    assert (found.api, found.source, found.inputs) == (SEQUENTIAL, SOURCE, (X,))
    assert found.args == ([Made("keras.layers.Dense", (4,), {"use_bias": False})],)


def test_only_the_first_few_of_each_layer() -> None:
    found = list(sequences([dense(units) for units in range(1, 100)]))
    assert [layer_of(one).args for one in found] == [(units,) for units in range(1, 9)]


@pytest.mark.parametrize("instance", OTHERS[:-1], ids=lambda one: one.api)
def test_what_is_in_no_sequence_is_itself(instance: Instance) -> None:
    assert layer_of(instance) is instance


def test_a_sequence_gives_its_layer_back() -> None:
    assert layer_of(in_sequence(dense(4))) == dense(4)
    several = Instance("keras", SEQUENTIAL, "module", ([Made("keras.layers.ReLU"), Made("keras.layers.ReLU")],))
    assert layer_of(several) is several
    with pytest.raises(UsageError):
        in_sequence(in_sequence(OTHERS[0]))


def test_sequences_are_ranked_as_uses_of_their_layers() -> None:
    """Else all of them would be one operator, which leads whatever there is."""
    plain = [dense(units) for units in (1, 2)]
    relu = Instance("keras", "keras.layers.ReLU", "module", (), {}, (X,))
    chained = [replace(in_sequence(one), source=SOURCE) for one in (*plain, relu)]
    assert [operator_of(one) for one in chained] == [
        ("keras.layers.Dense", SOURCE), ("keras.layers.Dense", SOURCE), ("keras.layers.ReLU", SOURCE)]  # fmt: skip
    scores = signature_scores([*plain, relu, *chained], {"dense": 4, "sequential": 1})
    assert scores["keras.layers.Dense", SOURCE] == scores["keras.layers.Dense", "module"] == 0.5
    assert setting(chained[0]) == setting(plain[0])


def test_a_failure_that_names_nothing_is_the_layers() -> None:
    failed = Raised("compile", "ValueError", "no")
    assert converter_of(in_sequence(dense(4)), failed, "", ()) == "keras.layers.Dense"
