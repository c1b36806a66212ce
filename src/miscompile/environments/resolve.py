"""Resolution of a target spec to the environment in which its workers and scripts run."""

from pathlib import Path

from miscompile.base.errors import MissingCompilerError, UsageError
from miscompile.base.versions import same_version
from miscompile.core.events import ProgressListener
from miscompile.environments import pip
from miscompile.environments.cache import Environment, find, find_bare, serve_bare
from miscompile.environments.interpreters import choose
from miscompile.environments.make import make
from miscompile.environments.recipe import distribution_of, recipe_of
from miscompile.targets.registry import TargetSpec, about, compiler_of, installed, parse_target, versions, with_version


def prepare(text: str, on_progress: ProgressListener, *, install: bool = False) -> str:
    """Make sure that the target spec `text` can run, and return the spec to run.

    An environment for a version in the spec is made if necessary. A name without version that is not installed beside
    this tool gets the environment that serves it, or with `install` a new one with the newest release; the returned
    spec then names the version, so that a campaign keeps it. Raises UsageError when something is missing that may not
    or cannot be installed.
    """
    spec = parse_target(text)
    if spec.version is not None:
        if not _is_own(spec):
            make_version(spec.environment_name, spec.version, on_progress)
        return text
    if _complete(spec):
        return text
    serving = find_bare(spec.environment_name)
    if serving is None:
        if not install:
            versions(spec.about)  # raises, and says what can be done
        serving = make_newest(spec.environment_name, on_progress)
    return with_version(text, serving.version)


def make_version(target: str, version: str, on_progress: ProgressListener) -> Environment:
    """Return the environment for a release of a target, made now unless it is there. Raises UsageError.

    `target` is a name, with that of a front end behind a `+` when it is for that.
    """
    return find(target, version) or make(recipe_of(target, version), on_progress)


def make_newest(target: str, on_progress: ProgressListener) -> Environment:
    """Return an environment with a target's newest final release; from now on it serves the bare name.

    Raises UsageError when the target has no distribution, or pip fails.
    """
    return serve_bare(make_version(target, newest_release(target), on_progress))


def newest_release(target: str) -> str:
    """Return the newest final release of a target for our Python. Raises UsageError when pip cannot list them."""
    compiler = compiler_of(about(target.partition("+")[0]))
    if compiler is None:
        raise UsageError(f"target {target} is a part of this tool; there is nothing to install")
    return pip.releases(compiler, choose("", target))[-1]


def environment_of(text: str) -> Environment | None:
    """Return the environment that the target spec `text` runs in; None: beside this tool.

    Raises MissingCompilerError when it names a version whose environment has not been made.
    """
    spec = parse_target(text)
    if spec.version is None or _is_own(spec):
        return None
    found = find(spec.environment_name, spec.version)
    if found is None:
        name = f"{spec.about.name}=={spec.version}"
        advice = f"make it with `miscompile targets install {name}`"
        raise MissingCompilerError(f"there is no environment for {name}; {advice}")
    return found


def python_of(text: str) -> Path | None:
    """Return the Python of the workers and scripts of a target spec; None: our own. Raises as `environment_of`."""
    found = environment_of(text)
    return None if found is None else found.executable


def versions_of(text: str) -> dict[str, str]:
    """Return the versions of the distributions that make up a target, as they are where it runs.

    Raises MissingCompilerError when one is missing there, or the environment has not been made.
    """
    place = environment_of(text)
    face = parse_target(text).about
    if place is None:
        return versions(face)
    found = {distribution_of(name): version for name, version in place.packages.items()}
    missing = [name for name in face.distributions if distribution_of(name) not in found]
    if missing:
        raise MissingCompilerError(f"environment {place.name} lacks {', '.join(missing)}; remove it with "
                         f"`miscompile targets remove {face.name}=={place.version}` to have it made anew")  # fmt: skip
    return {name: found[distribution_of(name)] for name in face.distributions}


def _is_own(spec: TargetSpec) -> bool:
    """Tell whether the version that a spec names is the one that is installed beside this tool."""
    assert spec.version is not None
    own = installed(compiler_of(spec.about) or "")
    return own is not None and same_version(own, spec.version) and _complete(spec)


def _complete(spec: TargetSpec) -> bool:
    return all(installed(name) is not None for name in spec.about.distributions)
