"""Compilers that give a second opinion on the results of onnx's reference evaluator."""

from collections.abc import Iterator

from miscompile.targets.registry import faces, installed


def second_implementations(accused: str = "") -> Iterator[str]:
    """Yield the compilers that give a second opinion when another compiler disagrees with onnx's reference
    evaluator.

    The evaluator has bugs of its own (older operator sets, Loop), and it is not the standard. It also runs models
    that the standard does not require compilers to accept. Compilers that are not installed, and the disagreeing
    compiler, are omitted; the order is that of `About.witness`.
    """
    witnesses = [(face.witness, face) for face in faces() if face.witness is not None]
    for _, face in sorted(witnesses, key=lambda one: one[0]):
        if face.name != accused and all(installed(one) is not None for one in face.distributions):
            yield face.name
