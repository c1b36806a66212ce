"""Judging a build that sees the program in another form: what may be refused, and whose noise counts."""

import random
from dataclasses import replace

import numpy as np
from onnx.reference import ReferenceEvaluator

from miscompile.base.specs import parse_spec, stored_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Raised, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.core.verdict import Holds, Inconclusive, Needs, Violated
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.judge import is_noise, judge_pair
from miscompile.oracles.optimisation import THREADS, Optimisation
from miscompile.transforms.catalogue import present

SPEC = parse_spec("egraph{seed=1}")
KIND = TensorType("float32", (4,))


def case() -> Case:
    """x * (y + z), where y + z nearly cancel: x * y + x * z rounds far worse."""
    nodes = (Node("Add", ("y", "z"), ("s",)), Node("Mul", ("x", "s"), ("p",)))
    graph = Graph("g", tuple(ValueInfo(name, KIND) for name in "xyz"), (ValueInfo("p", KIND),), nodes)
    rng = np.random.Generator(np.random.PCG64(1))
    x, y = rng.uniform(1, 2, 4).astype(np.float32), rng.uniform(1, 2, 4).astype(np.float32)
    z = (-y * (1 + np.float32(2**-10))).astype(np.float32)
    return Case(to_program(Model(graph, {"": 18})), ((tensor(x), tensor(y), tensor(z)),))


def runs(spec: str = "egraph{seed=1}") -> list[Run]:
    own = case()
    return [Run(own, "toy", Build("off")), Run(own, "toy", Build("full", transform=stored_spec(spec)))]


def execute(shown: Case) -> Values:
    names = [port.name for port in shown.program.inputs]
    evaluator = ReferenceEvaluator(shown.program.payload)
    outputs = [port.name for port in shown.program.outputs]
    return Values(
        tuple(
            tuple(
                tensor(np.asarray(v))
                for v in evaluator.run(outputs, {n: t.array for n, t in zip(names, feed, strict=True)})
            )
            for feed in shown.feeds
        )
    )


def first(values: Values) -> Array:
    """Return the first output for the first feed."""
    found = values.results[0][0]
    assert found is not None
    return found.array


def judged(asked: list[Run], outcomes: list[Outcome]) -> object:
    verdict: object = judge_pair(asked, outcomes, "strict")
    for _ in range(3):
        if not isinstance(verdict, Needs):
            break
        asked, outcomes = [*asked, *verdict.runs], [*outcomes, *(execute(run.case) for run in verdict.runs)]
        verdict = judge_pair(asked, outcomes, "strict")
    return verdict


def test_the_noise_of_both_programs_is_asked_for() -> None:
    asked = runs()
    want, (share,) = execute(asked[0].case), present(asked[0].case, SPEC)
    wrong = Values(((Tensor("float32", first(want) * np.float32(1.5)),),))
    verdict = judge_pair(asked, [want, wrong], "strict")
    assert isinstance(verdict, Needs)
    assert {run.case.recipe["of"] for run in verdict.runs} == {"", str(SPEC)}
    assert all(is_noise(run) and not run.build.transform for run in verdict.runs)
    assert share.case.program != asked[0].case.program
    assert isinstance(judged(asked, [want, wrong]), Violated)


def test_what_the_other_program_rounds_is_no_bug() -> None:
    """The distributed product is off by many units in the last place of the original, and by few of its own."""
    own = case()
    x, y, z = (value.array for value in own.feeds[0])
    distributed = (x * y + x * z).astype(np.float32)
    want = execute(own)
    assert np.abs(distributed - first(want)).max() > 0
    for seed in range(40):
        spec = f"egraph{{groups=distributive+commutative, seed={seed}}}"
        (share,) = present(own, parse_spec(spec))
        if share.case.program == own.program:
            continue
        assert isinstance(judged(runs(spec), [want, execute(share.case)]), Holds)
        return
    raise AssertionError("no seed distributes")


def test_a_build_judged_later_gets_the_noise_that_it_lacks() -> None:
    own = case()
    oracle = Optimisation("toy", lesser_chance=1.0, families=(((SPEC,),),))
    asked = (*runs(""), Run(own, "toy", Build("full", transform=SPEC)))
    want = execute(own)
    near = Values(((Tensor("float32", first(want) * np.float32(1 + 2e-5)),),))
    wrong = Values(((Tensor("float32", first(want) * np.float32(1.5)),),))
    outcomes: tuple[Outcome, ...] = (want, near, wrong)
    verdict = oracle.judge(asked, outcomes)
    rounds = 0
    while isinstance(verdict, Needs):
        asked, outcomes = (*asked, *verdict.runs), (*outcomes, *(execute(run.case) for run in verdict.runs))
        verdict, rounds = oracle.judge(asked, outcomes), rounds + 1
        assert rounds <= 3
    assert isinstance(verdict, Violated)
    assert verdict.evidence.faulty.build.transform == SPEC


def test_a_refusal_of_the_transformed_program_is_no_finding() -> None:
    want = execute(case())
    for refusal in (Unsupported("compile", "no If"), Rejected("compile", "no")):
        assert judge_pair(runs("wrap{seed=1}"), [want, refusal], "strict") == Inconclusive("transform refused")
    assert isinstance(judge_pair(runs("functions{seed=1}"), [want, Unsupported("compile", "no")], "strict"), Violated)
    assert isinstance(judge_pair(runs("wrap{seed=1}"), [want, Raised("compile", "Fail", "7")], "strict"), Violated)


def test_what_a_device_lacks_is_no_finding() -> None:
    asked = runs("")
    asked[1] = replace(asked[1], build=Build("full", device="cuda"))
    assert judge_pair(asked, [execute(case()), Unsupported("run", "no")], "strict") == Inconclusive(
        "no values on that device"
    )


def test_transforms_that_go_together_share_a_seed_and_threads_are_a_build() -> None:
    together = (parse_spec("egraph{pick=most}"), parse_spec("egraph{pick=least}"))
    oracle = Optimisation("toy", lesser_chance=1.0, families=((together,), ((THREADS,),)))
    seen = [oracle.plan(case(), random.Random(seed))[2:] for seed in range(60)]
    pairs = [plan for plan in seen if len(plan) == 2]
    assert pairs
    for first, second in pairs:
        assert second.build.transform is not None
        assert first.build.transform == together[0].with_options(seed=second.build.transform.get("seed"))
        assert second.build.transform.with_options(pick="most") == first.build.transform
    threads = [plan[0].build.threads for plan in seen if len(plan) == 1]
    assert set(threads) == {2, 3, 4}
