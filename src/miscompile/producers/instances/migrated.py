"""A migrated test: an operator instance, and the single-operator program that it was made into."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.instances.archive import read_archive
from miscompile.instances.code import digest_of, encoded
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.producers.instances.onnx_model import to_onnx_case


@dataclass(frozen=True, slots=True)
class Migrated:
    """One test. `digest` is the instance's, by which results of several runs are put together."""

    instance: Instance
    case: Case
    digest: str

    @property
    def operator(self) -> str:
        """The operator as tables name it, with its library."""
        return f"{self.instance.library}:{self.instance.api}"


def migrate(instance: Instance, *, constants: bool = False) -> Migrated | None:
    """Wrap an instance; the recipe of an ONNX program keeps the instance, because a model does not say all of it.

    None when it cannot be a program of its own, such as a node that onnx's checker refuses."""
    try:
        if instance.library == "onnx":
            case = to_onnx_case(instance, "rest" if constants else "known")
            case = replace(case, recipe={**case.recipe, "instance": encoded(instance).decode()})
        else:
            case = to_case(instance, constants=constants)
    except UsageError:
        return None
    return Migrated(instance, case, digest_of(instance))


def cases_of(archives: Iterable[Path]) -> Iterator[Case]:
    """Yield the programs of all ONNX instances in `archives`, for what works on programs whatever they are from.

    Raises UsageError for a file that is no archive.
    """
    for archive in map(read_archive, archives):
        for instance in archive.instances:
            test = migrate(instance) if instance.library == "onnx" else None
            if test is not None:
                yield test.case
