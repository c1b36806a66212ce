"""The requirements of an environment: the compiler's distributions, those of worker and scripts, and pins."""

import re
from dataclasses import dataclass

from miscompile.base.errors import UsageError
from miscompile.environments.cache import name_of
from miscompile.targets.pins import ALWAYS, pins
from miscompile.targets.registry import about, compiler_of, installed

_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*")


@dataclass(frozen=True, slots=True)
class EnvironmentRecipe:
    """How to make an environment: requirements for pip, and a condition on the version of Python."""

    target: str
    version: str
    requirements: tuple[str, ...]
    python: str = ""

    @property
    def name(self) -> str:
        """The environment's name."""
        return name_of(self.target, self.version)

    @property
    def spec(self) -> str:
        """The target spec that selects it."""
        name, _, via = self.target.partition("+")
        return f"{name}=={self.version}" + (f"{{via={via}}}" if via else "")


def recipe_of(target: str, version: str) -> EnvironmentRecipe:
    """Return the recipe for a release of the target called `target`; `openvino+torch` is one with a front end.

    A requirement in `environment.toml` takes precedence over the default one of the same distribution. Raises
    UsageError for a target that is unknown, or a part of this tool.
    """
    name, _, via = target.partition("+")
    face = about(name)
    special = pins(face.package, version)
    first = compiler_of(face)
    if first is None:
        raise UsageError(f"target {target} is a part of this tool; there is nothing to install")
    further = [_as_here(one) for one in face.fronts[via].distributions] if via else []
    wanted = {distribution_of(text): text for text in (*face.distributions, *further, *ALWAYS)}
    wanted |= {distribution_of(text): text for text in special.requires}
    wanted.pop(distribution_of(first), None)
    return EnvironmentRecipe(target, version, (f"{first}=={version}", *wanted.values()), special.python)


def _as_here(distribution: str) -> str:
    """Return a requirement of the version installed beside this tool, which computes the reference results."""
    version = installed(distribution)
    return distribution if version is None else f"{distribution}=={version.partition('+')[0]}"


def distribution_of(requirement: str) -> str:
    """Return the normalised name in a requirement: `ML_dtypes>=0.5` gives `ml-dtypes`."""
    found = _NAME.match(requirement.strip())
    return re.sub(r"[-_.]+", "-", found[0] if found else requirement).lower()
