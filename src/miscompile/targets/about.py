"""The description of a target, which does not import its compiler, and the protocols of its adapter in the worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from miscompile.base.specs import Spec
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ScriptLines:
    """The parts of a standalone script that a target provides; the rest of the script is the same for all targets.

    `sources` are modules of this package, such as the target's `runner`, that import only the compiler and each
    other; a module comes after those that it imports. The script contains the functions that its other text names,
    and everything that these name, verbatim except for type annotations. `imports` are import lines for
    further names that the other text may use. `levels` gives for each build level a Python expression;
    `run` is a Jinja template of the function `run(level, off=())`, which builds `model` (an onnx.ModelProto) at
    `level`, the value of one of these expressions, without the passes `off`, and returns a list with, for each feed
    in `feeds` (dicts from input name to numpy array), the list of outputs as numpy arrays. Helper functions may
    follow it. `versions` is a Python expression list for `print`. `setup` are lines that must precede all imports,
    such as those that set environment variables; `prelude` is a template of the definitions before the model. The
    script writer documents the templates' variables.

    A target that does not read ONNX sets `program` (`module:function`) to a function from the graph model, and a set
    of `taken` names, to a `Lowered` program. The script then contains the program's source instead of `model`, and
    defines each of its constants as `tensor(array, "dtype")`, a function that one of `sources` must define. With
    `calls`, such a program computes with tensors that can be added, so that another function may call it several times.

    `settings` maps the names of the compiler's options that differ from its defaults to the statements, in `sources`,
    that set them. A report names those without which the bug does not show.

    `plain` is a template of `run` as a user of the compiler writes it, with default options. It is used where the bug
    shows with it; it renders to an empty text for cases that it cannot run.
    `plain_levels` are the expressions for its levels.
    """

    levels: Mapping[str, str]
    run: str
    versions: str
    sources: tuple[str, ...] = ()
    plain: str = ""
    plain_levels: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    prelude: str = ""
    program: str = ""
    calls: bool = False


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
class CpuCap:
    """A setting of the processor features that a compiler may use.

    `variables` are environment variables. `words` is a text of standalone scripts, which names the features, and its
    replacement.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Front:
    """A front end of a compiler for programs of a DL library, which are single operators with their parameters.

    `library` is the kind of programs that it reads (`torch`, `keras`). `adapter` (`module:Class`) replaces the
    compiler's own adapter; it converts a program before it compiles it. `distributions` are PyPI names that the
    front end needs in addition to the compiler. `converters` is a regular expression for the source files of
    conversion functions, as written in stack frames (`file:line:function`); the innermost such frame identifies the
    cause of an error. `script` (`module:name`) are the `FrontLines` of its scripts. `title` describes the front end
    in a few words.
    """

    library: str
    title: str
    adapter: str
    distributions: tuple[str, ...]
    converters: str = ""
    script: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The description of a target. It never imports the compiler.

    `levels` are the build levels from `off` to `full`. `adapter` and `script` are import paths `module:name`:
    the adapter class, loaded only in the worker, and the `ScriptLines` of a reproducer. `distributions` are the
    PyPI names whose versions identify the target, the compiler's own first; `extra` is the name of this package's
    optional dependency that installs them. `twins` are groups of passes that do the same work, so that bisection
    must switch them together.

    `prepare` (`module:function`) names a function without arguments that returns the environment variables that the
    compiler's process requires at its start. The function runs in that process before the adapter is imported, and
    the process restarts itself when a variable differs. `narrowed` maps element types to the narrower ones in which
    the compiler computes by design, such as `{"float64": "float32"}`; an integer type mapped to itself does not wrap
    around. `switches` describes in one line how passes are observed and switched, or why that is impossible.
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
    """The options that a spec of this target may have (`toy{bugs=...}`), each with a line of help."""
    option_passes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The passes, in place of `passes`, of a spec that gives an option which selects another optimiser."""
    extra: str = ""
    prepare: str = ""
    narrowed: Mapping[str, str] = field(default_factory=dict)
    switches: str = ""
    trace: str = ""
    """A module that runs as a child process and finds the phase of the compilation that introduces a fault, for
    compilers without switches for single passes. `triage/phase.py` documents its input and output."""
    cpu_caps: Mapping[str, CpuCap] = field(default_factory=dict)
    """Settings with which the compiler uses other processor features than by default, by the name of the features.
    Empty for a compiler that always uses what the processor has, as ONNX Runtime does."""
    optimised: str = ""
    """`module:function` from an ONNX model as bytes, a level and the passes that are off to the model that the compiler
    has made of it, for compilers that can write it. It is called in a process of its own."""
    upstream: str = ""
    """`module:function` from an `UpstreamStory` to texts by file name: a test in the form of the compiler's own
    repository, where that is no pytest module. It is called in a process of its own."""
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Passes that only apply rewrite rules, by their names in observations, each with its rules. Every rule can be
    switched off. The rule that changed a program is found by a build with only that rule on."""
    masks: tuple[tuple[str, str], ...] = ()
    """Regular expressions, each with a replacement, that remove from error messages where in a program the error is,
    so that one bug has one message: nested bodies, or the operator that meets what another one has left."""
    forced: bool = False
    """Whether the switches are hooks instead of the compiler's options. A failure that only occurs with passes off
    may then be caused by the hooks, so random subsets are not tried, and a finding must occur in the build as
    shipped."""
    recycle: int | None = None
    """The number of batches after which a worker is replaced, for a compiler that leaks memory; None: the default."""
    ci_tests: int = 400
    """The tests of `miscompile ci` by default: what two cores do in less than a minute."""
    transforms: tuple[str, ...] = ()
    """Names of the transforms that the adapter applies, in the compiler's representation."""
    function_transforms: tuple[str, ...] = ()
    """Those of `transforms` that write parts of the program as functions; the check `functions` draws their options."""
    altering: tuple[str, ...] = ()
    """Those of `transforms` that change the program's results, so that an oracle only compares builds with the same
    one. They have an option `noise`, with which the adapter instruments the program with noise."""
    derivatives: tuple[str, ...] = ()
    """Modes of the transform `derivative` (`targets/derivatives.py`), for an adapter that has it."""
    variants: Mapping[str, tuple[Spec, ...]] = field(default_factory=dict)
    """For `transforms` with useful options, the specs from which a campaign draws."""
    repeats: tuple[Spec, ...] = ()
    """Specs of `transforms` that only use a built program in another way (in several threads, with bound memory), so
    that the results must have the bits of a plain run of the same build."""
    settle: str = ""
    """`module:function` from the spec of one of `transforms` to a complete spec of the same transform, for example
    with the full path of a file. It runs before any build, without the compiler, and raises SpecError for an invalid
    spec. Every target with `transforms` has one."""
    library: str = ""
    """The one of `transforms` whose option `library` is a folder of patterns in the compiler's representation."""
    lowered: bool = False
    """The compiler does not read ONNX: this package lowers programs to the compiler's own input language."""
    functions: bool = False
    """The compiler accepts model-local functions of ONNX."""
    sequences: tuple[str, ...] = ()
    """Passes that can run in any order before the pipeline of the level (`Build.sequence`)."""
    dynamic: bool = False
    """A program with symbolic sizes is compiled once, and then runs at every size."""
    devices: tuple[str, ...] = ("cpu",)
    """Devices that the adapter can build for (`Build.device`); their presence on this machine is checked at run
    time."""
    fronts: Mapping[str, Front] = field(default_factory=dict)
    """Front ends for programs of DL libraries, by the name that a spec gives: `openvino{via=torch}`."""
    role: Literal["compiler", "reference", "library", "example"] = "compiler"
    """A `reference` or `library` defines the correct results of programs of its kind, to which compilers are
    compared; an `example` has planted bugs. Programs are generated for all kinds except a library; only a compiler
    has front ends."""
    converters: str = ""
    """For a compiler whose importer of ONNX is written in Python, a regular expression for the source files of its
    conversion functions, as in `Front`."""
    second_implementation: int | None = None
    """The priority of a compiler as a second opinion when another compiler disagrees with onnx's reference
    evaluator; the lowest is asked first. None: it is not asked."""
    executors: tuple[str, ...] = ()
    """For a target that turns a program into another one, the values of its option `executor`: implementations that can
    run the result, the default first. Wrong results count only where two of them show it, because one executor alone
    may be at fault itself."""
    unoptimised: bool = True
    """Whether level `off` is another build than `full`. A target without such a build is compared with itself only
    under transforms of the program, and otherwise with other targets."""
    blocks: tuple[int, ...] = ()
    """Sizes by which the compiler's kernels divide their work: vector widths, channel blocks, tiles of products. A
    share of the generated tensors has sizes around them."""
    quick: bool = False
    """Whether a small program is built and run in a few milliseconds, and seldom ends the process: one of the targets
    that the preset `voters` compares with each other, and that the check `votes` asks."""
    other_builds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For required distributions, the alternative distributions that install the same package for a device."""
    package: str = ""
    """The package that holds `about.py`, with `known.toml`, `README.md` and optionally `environment.toml` beside it.
    The registry sets it."""


class Session(Protocol):
    """A compiled program."""

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`; return the outputs in the order of the program's output ports.

        Raises whatever the compiler raises; the worker turns that into an outcome.
        """
        ...


class Adapter(Protocol):
    """The worker's part of a target. Each worker process has one, constructed with the options of the target spec.

    The constructor may import and configure the compiler but must not compile anything, because workers are forked
    from a process in which it has run, and most compilers hang when forked after a compilation.
    """

    def build(self, program: Program, build: Build) -> Session:
        """Compile `program` by the settings of `build`. Raises whatever the compiler raises."""
        ...

    def fired(self, log: str) -> tuple[str, ...]:
        """Return the names of the passes that changed the program, read from the compiler's output during
        compilation.

        Called only for builds with `observe`; a target that observes by other means ignores `log`.
        """
        ...
