"""Bisection of the phases of IREE's compilation, to find the phase that introduces a fault.

IREE compiles in phases, and can stop after one and continue later with other flags. A program is compiled up to a
phase with the flags that show the fault, and from there with flags that do not. The first phase after which the
fault is present, or which fails itself, introduces the fault. IREE's programs (`iree-compile`, `iree-run-module`)
run in child processes: this module does not import IREE, and a crash only ends a child.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from miscompile.base.child import Ended, collect
from miscompile.base.errors import UsageError
from miscompile.core.tensor import Array

PHASES = (
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
    "stream",
    "executable-sources",
    "executable-configurations",
    "executable-targets",
    "hal",
    "vm",
)
"""The phases in order, by their names for `--compile-to` and `--compile-from`."""

_PROGRAMS = {"iree-compile": ("iree.compiler", "_mlir_libs"), "iree-run-module": ("iree", "_runtime_libs")}
_SECONDS = 120.0
_LINES = 5


@dataclass(frozen=True, slots=True)
class Blame:
    """The phase that introduces the fault: `fails` tells that the compiler fails in it, with the message `detail`."""

    phase: str
    fails: bool
    detail: str = ""


def bisect_phases(
    text: bytes, faulty: Sequence[str], sound: Sequence[str], shows: Callable[[bytes], bool]
) -> Blame | None:
    """Return the first phase that must run with the flags `faulty` for the fault to occur; None when no phase
    suffices.

    `text` is an imported program (MLIR); `shows` tells whether bytecode has the fault. Raises UsageError
    when IREE's compiler is not installed.
    """
    for phase in PHASES:
        half = _compile(text, (*faulty, "--iree-input-type=onnx", f"--compile-to={phase}"))
        if half.status:
            return Blame(phase, True, _say(half))
        whole = _compile(half.stdout, (*sound, f"--compile-from={phase}")) if phase != PHASES[-1] else None
        bytecode = _compile(text, (*faulty, "--iree-input-type=onnx")).stdout if whole is None else whole.stdout
        if (whole is None or not whole.status) and shows(bytecode):
            return Blame(phase, False)
    return None


def outputs_of(bytecode: bytes, inputs: Sequence[Array], outputs: int) -> list[Array] | None:
    """Run compiled bytecode on `inputs` in a process; return its first `outputs` outputs, None when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "module.vmfb").write_bytes(bytecode)
        words = [str(_program("iree-run-module")), "--device=local-sync", f"--module={place / 'module.vmfb'}"]
        for number, array in enumerate(inputs):
            np.save(place / f"in{number}.npy", array)
            words.append(f"--input=@{place / f'in{number}.npy'}")
        words += ["--function=main", *(f"--output=@{place / f'out{number}.npy'}" for number in range(outputs))]
        done = _run(words)
        return None if done.status else [np.load(place / f"out{number}.npy") for number in range(outputs)]


def _compile(text: bytes, options: Sequence[str]) -> Ended:
    words = [str(_program("iree-compile")), "-", "-o", "-", *options]
    return _run(words, text)


def _run(words: Sequence[str], given: bytes | None = None) -> Ended:
    done = collect(words, given=given, seconds=_SECONDS)
    if done.status is None:
        raise TimeoutError(f"{Path(words[0]).name} took more than {_SECONDS:.0f} s")
    return done


def _program(name: str) -> Path:
    package, folder = _PROGRAMS[name]
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / folder / name
        if path.exists():
            return path
    raise UsageError(f"IREE's {name} is not installed; run: pip install iree-base-compiler iree-base-runtime")


def _say(done: Ended) -> str:
    """Return the first lines of the errors, or the signal."""
    lines = [line for line in done.errors().splitlines() if "error" in line.lower()]
    return "\n".join(lines[:_LINES]) or f"exit status {done.status}"
