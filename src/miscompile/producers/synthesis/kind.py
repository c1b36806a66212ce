"""Synthesis as a kind of producer: the patterns that its options name, put into seeds."""

from miscompile.producers.kinds import ProducerContext, ProducerKind
from miscompile.producers.synthesis.options import OatestOptions, patterns_for
from miscompile.producers.synthesis.producer import Synthesised


def _make(options: OatestOptions, context: ProducerContext) -> Synthesised:
    return Synthesised(
        options,
        context.support,
        patterns_for(options),
        context.targets,
        context.seeds,
        functions=context.functions,
        corpus=context.corpus,
    )


OATEST = ProducerKind("oatest", OatestOptions, _make, patterns_for, brings_patterns=True)
"""The kind `oatest`."""
