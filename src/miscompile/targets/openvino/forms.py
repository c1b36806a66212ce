"""Forms of a program that OpenVINO's adapter presents itself: saved and loaded again, and with external data."""

from dataclasses import dataclass
from typing import Literal

from miscompile.targets.forms import own_form


@dataclass(frozen=True, slots=True)
class Reload:
    """What has been read is saved and loaded: the model in OpenVINO's own format, or the compiled one as a blob.

    `stage` says after which step. Saving keeps float32 as it is. `seed` is there because every drawn form gets one; it
    has nothing to draw.
    """

    seed: int = 0
    stage: Literal["compiled", "read"] = "compiled"


@dataclass(frozen=True, slots=True)
class External:
    """The model is a file, and its initialisers lie in another, in an order and at offsets by `seed`."""

    seed: int = 0


FORMS = {"reload": Reload, "external": External}
"""The forms by name."""


def settled(form: str) -> str:
    """Return a form as it is. Raises SpecError for one of other options."""
    own_form(form, FORMS)
    return form
