"""Named parts of one kind: those of this package, and those that other packages add through entry points.

A package adds a part with an entry point, so that nobody has to fork this one:

    [project.entry-points."miscompile.targets"]
    acme = "acme_compiler.target.about:ABOUT"

The groups are `miscompile.targets`, `miscompile.producers`, `miscompile.transforms`, `miscompile.oracles` and
`miscompile.reports`. A part is imported when it is asked for. A broken part leaves the others usable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from typing import Generic, TypeVar

from miscompile.base.errors import SpecError, UsageError

T = TypeVar("T")

OURS = "miscompile"
"""The distribution that contains the built-in parts."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One package's offer of a part: the part's name, its path `module:attribute`, and the package's name."""

    name: str
    path: str
    package: str

    @property
    def module(self) -> str:
        """The module that defines the part."""
        return self.path.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Catalogue(Generic[T]):
    """The parts of one `kind` (a noun for messages), each an object of `type`, by name.

    `group` is the entry points' group, `built_in` gives the path `module:attribute` of each part of this package.
    """

    kind: str
    group: str
    type: type[T]
    built_in: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parts, usable or broken: the built-in ones, then those of other packages."""
        return tuple(dict.fromkeys((*self.built_in, *(offer.name for offer in added(self.group)))))

    def __contains__(self, name: str) -> bool:
        """Tell whether any package offers a part called `name`."""
        return name in self.built_in or any(offer.name == name for offer in added(self.group))

    def offer(self, name: str) -> Offer:
        """Return the offer of the part called `name`.

        Raises SpecError for an unknown name, UsageError that names both packages when two offer a part under it.
        """
        offers = [Offer(name, self.built_in[name], OURS)] if name in self.built_in else []
        offers += [offer for offer in added(self.group) if offer.name == name]
        if not offers:
            raise SpecError(f"there is no {self.kind} '{name}'; there are: {', '.join(self.usable())}")
        if len(offers) > 1:
            packages = " and ".join(f"{offer.package} ({offer.path})" for offer in offers)
            raise UsageError(f"the {self.kind} '{name}' is offered by {packages}; uninstall one of these packages")
        return offers[0]

    def get(self, name: str) -> T:
        """Return the part called `name`. Raises as `offer`, and UsageError when another package's part is broken.

        An error in a part of this package passes through unchanged, because no user can repair it.
        """
        offer = self.offer(name)
        if offer.package == OURS:
            part = attribute(offer.path)
            assert isinstance(part, self.type), f"{offer.path} is no {self.type.__name__}"
            return part
        try:
            part = attribute(offer.path)
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise UsageError(self._broken(offer, why)) from error
        if not isinstance(part, self.type):
            raise UsageError(self._broken(offer, f"{offer.path} is no {self.type.__name__}"))
        return part

    def usable(self) -> tuple[str, ...]:
        """Return the names of all parts that can be used."""
        broken = self.broken()
        return tuple(name for name in self.names if name not in broken)

    def broken(self) -> dict[str, str]:
        """Return the parts that cannot be used, each with the reason; parts of other packages are imported for it."""
        found: dict[str, str] = {}
        for name in dict.fromkeys(offer.name for offer in added(self.group)):
            try:
                self.get(name)
            except UsageError as error:
                found[name] = str(error)
        return found

    def _broken(self, offer: Offer, why: str) -> str:
        return f"the {self.kind} '{offer.name}' of the package {offer.package} is broken: {why}"


def attribute(path: str) -> object:
    """Import `module:name` and return the named object. Raises whatever the import raises."""
    module, _, name = path.partition(":")
    found: object = getattr(import_module(module), name)
    return found


@cache
def added(group: str) -> tuple[Offer, ...]:
    """Return the offers of other packages in `group`, sorted by name and package.

    An editable installation of this package may show entry points of its own; these are its built-in parts.
    """
    points: Iterable[metadata.EntryPoint] = metadata.entry_points(group=group)
    offers = [Offer(point.name, point.value, point.dist.name if point.dist else "?") for point in points]
    return tuple(sorted({offer for offer in offers if offer.package != OURS}, key=lambda one: (one.name, one.package)))
