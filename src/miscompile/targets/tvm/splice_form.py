"""The form in which TVM's adapter splices a pattern of a library into the imported program, as a form's spec says.

Unlike all other forms it computes something else than the case's own program. So what is built of it is to be held
against another build of the same form alone, and its sensitivity to rounding is that of the spliced program: with
`noise` the adapter weaves noise into that one, and takes a last input, a number that tells which noise (`noise.py`).
That way nothing depends on where a pattern would come to stand in another program.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_options, split_spec
from miscompile.targets.tvm.forms import relax_form

SPLICE = "splice"
"""The form's name in `Build.form`."""

ENDING = ".relax.json"
"""How the names of a library's files end. Each is an object: `name`; `digest`, the structural hash of its module;
`script` and `constants`, the module, as `text.py` says it, with the function `pattern`; `passes` that changed a
module with the pattern in TVM's own tests, and `wakes`, those that change it when they run alone; `granularity`;
`origin`, a test; `operators`, and the types of `holes` and `outputs`."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Options of `splice.splice`; prints and parses as `splice{library=lib, name=FuseOps-1a2b3c4d, seed=3, call=yes}`.

    `library` is a folder of patterns; without a `name` the seed draws one. With `noise` the program computes with
    noise, for whoever judges it.
    """

    library: str = ""
    name: str = ""
    seed: int = 0
    call: bool = False
    noise: bool = False

    def __post_init__(self) -> None:
        """Raise SpecError without a library."""
        if not self.library:
            raise SpecError(f"{SPLICE} needs library=FOLDER, as the harvest of TVM's tests makes it")


def splice_form(form: str) -> Splice | None:
    """Return the options of a form `splice{...}`, None for any other form.

    Raises SpecError for unknown options, and without a library.
    """
    if form.partition("{")[0].strip() != SPLICE:
        return None
    name, options = split_spec(form)
    return parse_options(Splice, options, name)


def settled(form: str) -> str:
    """Return a form of the adapter as it is.

    Raises SpecError for one of other options, and for a library that is not there, is empty, or lacks the pattern.
    """
    relax_form(form)
    options = splice_form(form)
    if options is not None:
        chosen(options)
    return form


def names(library: str) -> tuple[str, ...]:
    """Return the names of a library's patterns, in order. Raises SpecError where there are none."""
    found = tuple(sorted(file.name.removesuffix(ENDING) for file in Path(library).glob(f"*{ENDING}")))
    if not found:
        raise SpecError(f"{library} holds no patterns (*{ENDING})")
    return found


@lru_cache(256)
def entry(library: str, name: str) -> Mapping[str, Any]:
    """Return what the file of one pattern holds. Raises SpecError where there is no such pattern."""
    try:
        found: Mapping[str, Any] = json.loads((Path(library) / f"{name}{ENDING}").read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise SpecError(f"{library} has no pattern '{name}': {error}") from None
    return found


def chosen(form: Splice) -> Mapping[str, Any]:
    """Return the pattern that a form names, or that its seed draws."""
    if form.name:
        return entry(form.library, form.name)
    found = names(form.library)
    return entry(form.library, found[form.seed % len(found)])


def spelled(form: str) -> str:
    """Return Python source that defines `pattern()`, the module of the pattern of a form, and how to splice it.

    It needs `tvm`, `numpy` as `np` and `base64`. Raises SpecError as the functions above do.
    """
    options = splice_form(form)
    assert options is not None, "only asked for this form"
    found = chosen(options)
    rows = "".join(f"    {json.dumps(one)},\n" for one in found["constants"])
    table = f"[\n{rows}]" if rows else "[]"
    return (
        f"# From {found['origin']} of TVM, a test of {', '.join(found['passes'])}.\n"
        f'PATTERN = """\n{found["script"]}\n"""\nCONSTANTS = {table}\n'
        f'SPLICE = {{"seed": {options.seed}, "call": {options.call}}}\n' + _PARSE
    )


_PARSE = '''

def pattern():
    """Return the module of the pattern."""
    table = []
    for one in CONSTANTS:
        array = np.frombuffer(base64.b64decode(one["data"]), np.dtype(one["dtype"])).reshape(one["shape"])
        table.append(relax.const(tvm.runtime.tensor(array)))
    known = {**script_parser._default_globals(), "metadata": {"ir.GenericConst": table}}
    return script_parser.parse(PATTERN, known)
'''
