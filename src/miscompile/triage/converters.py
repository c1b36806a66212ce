"""Attribution of a front end's failure to the conversion function of the operator (OPERA, section IV-C).

A failure counts as a bug of the conversion function, because several operators share one function. The function is
read, in this order, from the frames of the error, from the source file or the operation that the message of a C++
compiler names, and from the conversion functions that the front end ran; else the operator itself is blamed.
"""

import re
from collections.abc import Sequence

from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome, Raised
from miscompile.core.verdict import FindingKind
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import layer_of
from miscompile.targets.registry import parse_target

_SOURCES = (
    re.compile(r"(?:frontends?|front_end)/[\w/]*?([\w-]+/(?:src/)?(?:op|ops|translators?)/[\w/]*\.cpp)"),
    re.compile(r"src/(op/[\w/]+\.cpp)"),
    re.compile(r"(?:conversion|translation|converting|translating) of (?:operation |op )?[`'\"]?([\w:.]+::[\w.]+)"),
)
"""Where a compiler in C++ names the place of a conversion: its source file, or the operation."""


def converter_of(instance: Instance, outcome: Outcome, converters: str, seen: Sequence[str]) -> str:
    """Return the conversion function to blame.

    `converters` is the front end's regular expression for files of conversion functions, `seen` are the conversion
    functions that ran for the program, the most specific last.
    """
    if isinstance(outcome, Raised):
        framed = _in_frames(outcome.frames, converters)
        if framed:
            return framed
        for source in _SOURCES:
            found = source.search(outcome.message)
            if found:
                return found[1]
    return seen[-1] if seen else layer_of(instance).api


def front_end_signature(
    target: str, kind: FindingKind, instance: Instance, outcome: Outcome, seen: Sequence[str] = (), *, reason: str = ""
) -> Signature:
    """Return the signature of a failure of the front end `target` (a spec): it names the conversion function.

    Refusals of one function for different reasons are different bugs.
    """
    spec = parse_target(target)
    converters = spec.front.converters if spec.front is not None else spec.about.converters
    return Signature(
        target, kind, str(getattr(outcome, "stage", "")), (converter_of(instance, outcome, converters, seen),), reason
    )


def _in_frames(frames: Sequence[str], converters: str) -> str:
    """Return `file.py:function` of the innermost frame that is a conversion function; an empty text without one."""
    if not converters:
        return ""
    pattern = re.compile(converters)
    for frame in frames:
        path, _, rest = frame.partition(":")
        function = rest.partition(":")[2].partition(".<locals>")[0]
        if pattern.search(path) and function and not function.startswith("<"):
            return f"{path.rpartition('/')[2]}:{function}"
    return ""
