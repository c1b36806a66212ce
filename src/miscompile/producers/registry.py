"""Every kind of producer by name: those of this package, and those of other packages (`miscompile.producers`)."""

from miscompile.base.plugins import Catalogue
from miscompile.producers.kinds import ProducerKind

_PACKAGE = "miscompile.producers"

PRODUCERS = Catalogue(
    "producer",
    "miscompile.producers",
    ProducerKind,
    {
        "strict": f"{_PACKAGE}.strict:STRICT",
        "sweep": f"{_PACKAGE}.sweep:SWEEP",
        "seeded": f"{_PACKAGE}.seeded:SEEDED",
        "dynamic": f"{_PACKAGE}.dynamic.producer:DYNAMIC",
        "disruptive": f"{_PACKAGE}.disruptive.producer:DISRUPTIVE",
        "hirfuzz": f"{_PACKAGE}.hirfuzz.producer:HIRFUZZ",
        "oatest": f"{_PACKAGE}.synthesis.kind:OATEST",
    },
)
"""Each is a module's `ProducerKind`, imported when a spec names it."""
