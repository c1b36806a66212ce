"""The rewrite rules of the e-graph with their certificates, proofs and the number of programs that each applies to.

Rules are certified and proved anew and counted on generated graphs, so that the listing shows what was found here.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from miscompile.base.rng import stream
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.egraph.transform import Saturated, saturated
from miscompile.transforms.rules.certify import Certificate, certify
from miscompile.transforms.rules.library import chosen, user_rules
from miscompile.transforms.rules.proofs.prove import STATUSES, RuleProof, prove
from miscompile.transforms.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class RulebookEntry:
    """A rule with its certificate and proof (None: not wanted).

    `matches` and `unions` are counts over the generated graphs.
    """

    rule: Rule
    certificate: Certificate | None
    matches: int
    unions: int
    proof: RuleProof | None = None

    @property
    def sound(self) -> bool:
        """Tell whether neither the trials nor the proof found a counterexample."""
        tested = self.certificate is None or self.certificate.accepted
        return tested and (self.proof is None or self.proof.status != "refuted")

    def as_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        rule = self.rule
        return {
            "name": rule.name,
            "group": rule.group,
            "left": str(rule.left),
            "right": str(rule.right),
            "kind": rule.kind,
            "exactness": rule.exactness,
            "dtypes": sorted(rule.dtypes),
            "source": rule.source,
            "certificate": None if self.certificate is None else _plain(self.certificate),
            "proof": None if self.proof is None else _proved(self.proof),
            "matches": self.matches,
            "unions": self.unions,
        }


def rulebook(
    words: str, file: Path | None, trials: int, graphs: int, seed: int, proofs: bool = False
) -> tuple[RulebookEntry, ...]:
    """Return the rules and groups that `words` name (joined by `+`, empty: all), or those of the user's `file`.

    Each is certified with `trials` trials (0: not at all), proved if `proofs` says so (about a second a rule), and
    counted on `graphs` generated graphs of ten operators.
    Raises SpecError for an unknown name, and for a file that is malformed or holds an unsound rule.
    """
    rules = chosen(words) if file is None else user_rules(file)
    matches, unions = _counted(words, graphs, seed) if file is None else (Counter[str](), Counter[str]())
    return tuple(
        RulebookEntry(
            rule,
            certify(rule, trials, seed) if trials else None,
            matches[rule.name],
            unions[rule.name],
            prove(rule) if proofs else None,
        )
        for rule in rules
    )


def _counted(words: str, graphs: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Count over generated graphs how often each rule matched, and how often it merged two classes."""
    producer = Strict(replace(GeneratorOptions(), control=0.0, containers=0.0), Support(open=True))
    matches, unions = Counter[str](), Counter[str]()
    for number in range(graphs):
        case = producer.propose(stream(seed, "rulebook", number))
        transform = Saturated(seed=number, groups=words, share=1.0, structural=1.0)
        _, tally = saturated(read(case.program.payload), transform)
        matches.update(tally.matches)
        unions.update(tally.unions)
    return matches, unions


def _plain(certificate: Certificate) -> dict[str, Any]:
    return {**asdict(certificate), "accepted": certificate.accepted}


def _proved(proof: RuleProof) -> dict[str, Any]:
    return {**asdict(proof), "exceptions": dict(proof.exceptions), "text": proof.text}


def totals(entries: Sequence[RulebookEntry]) -> dict[str, int]:
    """Return how many rules there are, are certified, have a proof of each status, and applied to some graph."""
    proofs = Counter(entry.proof.status for entry in entries if entry.proof is not None)
    return {
        "rules": len(entries),
        "groups": len({entry.rule.group for entry in entries}),
        "certified": sum(entry.certificate is not None and entry.certificate.accepted for entry in entries),
        "applied": sum(entry.unions > 0 for entry in entries),
        **({status: proofs[status] for status in STATUSES} if proofs else {}),
    }
