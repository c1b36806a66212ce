"""What is known of a target without importing its compiler, and what its adapter must do in the worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from miscompile.base.specs import Spec
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ScriptLines:
    """What a target adds to a standalone reproducer; the rest of the script is the same for all.

    `sources` are modules of this package, such as the target's `runner`, that import the compiler and nothing of ours
    but each other; those that others import from come first. The script contains those of their functions that its
    other text names, and whatever these name, word for word but for type annotations. `imports` are import lines for
    further names that the other text may use. `levels` gives for each build level a Python expression;
    `run` is a Jinja template of the function `run(level, off=())`, which builds `model` (an onnx.ModelProto) at
    `level`, the value of one of these expressions, without the passes `off`, and returns a list with, for each feed
    in `feeds` (dicts from input name to numpy array), the list of outputs as numpy arrays. Helper functions may
    follow it. `versions` is a Python expression list for `print`. `setup` are lines that must stand before all
    imports, such as those that set environment variables; `prelude` is a template of what must be defined before the
    model. The templates' variables are described in the script writer.

    A target that takes no ONNX names in `program` (`module:function`) a function from the graph model, and names that
    are `taken`, to a `Lowered` program: the script then has its source in place of `model`, and defines each of its
    constants as `tensor(array, "dtype")`, a function that one of `sources` must define.
    """

    levels: Mapping[str, str]
    run: str
    versions: str
    sources: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    prelude: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class FrontLines:
    """The lines by which a front end completes a standalone script that uses the library's API.

    The script defines `model`, which the library can call on the list `inputs`, before these lines. `run` is the
    source of a function `converted(model, inputs)` that converts and compiles the model as this front end does, runs
    it and returns its outputs as a flat list of numpy arrays. `sources` are modules whose functions it may call, and
    `imports` import lines for other names that it uses, as in `ScriptLines`. `setup` are lines that must precede all
    imports, `versions` is a Python expression list for `print`. With `isolated` the script contains the expected
    outputs instead of running the model in the library, because the library's back end cannot share a process with
    this front end.
    """

    imports: tuple[str, ...]
    run: str
    versions: str
    setup: tuple[str, ...] = ()
    isolated: bool = False
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Front:
    """A front end of a compiler: the way in for programs of a DL library, single operators with their parameters.

    `library` is the kind of programs that it takes (`torch`, `keras`). `adapter` (`module:Class`) loads in place of the
    compiler's own; it converts a program before it compiles it. `distributions` are PyPI names that the way needs
    beside the compiler. `converters` is a regular expression for the source files that hold conversion functions, as
    they stand in frames (`file:line:function`): the innermost such frame tells whose fault an error is. `script`
    (`module:name`) are the `FrontLines` of its scripts. `title` says in a few words which way this is.
    """

    library: str
    title: str
    adapter: str
    distributions: tuple[str, ...]
    converters: str = ""
    script: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """A target's face. It never imports the compiler.

    `levels` are the build levels from `off` to `full`. `adapter` and `script` are import paths `module:name`:
    the adapter class, loaded in the worker alone, and the `ScriptLines` of a reproducer. `distributions` are the
    PyPI names whose versions identify the target, the compiler's own first; `extra` is the name of this package's
    optional dependency that installs them. `twins` are groups of pass names that stand in for each other, so that
    bisection must switch them together.

    `prepare` (`module:function`) names a function without arguments that returns the environment variables which
    the compiler's process must be started with; it runs in that process before the adapter is imported, and the
    process starts itself anew when a variable differs. `narrowed` says which element types the compiler computes in
    a narrower one by design, such as `{"float64": "float32"}`; an integer type in place of itself does not wrap
    around. `switches` says in a line how passes are observed and
    switched, or why they cannot be.
    """

    name: str
    title: str
    kinds: tuple[str, ...]
    levels: tuple[str, ...]
    adapter: str
    script: str
    distributions: tuple[str, ...]
    max_opset: int
    max_ir_version: int
    passes: tuple[str, ...] = ()
    twins: tuple[tuple[str, ...], ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """Names of the options a spec of this target may carry (`toy{bugs=...}`), each with a line of help."""
    extra: str = ""
    prepare: str = ""
    narrowed: Mapping[str, str] = field(default_factory=dict)
    switches: str = ""
    trace: str = ""
    """A module that says, run as a child process, which phase of the compilation brings a fault in; for compilers
    without switches for single passes. See `triage/phase.py` for what goes in and out."""
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Passes that are only the frames of rewrite rules, as observation names them, each with its rules, which are
    passes that can be switched off one by one. Which rule changed a program is then found by leaving it alone on."""
    forced: bool = False
    """The switches are not the compiler's own: what only goes wrong with passes off may be the switching's fault, so
    random subsets are not tried, and a finding must show in the build as shipped."""
    recycle: int | None = None
    """Batches after which a worker is replaced, for a compiler that leaks; None: as many as usual."""
    transforms: tuple[str, ...] = ()
    """Names of the transforms that the adapter itself applies, in the compiler's own representation."""
    variants: Mapping[str, tuple[Spec, ...]] = field(default_factory=dict)
    """For those of `transforms` that have options worth choosing between, the specs to draw from."""
    settle: str = ""
    """`module:function` from the spec of one of `transforms` to a spec of the same with whatever decides which program
    it is, such as the full path of a file. It runs before anything is built, without the compiler, and raises SpecError
    for one that cannot be meant. Every target with `transforms` names one."""
    library: str = ""
    """That one of `transforms` whose option `library` is a folder of patterns in the compiler's own representation."""
    lowered: bool = False
    """The compiler takes no ONNX: programs are lowered to its own front end, by us."""
    functions: bool = False
    """Model-local functions of ONNX are taken."""
    sequences: tuple[str, ...] = ()
    """Passes that can be run in any order before the level's own pipeline (`Build.sequence`)."""
    dynamic: bool = False
    """A program with symbolic sizes is compiled once, and then runs at every size."""
    devices: tuple[str, ...] = ("cpu",)
    """Devices that the adapter can build for (`Build.device`); whether this machine has them is asked at run time."""
    fronts: Mapping[str, Front] = field(default_factory=dict)
    """Front ends for programs of DL libraries, by the name that a spec gives: `openvino{via=torch}`."""
    role: Literal["compiler", "reference", "library", "example"] = "compiler"
    """`reference` and `library` say what programs of their kind compute, and compilers are held against them; an
    `example` has planted bugs. Programs are generated for all but a library; only a compiler has front ends."""
    converters: str = ""
    """For a compiler whose reader of ONNX is written in Python, a regular expression for the source files of its
    conversion functions, as in `Front`."""
    witness: int | None = None
    """For a compiler that is asked whether it agrees with onnx's reference evaluator where another does not: its place
    among those, the lowest first. None: it is not asked."""
    other_builds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For distributions that this target or its front ends need: those that put the same package in the same place, for
    a device."""
    package: str = ""
    """The package that holds `about.py`, with `known.toml`, `README.md` and perhaps `environment.toml` beside it. The
    registry fills it in."""


class Session(Protocol):
    """A compiled program."""

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`; return the outputs in the order of the program's output ports.

        Raises whatever the compiler raises; the worker turns that into an outcome.
        """
        ...


class Adapter(Protocol):
    """The worker's side of a target. Constructed once a worker with the options of the target spec.

    The constructor may import and configure the compiler but must not compile anything: workers fork from a
    process in which it has run, and most compilers hang when forked after a compilation.
    """

    def build(self, program: Program, build: Build) -> Session:
        """Compile `program` as `build` says. Raises whatever the compiler raises."""
        ...

    def fired(self, log: str) -> tuple[str, ...]:
        """Names of the passes that changed the program, read from what the compiler printed while it compiled.

        Called only when the build asked to `observe`; a target that observes by other means ignores `log`.
        """
        ...
