"""The child of `reach`: sends instances through a front end, and reports the statements that each reaches.

Settings come as the only argument, instances as lines on standard input; a line goes out when the front end is loaded,
and one for every instance. The output of compilers goes to standard error.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from miscompile.base.child import die_with_parent
from miscompile.core.run import Build
from miscompile.instances.code import decoded
from miscompile.producers.instances.migrated import migrate
from miscompile.targets.about import Adapter
from miscompile.targets.registry import load_attribute, parse_target


class Tracer:
    """Measures one program after the other."""

    def __init__(self, adapter: Adapter, sources: Sequence[str], limit: int, *, constants: bool = False) -> None:
        coverage: Any = import_module("coverage")
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=list(sources))
        self._adapter = adapter
        self._limit = limit
        self._constants = constants

    def trace(self, line: bytes) -> tuple[str, dict[str, list[int]]]:
        """Return how the test of this instance ended, and the lines that it ran in each file.

        The alarm is not caught: it ends the process, also inside a compiler.
        """
        test = migrate(decoded(line), constants=self._constants)
        if test is None:
            return "no program", {}
        self._coverage.erase()
        signal.alarm(self._limit)
        self._coverage.start()
        ending = "run"
        try:
            session = self._adapter.build(test.case.program, Build())
            session.run(test.case.feeds[0])
        except BaseException:  # noqa: BLE001 - compilers raise whatever they like; it is counted
            ending = "raised"
        finally:
            self._coverage.stop()
            signal.alarm(0)
        data = self._coverage.get_data()
        return ending, {file: sorted(data.lines(file) or ()) for file in sorted(data.measured_files())}


def main(settings: str) -> int:
    """Serve until standard input ends."""
    die_with_parent(os.getppid())
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    given = json.loads(settings)
    os.environ.setdefault("COVERAGE_CORE", "ctrace")
    spec = parse_target(given["target"])
    adapter: Adapter = load_attribute(spec.about.adapter)(**spec.options)
    tracer = Tracer(adapter, given["sources"], int(given["limit"]), constants=bool(given["constants"]))
    print("ready", file=out, flush=True)
    for line in sys.stdin.buffer:
        ending, lines = tracer.trace(line)
        print(json.dumps({"ending": ending, "lines": lines}), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
