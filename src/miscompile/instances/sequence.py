"""The two ways of using a layer of Keras: called as it is, and as the only layer of a `Sequential` model.

Front ends of Keras have separate code for the second one, so harvests contain instances of both, as in OPERA.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from miscompile.base.errors import UsageError
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Slot

SEQUENTIAL = "keras.Sequential"
SOURCE = "sequential"
"""The source of instances in a sequence."""

_LAYERS = "keras.layers."
_EACH = 8
"""Greatest number of instances of a layer in sequences, because its parameters are tested without sequences."""


def in_sequence(instance: Instance) -> Instance:
    """Return the instance with its layer as the only one of a `Sequential` model: the other way of using layers.

    Raises UsageError unless it is a layer called on exactly one tensor.
    """
    if instance.form != "module" or instance.options or len(instance.inputs) != 1:
        raise UsageError(f"{instance.api} is not called on one tensor alone, so no sequence of layers can hold it")
    if not isinstance(instance.inputs[0], Held | Drawn | Slot):
        raise UsageError(f"{instance.api} is called on a structure, so no sequence of layers can hold it")
    layer = Made(instance.api, instance.args, dict(instance.kwargs))
    return replace(instance, api=SEQUENTIAL, args=([layer],), kwargs={})


def layer_of(instance: Instance) -> Instance:
    """Undo `in_sequence`; return any other instance unchanged."""
    match instance:
        case Instance(api=api, args=([Made(layer, args, kwargs)],)) if api == SEQUENTIAL:
            return replace(instance, api=layer, args=args, kwargs=kwargs)
    return instance


def sequences(instances: Iterable[Instance]) -> Iterator[Instance]:
    """Yield the first few suitable instances of each layer of Keras, each in a sequence."""
    made: Counter[str] = Counter()
    for instance in instances:
        if instance.api.startswith(_LAYERS) and made[instance.api] < _EACH:
            try:
                found = in_sequence(instance)
            except UsageError:
                continue
            made[instance.api] += 1
            yield replace(found, source=SOURCE)
