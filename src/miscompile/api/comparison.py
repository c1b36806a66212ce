"""The comparison rules alone: are two results of a program the same, but for what rounding explains?"""

from miscompile.api.models import Arrays, OnnxModel, feed_of, model_of, tensors_of
from miscompile.base.errors import ModelError, UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.environments.resolve import versions_of
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.check import check
from miscompile.graph.emit import to_program
from miscompile.ops.analysis import exact_outputs
from miscompile.oracles.compare import contradiction
from miscompile.oracles.montecarlo import joined, noise_seed, noise_twins
from miscompile.oracles.supplied import Comparison, differing, judge_supplied
from miscompile.targets.registry import DEFAULT_TARGET
from miscompile.triage.reduce.capture import ReferenceCapture
from miscompile.triage.reduce.defined import Guard
from miscompile.triage.reduce.draft import take_apart


def compare(
    actual: Arrays,
    expected: Arrays,
    program: OnnxModel,
    inputs: Arrays | None = None,
    *,
    target: str = DEFAULT_TARGET,
    limit_seconds: float = 30.0,
) -> Comparison:
    """Compare two results of `program` on `inputs`, and say of each element whether rounding explains the difference.

    `actual` and `expected` are the outputs, and `inputs` the inputs, by name or in the order of the model; inputs with
    a default are left out. Element types that numpy lacks are arrays of `ml_dtypes`, or their words as unsigned
    integers; an absent output is missing in one result and makes it wrong. Zeros of either sign are equal, and so are
    two NaN.

    Outputs that every order of evaluation computes alike (integers, elements that are only moved, sums of small
    integers) must agree in every bit. For the others, if they differ, the program runs on `target` without optimisation
    a dozen times in a worker process, with noise of a few units in the last place on every use of a float value: how
    far an element moves is how far rounding can move it. It takes seconds, and at most `limit_seconds` for the runs.
    There is no tolerance to set. Which of both results is right is not assumed.

    Without `inputs`, results of a program that has inputs are `undecided` unless they are equal. So are elements
    that are not finite in the program itself, programs that `target` does not run, and programs with undefined
    behaviour on these inputs, such as an integer division by zero. Raises UsageError for arrays
    that do not fit the model, and for an invalid model; MissingCompilerError when `target` is not installed.
    """
    versions_of(target)  # raises when the compiler is not here
    model = model_of(program)
    check(model)
    bare = to_program(model)
    feed = None if inputs is None and bare.inputs else feed_of(inputs or (), bare.inputs)
    exact = frozenset[str]()
    if feed is not None:
        exact = exact_outputs(model, {port.name: value for port, value in zip(bare.inputs, feed, strict=True)})
    case = Case(to_program(model, exact), () if feed is None else (feed,))
    ports = case.program.outputs
    want, got = (
        Values((tuple(tensors_of(given, ports, name)),)) for given, name in ((expected, "expected"), (actual, "actual"))
    )
    if breach := contradiction(ports, want):
        raise UsageError(f"expected: '{ports[breach.output].name}' is {breach.detail}")
    noise: Outcome | str = "without the inputs the effect of rounding is unknown"
    if feed is not None and differing(ports, want, got):
        noise = _noise(case, target, limit_seconds)
    return Comparison(judge_supplied(ports, want, got, noise))


def _noise(case: Case, target: str, limit_seconds: float) -> Outcome | str:
    """Return the outcome of the noisy runs on the target's unoptimised build, or the reason why there are none."""
    try:
        twins = noise_twins(case, noise_seed(case))
    except ModelError as error:
        return f"the effect of rounding cannot be measured: {error}"
    with LocalPool(target, 1, Limits(seconds=limit_seconds)) as pool:
        if not Guard(ReferenceCapture(pool, target, Build("off")))(take_apart(case)):
            return "the program has undefined behaviour on these inputs"
        return joined(pool.run([Run(twin, target, Build("off"), "judge") for twin in twins]))
