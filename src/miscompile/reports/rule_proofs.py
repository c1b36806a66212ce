"""The page on what is proved of each rewrite rule, in Markdown."""

from collections import Counter
from collections.abc import Sequence

from miscompile.transforms.rules.proofs.prove import STATUSES, RuleProof

_HEAD = """# What is proved of the rewrite rules

`miscompile rules --prove --graphs 0 --trials 0 --markdown > docs/rule-proofs.md` makes this page.

Each rule is instantiated on small tensors. Elements that both sides compute by the same operators from the same
operands are equal in every type. What remains is proved for all values: on integers and truth values by the laws of
rings and of order, at every width at once, or by z3 at each width; on floats by the laws of order, or by z3 in each
of the four formats. Rules that round are proved equal in exact arithmetic.

The exceptions on floats are what an evaluation of both sides found, bit for bit: on all float16 and all bfloat16
numbers for one operand; on all pairs of float8 numbers, and float16 numbers against special ones, for two operands; on
special float16 numbers for more. A point at which the sides differ counts for the first of these reasons that fits:
only the sign of a zero; a NaN or an infinity among the operands; overflow; a subnormal number; rounding.

`sizes` is the greatest rank and the greatest size of an axis among the instances; a `+` says that they are a sample of
those up to these bounds. [Adding a rule](adding-a-rule.md) has the details.
"""


def page(proofs: Sequence[RuleProof]) -> str:
    """Return the page on `proofs`: the counts, and a table with a row for each rule."""
    lines = [_HEAD, f"| part | rules | {' | '.join(STATUSES)} |", "|---|---:|---:|---:|---:|---:|"]
    for part in ("integers", "floats", "status"):
        counts = Counter(found for proof in proofs if (found := getattr(proof, part)))
        cells = (str(counts.total()), *(str(counts[status]) for status in STATUSES))
        lines.append(f"| {'as a whole' if part == 'status' else part} | {' | '.join(cells)} |")
    lines.extend(["", "| rule | integers | floats | exceptions on floats | by | sizes | notes |"])
    lines.append("|---|---|---|---|---|---|---|")
    lines.extend(_row(proof) for proof in proofs)
    return "\n".join(lines) + "\n"


def _row(proof: RuleProof) -> str:
    shares = ", ".join(f"{why} {100 * share:.2g}%" for why, share in proof.exceptions)
    points = f"none of {proof.points} points" if proof.points else ""
    sizes = f"{proof.rank}, {proof.size}{'' if proof.complete else '+'}"
    parts = (proof.integers or "-", proof.floats or "-", shares or points or "-")
    cells = (f"`{proof.rule}`", *parts, ", ".join(proof.methods) or "-", sizes, proof.reason or "-")
    return f"| {' | '.join(cells)} |"
