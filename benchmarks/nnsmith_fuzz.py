"""Runs NNSmith's own fuzzing loop. Executed by the Python of the environment that `nnsmith_peer` makes.

NNSmith 0.1.0 calls `torch.onnx.export` without saying which exporter; since PyTorch 2.9 that means a new one which
NNSmith cannot use. The exporter it was written for is still there and is made the default again.
"""

import functools
import warnings

import torch.onnx


def main() -> None:
    """Hand over to NNSmith, which reads its options from the command line."""
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    warnings.simplefilter("ignore", DeprecationWarning)
    from nnsmith.cli.fuzz import main as fuzz

    fuzz()


if __name__ == "__main__":
    main()
