"""The vote of onnx's reference implementation on two builds of one compiler that differ.

The check `levels` takes the unoptimised build for right. Where that build has the bug and a pass only hides it, the
finding would accuse the optimised one. The reduced program is small, so triage asks the reference implementation, and
the issue text says with which build it agrees.
"""

from collections.abc import Mapping
from typing import Literal

from miscompile.base.errors import ModelError
from miscompile.core.examination import Examination
from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Violated
from miscompile.oracles.majority import REFERENCE, Ballot, count_votes
from miscompile.oracles.montecarlo import joined, noise_seed, noise_twins
from miscompile.oracles.narrow import fit_of
from miscompile.transforms.catalogue import alters

SidedWith = Literal["reference", "faulty", "neither", ""]
"""The build that the vote agrees with, as evidence names the two; empty where there is no vote, or for both builds."""


def reference_vote(final: Examination, runner: Runner, narrowed: Mapping[str, str]) -> SidedWith:
    """Return with which of the two builds in `final` onnx's reference implementation agrees.

    `narrowed` maps the types that the compiler computes in a narrower type by design. There is no vote on a program
    that the reference implementation does not run, and none on other findings than wrong values.
    """
    if not isinstance(final.verdict, Violated) or final.verdict.evidence.kind != "wrong":
        return ""
    evidence, sound, wrong = final.verdict.evidence, final.reference, final.faulty
    case = evidence.faulty.case
    if alters(evidence.faulty.build.transform):  # the reference implementation runs the program itself alone
        return ""
    if evidence.reference is None or not isinstance(sound, Values) or not isinstance(wrong, Values):
        return ""
    fit = fit_of(case, narrowed)
    if fit == "overflows":
        return ""
    run = Run(case, REFERENCE, Build("off"), "judge")
    (outcome,) = runner.run([run])
    if not isinstance(outcome, Values):
        return ""
    try:
        twins = noise_twins(case, noise_seed(case), narrowed)
    except ModelError:
        twins = ()
    noises = runner.run([Run(twin, evidence.faulty.target, Build("off"), "judge") for twin in twins])
    ballots = Ballot(evidence.reference, sound), Ballot(evidence.faulty, wrong), Ballot(run, outcome)
    counted = count_votes(ballots, joined(noises) if noises else None, exact=fit == "fits")
    home = next(group for group in counted.all if ballots[2] in group)
    if ballots[0] in home:
        return "" if ballots[1] in home else "reference"
    return "faulty" if ballots[1] in home else "neither"
