"""Who is asked besides onnx's reference evaluator, before its word is taken for what a standard says."""

from collections.abc import Iterator

from miscompile.targets.registry import faces, installed


def second_implementations(accused: str = "") -> Iterator[str]:
    """Yield the compilers that are asked whether they agree with onnx's reference evaluator where another does not.

    The evaluator has bugs of its own (older operator sets, Loop), and is what somebody wrote, not what the standard
    says. It also runs models that nobody must take. Compilers that are not installed, and the accused, are left out;
    their order is that of `About.witness`.
    """
    witnesses = [(face.witness, face) for face in faces() if face.witness is not None]
    for _, face in sorted(witnesses, key=lambda one: one[0]):
        if face.name != accused and all(installed(one) is not None for one in face.distributions):
            yield face.name
