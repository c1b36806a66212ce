"""The passes that changed a module, read from the files that XLA dumps for passes that report a change."""

import re
from pathlib import Path

_NAME = re.compile(r"module_(\d+)\.(.*)\.(\d+)\.(.*)\.after_(.*)\.before_(.*)\.txt")


def changed(place: Path, known: frozenset[str]) -> tuple[str, ...]:
    """Return the `known` passes that changed a module's text, each once, in order.

    `place` is the folder given as `xla_dump_to`; files are called
    `module_NUMBER.NAME.STEP.PIPELINE.after_PASS.before_NEXT.txt`, the first of a pipeline after `pipeline-start`.
    """
    steps = []
    for path in place.iterdir():
        found = _NAME.fullmatch(path.name)
        if found:
            steps.append((int(found[1]), int(found[3]), found[5], path))
    names: dict[str, None] = {}
    before: dict[int, str] = {}
    for module, _, name, path in sorted(steps):
        text = path.read_text("utf-8", "replace")
        if name in known and text != before.get(module):
            names[name] = None
        before[module] = text
    return tuple(names)
