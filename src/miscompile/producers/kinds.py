"""Kinds of producers: the type of a kind, its options, and all kinds by name, from this package and from others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from miscompile.base.plugins import Catalogue
from miscompile.core.ports import Producer
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support
from miscompile.producers.synthesis.corpus import Corpus


@dataclass(frozen=True, slots=True)
class ProducerContext:
    """The inputs of a producer besides its options.

    `support` holds the calls that the targets support, `seeds` are those that the user named. `targets` are the names
    of the compilers under test; `lowered` tells whether one of them takes no ONNX, `functions` whether all take
    functions of ONNX. `corpus` stores seeds with new behaviour (None: they are discarded).
    """

    support: Support
    seeds: tuple[Seed, ...] = ()
    targets: tuple[str, ...] = ()
    lowered: bool = False
    functions: bool = True
    corpus: Corpus | None = None


def nothing_more(_: object) -> None:
    """Accept all options, because their constructor has checked them."""


@dataclass(frozen=True, slots=True)
class ProducerKind:
    """A kind of producer that a spec can name, such as `strict{nodes=12}`.

    `options` is a frozen dataclass whose fields are the options of the spec, each with a default; one of them is
    `share`, the producer's share among several. A campaign's own choices go into the fields `nodes`, `max_rank`,
    `max_dim`, `motifs`, `ops`, `dtypes`, `opsets` and `patterns`, where there are such. `make` returns a producer; it
    raises UsageError when nothing is left to generate. `check` raises UsageError or StoreError for options that name
    something of no use, such as a damaged file; a command calls it before anything is started.

    `guided` is the value of the field `guidance` for `--guidance` (`off` for `--no-guidance`). With `own_opsets`, the
    default of `opsets` holds for campaigns as well, as far as the targets read these. `needs_seeds`: the user must name
    seeds. `brings_patterns`: its programs have operators and dtypes of their own, so a campaign with chosen operators
    or dtypes omits the producer unless the user names it. `finite`: its producer is a `FiniteProducer`, which is the
    only one of its campaign.
    """

    name: str
    options: type[Any]
    make: Callable[[Any, ProducerContext], Producer]
    check: Callable[[Any], object] = nothing_more
    guided: str = "steer"
    own_opsets: bool = False
    needs_seeds: bool = False
    brings_patterns: bool = False
    finite: bool = False


_PACKAGE = "miscompile.producers"

PRODUCERS = Catalogue(
    "producer",
    "miscompile.producers",
    ProducerKind,
    {
        "strict": f"{_PACKAGE}.strict:STRICT",
        "sweep": f"{_PACKAGE}.sweep:SWEEP",
        "pairs": f"{_PACKAGE}.pairs:PAIRS",
        "seeded": f"{_PACKAGE}.seeded:SEEDED",
        "dynamic": f"{_PACKAGE}.dynamic.producer:DYNAMIC",
        "disruptive": f"{_PACKAGE}.disruptive.producer:DISRUPTIVE",
        "hirfuzz": f"{_PACKAGE}.hirfuzz.producer:HIRFUZZ",
        "special": f"{_PACKAGE}.special:SPECIAL",
        "oatest": f"{_PACKAGE}.synthesis.producer:OATEST",
    },
)
"""Each is a module's `ProducerKind`, imported when a spec names it."""
