"""Is everything true that equality saturation finds? Run as `python -m evaluation.polyjuice.soundness`.

Evaluates every term of the e-graphs of generated graphs, and of graphs planted for rules that apply rarely, and prints
how often each rule applied.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping

from evaluation.polyjuice.plant import plant
from evaluation.polyjuice.verify import Verified, table, verify
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.egraph.program import program_of
from miscompile.transforms.egraph.saturation import RuleTally, SaturationLimits, chosen, saturate
from miscompile.transforms.rules.library import library

_ENOUGH = 20
"""Effective uses after which a rule needs no planted graphs."""
_MOST_PLANTED = 200


def models(nodes: int, count: int, seed: int) -> list[Model]:
    """Return `count` generated graphs of about `nodes` operators."""
    producer = Strict(GeneratorOptions(nodes=nodes, spread=0.0, variants=1), Support(open=True))
    return [read(producer.propose(stream(seed, "egraph", nodes, index)).program.payload) for index in range(count)]


def check(count: int, seed: int, limits: SaturationLimits) -> tuple[Verified, RuleTally, list[str]]:
    """Verify the e-graphs of `count` generated graphs, then plant for the rules that fired too rarely.

    Returns what was verified, how often rules fired, and the rules that never got to fire often enough.
    """
    found, total = Verified(), RuleTally()
    for number, model in enumerate(models(8, count, seed)):
        _verified(model, number, limits, "", found, total)
    rare = []
    for rule in library():
        for number in range(_MOST_PLANTED):
            if total.unions[rule.name] >= _ENOUGH:
                break
            try:
                model = plant(rule, stream(seed, "plant", rule.name, number))
            except RejectedDraft:
                continue
            _verified(model, number, SaturationLimits(1, limits.nodes, 4), rule.name, found, total)
        if total.unions[rule.name] < _ENOUGH:
            rare.append(rule.name)
    return found, total, rare


def _verified(
    model: Model, seed: int, limits: SaturationLimits, groups: str, found: Verified, total: RuleTally
) -> None:
    program = program_of(model)
    tally = saturate(program, chosen(groups), limits, seed)
    verify(program, seed, found)
    for mine, all_of_it in (
        (tally.matches, total.matches),
        (tally.unions, total.unions),
        (tally.refused, total.refused),
        (tally.unsupported, total.unsupported),
    ):
        all_of_it.update(mine)


def report(found: Verified, total: RuleTally, rare: list[str]) -> int:
    """Print what the check found; return 1 when something is wrong."""
    names = [rule.name for rule in library()]
    print("   fired  matched  rule")
    print(table(names, total.matches, total.unions))
    print(f"\n{found.checked} terms: {found.exact} exact, {found.close} up to rounding, {len(found.bad)} bad;")
    print(f"{found.unbounded} with infinities or NaN were not held against their class")
    print(f"refused: {dict(total.refused) or 'none'}; without operator in the opset: {total.unsupported.total()}")
    print(f"fired fewer than {_ENOUGH} times: {', '.join(rare) or 'none'}")
    for line in found.bad[:10]:
        print(f"bad: {line}")
    return 1 if found.bad or total.refused else 0


def summary(found: Verified, total: RuleTally, rare: list[str]) -> dict[str, object]:
    """Return the check as JSON values."""
    fired: Mapping[str, int] = Counter({rule.name: total.unions[rule.name] for rule in library()})
    counts = {"exact": found.exact, "close": found.close, "unbounded": found.unbounded, "bad": found.bad}
    return {**counts, "refused": total.refused, "fired": fired, "rare": rare}


def main() -> int:
    """Verify, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=220, help="generated graphs")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--structural", type=float, default=SaturationLimits().structural, help="structural rules for each value"
    )
    parser.add_argument("--terms", type=int, default=2000, help="limit on the terms of an e-graph")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    outcome = check(
        options.graphs, options.seed, SaturationLimits(options.rounds, options.terms, options.structural, 1.0)
    )
    if options.json:
        print(json.dumps(summary(*outcome)))
        return 1 if outcome[0].bad or outcome[1].refused else 0
    return report(*outcome)


if __name__ == "__main__":
    sys.exit(main())
