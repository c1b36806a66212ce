"""The base of all exact relations: options, places with stable names, and random draws for each place.

A place is a part of the model that a relation can change alone: a node, a constant, a value. Each draw depends on the
seed and the name of its place, never on earlier draws. A place is therefore treated alike in a model and in a reduced
one, and a reducer can name the places that matter (`only`) and reduce them together with the nodes.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from miscompile.base.digest import digest_words
from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.base.rng import stream

_WHOLE = 2.0**64


@dataclass(frozen=True, slots=True)
class Placed:
    """The options of every exact relation, and the choice of places that follows from them.

    `share` is the share of the places that are changed, at least one. `only` names the places instead, joined by `+`;
    names that the model lacks are ignored.
    """

    stream_name: ClassVar[str]
    """Names the relation's random streams, so that a new name for its class does not change what a seed draws."""

    seed: int = 0
    share: float = 0.5
    only: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError for a share out of range."""
        if not 0 <= self.share <= 1:
            raise SpecError("share is a number from 0 to 1")

    def picked(self, places: Iterable[str]) -> frozenset[str]:
        """Return those of `places` that are to be changed. Raises RejectedDraft when there is none."""
        known = list(dict.fromkeys(places))
        if self.only:
            chosen = frozenset(self.only.split("+")).intersection(known)
        else:
            draws = {place: self.draw(place) for place in known}
            limit = max(self.share, min(draws.values(), default=0.0))
            chosen = frozenset(place for place, drawn in draws.items() if drawn <= limit)
        if not chosen:
            raise RejectedDraft("there is no place here that this relation could change")
        return chosen

    def draw(self, place: str, *more: str | int) -> float:
        """Return a number in [0, 1) that depends on relation, seed and place alone."""
        return digest_words(self.seed, self.stream_name, place, *more) / _WHOLE

    def stream(self, place: str, *more: str | int) -> random.Random:
        """Return a random stream that depends on relation, seed and place alone."""
        return stream(self.seed, self.stream_name, place, *more)
