"""Who is asked besides onnx's reference evaluator, before its word is taken for what a standard says."""

from collections.abc import Iterator

from miscompile.targets.registry import installed, parse_target

SECOND_IMPLEMENTATIONS = ("onnxruntime", "openvino", "tvm", "tinygrad")
"""Compilers that are asked, in this order, whether they agree with onnx's reference evaluator where another does not:
the evaluator has bugs of its own (older operator sets, Loop), and is what somebody wrote, not what the standard says.
It also runs models that nobody must take."""


def second_implementations(accused: str = "") -> Iterator[str]:
    """Yield the witnesses that are installed, but for the accused."""
    for name in SECOND_IMPLEMENTATIONS:
        if name != accused and all(installed(one) is not None for one in parse_target(name).about.distributions):
            yield name
