"""Runs standalone scripts in forks of an interpreter that has imported their modules: `python -I script_server.py`.

It needs the standard library only, because it runs under the Python of a compiler's environment, which need not have
this package. Each line on standard input is a request, a JSON object: `script`, `output` and `errors` are paths,
`seconds` the time limit. Each answer is one JSON line: `status` is the exit status, negative for a signal, None when
the time was over; `seconds` is the duration, `cpu` the CPU time of the script and of the children that it waited for.

A script finds everything as in a fresh process, except that the modules are loaded that it imports before its first
other statement. What it does before an import, such as to set an environment variable, it does before that import here
as well. A fork ends without the destructors of the process, because some of them wait for threads that only the
interpreter has.
"""

import ast
import contextlib
import ctypes
import json
import os
import runpy
import select
import signal
import sys
import time
import traceback
from typing import Any

_PR_SET_PDEATHSIG = 1


def import_leading(path: str) -> None:
    """Execute the imports with which the script at `path` begins."""
    with open(path, "rb") as file:
        source = file.read()
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return
    for place, statement in enumerate(statements):
        if place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # the docstring
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            return
        try:
            exec(compile(ast.Module([statement], []), path, "exec"), {})
        except Exception:  # noqa: BLE001 - whatever it is, the script meets it again and tells of it
            return


def become(request: dict[str, Any], parent: int) -> None:
    """Make this fork a process like a fresh one that was started to run the script."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    os.setsid()
    created = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY), (1, request["output"], created), (2, request["errors"], created),
    ):  # fmt: skip
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = [request["script"]]


def run(script: str) -> int:
    """Run the script; return the exit status that the interpreter would end with."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ending:
        if ending.code is None or isinstance(ending.code, int):
            return (ending.code or 0) & 0xFF
        print(ending.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - the interpreter reports every exception in this way
        traceback.print_exc()
        return 1
    return 0


def await_end(child: int, seconds: float) -> dict[str, Any]:
    """Wait for the fork `child`, kill its session, and return the answer."""
    began, ended = time.monotonic(), os.pidfd_open(child)
    try:
        in_time = bool(select.select([ended], [], [], seconds)[0])
    finally:
        os.close(ended)
    for kill in (os.killpg, os.kill):  # it leads no group before it has got to `setsid`
        with contextlib.suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return {
        "status": os.waitstatus_to_exitcode(status) if in_time else None,
        "seconds": time.monotonic() - began,
        "cpu": used.ru_utime + used.ru_stime,
    }


def main() -> None:
    """Answer requests until standard input is closed."""
    answers, parent = os.dup(1), os.getpid()
    os.dup2(2, 1)  # what an import prints must not mix with the answers
    for line in sys.stdin:
        request = json.loads(line)
        import_leading(request["script"])
        child = os.fork()
        if child == 0:
            os.close(answers)
            become(request, parent)
            status = run(request["script"])
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        os.write(answers, json.dumps(await_end(child, request["seconds"])).encode() + b"\n")


if __name__ == "__main__":
    main()
