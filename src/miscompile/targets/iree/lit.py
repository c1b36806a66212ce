"""Findings as tests of IREE's own repository: a lit test, and the line of an expected-failure list.

The lit test compiles the imported program and runs it on the finding's inputs; `iree-run-module` compares the outputs
with the right ones. The other file has the form of the configuration of iree-test-suites, whose two lists name tests
that are expected to fail when they are compiled, or when they are run.
Sources: https://iree.dev/reference/mlir-dialects/, https://github.com/iree-org/iree-test-suites
"""

import json
from collections.abc import Mapping

from miscompile.core.tensor import Array, Tensor
from miscompile.targets.iree.flags import flags
from miscompile.targets.iree.runner import ENTRY, import_text
from miscompile.targets.upstream import UpstreamStory

_TYPES: Mapping[str, str] = {
    "float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip
"""The types of buffers whose elements can stand in a flag. IREE's integers have no signedness; its tools read elements
of `i1` from files only."""

_TARGET = (
    "--iree-input-type=onnx",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
)


def lit_test(story: UpstreamStory) -> dict[str, str]:
    """Return `upstream_test.mlir` and `expected_failures.json`.

    Returns nothing for a finding at run time whose values cannot stand in the tool's flags.
    """
    runs = [] if _at_compile(story) else _run_line(story)
    if not (runs or _at_compile(story)):
        return {}
    own = [flag for flag in flags(story.level, story.off) if not flag.startswith("--iree-hal-target-backends")]
    lines = [f"// RUN: {' '.join(('iree-compile %s', *_TARGET, *own, '-o %t.vmfb'))}", *runs]
    text = "\n".join([*lines, "", import_text(story.payload).strip(), ""])
    return {"upstream_test.mlir": text, "expected_failures.json": expected_failure(story)}


def expected_failure(story: UpstreamStory) -> str:
    """Return the entry of an expected-failure list: of compilation where that fails, else of execution."""
    name = "expected_compile_failures" if _at_compile(story) else "expected_run_failures"
    return json.dumps({name: [story.name]}, indent=2) + "\n"


def _at_compile(story: UpstreamStory) -> bool:
    return story.kind in ("exception", "death", "hang", "memory") and story.stage == "compile"


def _run_line(story: UpstreamStory) -> list[str]:
    """Return the line that runs the module, which a bug at run time needs; none for values that no flag can hold."""
    if any(value.dtype not in _TYPES for value in (*story.feed, *(story.expected or ()))):
        return []
    words = ["iree-run-module --device=local-sync --module=%t.vmfb", f"--function={ENTRY}"]
    words += [f"--input={spelled(value)}" for value in story.feed]
    words += [f"--expected_output={spelled(value)}" for value in story.expected or ()]
    return ["// RUN: " + " \\\n// RUN:   ".join(words)]


def spelled(value: Tensor) -> str:
    """Return a tensor as `--input` of IREE's tools takes it, such as `2x3xf32=1,2,3,4,5,6`."""
    head = "x".join((*map(str, value.shape), _TYPES[value.dtype]))
    return f"{head}={','.join(map(repr, _signed(value.array).ravel().tolist()))}"


def _signed(array: Array) -> Array:
    return array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array
