"""The two ways of using a layer of Keras: called as it is, and as the only layer of a `Sequential` model.

Front ends of Keras have code of their own for the second one, so harvests give instances of both, as OPERA does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from miscompile.base.errors import UsageError
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Slot

SEQUENTIAL = "keras.Sequential"
SOURCE = "sequential"
"""The source of instances that were put into a sequence."""

_LAYERS = "keras.layers."
_EACH = 8
"""Instances of a layer that are put into sequences: what the layer does with its parameters is tested without."""


def in_sequence(instance: Instance) -> Instance:
    """Return the instance with its layer as the only one of a `Sequential` model: the other way of using layers.

    Raises UsageError for what is no layer called on exactly one tensor.
    """
    if instance.form != "module" or instance.options or len(instance.inputs) != 1:
        raise UsageError(f"{instance.api} is not called on one tensor alone, so no sequence of layers can hold it")
    if not isinstance(instance.inputs[0], Held | Drawn | Slot):
        raise UsageError(f"{instance.api} is called on a structure, so no sequence of layers can hold it")
    layer = Made(instance.api, instance.args, dict(instance.kwargs))
    return replace(instance, api=SEQUENTIAL, args=([layer],), kwargs={})


def layer_of(instance: Instance) -> Instance:
    """Return the instance of the layer that `in_sequence` was given; any other instance as it is."""
    match instance:
        case Instance(api=api, args=([Made(layer, args, kwargs)],)) if api == SEQUENTIAL:
            return replace(instance, api=layer, args=args, kwargs=kwargs)
    return instance


def sequences(instances: Iterable[Instance]) -> Iterator[Instance]:
    """Yield the first few instances of each layer of Keras that can stand in a sequence, in one."""
    made: Counter[str] = Counter()
    for instance in instances:
        if instance.api.startswith(_LAYERS) and made[instance.api] < _EACH:
            try:
                found = in_sequence(instance)
            except UsageError:
                continue
            made[instance.api] += 1
            yield replace(found, source=SOURCE)
