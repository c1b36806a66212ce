"""Run one file of TVM's tests and record which pass was called on which Relax module.

`python -m miscompile.harvest.patterns.hooks.tvm TESTFILE OUT` runs the file with pytest.
The hook writes each record to OUT immediately, as a line of JSON, so that a crash loses no earlier record:

- `{"begun": FILE}` when TVM is imported and hooked, before the tests run;
- `{"module": HASH, "script": TEXT, "constants": LIST}`, once for each module, as `targets.tvm.relax.text` encodes it;
- `{"pass": NAME, "module": HASH, "changed": BOOL, "test": NODE}` for each call of a pass on it;
- `{"left": REASON, "pass": NAME, "test": NODE}` for a module that could not be stored;
- `{"exit": CODE}` at the end, with pytest's exit code.

The hook is on the call of a pass in the base class of all passes, as in OATest (section 3.1). It adds an instrument
to the current context, which also observes passes that other passes run from C++.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import json
import sys
from pathlib import Path
from typing import IO, Any

import pytest

MOST_BYTES = 200_000
"""The longest stored text of a module in bytes; longer ones are models with weights, not tests of a pattern."""

_FRAMES = frozenset({"sequential"})
"""Passes that only call others."""

_LOOPS = ("tirx.", "s_tir.", "tir.", "arith.")
"""Prefixes of the names of passes that only process loop programs."""


class Book:
    """The writer of OUT, which writes each module once."""

    def __init__(self, out: IO[str]) -> None:
        self.test = ""
        self._out = out
        self._known: dict[str, str] = {}

    def write(self, **line: object) -> None:
        """Write one line and flush it."""
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()

    def module(self, module: Any, name: str) -> str | None:
        """Write `module` unless it is known; return its hash, or None if it cannot be stored."""
        from miscompile.targets.tvm.relax.text import TEXT_ERRORS, digest, encode

        key = digest(module)
        if key not in self._known:
            try:
                encoded = encode(module)
                size = len(encoded["script"]) + sum(len(one["data"]) for one in encoded["constants"])
                why = "too large" if size > MOST_BYTES else ""
            except TEXT_ERRORS as error:
                why = f"not encoded: {type(error).__name__}"
            self._known[key] = why
            if not why:
                self.write(module=key, **encoded)
        if self._known[key]:
            self.write(left=self._known[key], **{"pass": name, "test": self.test})
            return None
        return key


class Marks:
    """A pytest plugin that passes the name of the current test to the book."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Store the test's name in the file."""
        self._book.test = nodeid.rpartition("/")[2]


def observer(book: Book) -> Any:
    """Return a pass instrument that writes every call of a Relax pass into `book`."""
    import tvm
    import tvm_ffi
    from tvm import relax

    def is_relax(module: Any, name: str) -> bool:
        if name in _FRAMES or name.startswith(_LOOPS):
            return False
        return any(isinstance(one, relax.Function) for one in module.functions.values())

    @tvm.instrument.pass_instrument
    class Observer:
        def __init__(self) -> None:
            self._open: list[tuple[str, int, str | None]] = []

        def run_before_pass(self, module: Any, info: Any) -> None:
            seen: tuple[int, str | None] = (0, None)
            if is_relax(module, info.name):
                seen = (tvm_ffi.structural_hash(module), book.module(module, info.name))
            self._open.append((info.name, *seen))

        def run_after_pass(self, module: Any, info: Any) -> None:
            while self._open:
                name, before, key = self._open.pop()
                if name == info.name:  # passes above it raised and have not ended
                    if key is not None:
                        changed = before != tvm_ffi.structural_hash(module)
                        book.write(**{"pass": name, "module": key, "changed": changed, "test": book.test})
                    return

    return Observer()


def install(book: Book) -> None:
    """Hook the call of a pass."""
    from tvm.ir.transform import Pass, PassContext

    ours, original = observer(book), Pass.__call__

    def call(self: Any, module: Any) -> Any:
        context = PassContext.current()
        instruments = list(context.instruments or [])
        if not any(one.same_as(ours) for one in instruments):
            context.override_instruments([*instruments, ours])
        return original(self, module)

    Pass.__call__ = call


def main(path: Path, out: Path) -> int:
    """Run the tests in `path` under the hook; return pytest's exit code."""
    if "torch" not in path.read_text("utf-8", "replace"):
        modules: dict[str, Any] = sys.modules
        modules.setdefault(
            "torch", None
        )  # hides torch, which TVM imports only to fix the order in which libraries load
    with out.open("w", encoding="utf-8") as stream:
        book = Book(stream)
        install(book)
        book.write(begun=path.name)
        options = ["-q", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-W", "ignore"]
        code = int(pytest.main([*options, str(path)], plugins=[Marks(book)]))
        book.write(exit=code)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
