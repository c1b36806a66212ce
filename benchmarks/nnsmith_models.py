"""Writes models of NNSmith with inputs, for `python -m evaluation mutants --nnsmith`. Run it in NNSmith's environment.

For each model it writes NAME.onnx and NAME.npz (the inputs that NNSmith chose), and into `seconds.json` the CPU seconds
that the model took. The environment is the one that `nnsmith_peer` makes.
"""

import argparse
import functools
import json
import random
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch.onnx


def main() -> None:
    """Generate models until there are enough, or the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU seconds")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    warnings.simplefilter("ignore")
    options.folder.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, float] = {}
    begin = time.process_time()
    make = _maker(options.nodes)
    rng = random.Random(options.seed)
    failed = 0
    while len(seconds) < options.models and time.process_time() - begin < options.seconds:
        name, start = f"{len(seconds):06}", time.process_time()
        try:
            model, inputs = make(rng.getrandbits(31))
        except Exception as error:  # noqa: BLE001 - NNSmith's generation and export fail in many ways
            failed += 1
            print(f"failed: {type(error).__name__}", flush=True)
            continue
        (options.folder / f"{name}.onnx").write_bytes(model)
        np.savez(options.folder / f"{name}.npz", **inputs)
        seconds[name] = time.process_time() - start
        (options.folder / "seconds.json").write_text(json.dumps(seconds), "utf-8")
    print(f"{len(seconds)} models, {failed} failures, {time.process_time() - begin:.0f} CPU s")


def _maker(nodes: int) -> Callable[[int], tuple[bytes, dict[str, np.ndarray]]]:
    """Return a function from a seed to the bytes of a model and its inputs, as NNSmith's `model_gen` makes them."""
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.backends.factory import BackendFactory
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize import Model
    from nnsmith.narrow_spec import auto_opset
    from nnsmith.util import hijack_patch_requires

    kind = Model.init("onnx", backend_target="cpu")
    kind.add_seed_setter()
    factory = BackendFactory.init("onnxruntime", target="cpu", optmax=True)
    opset = auto_opset(kind, factory)
    hijack_patch_requires([])
    activate_ext(opset=opset, factory=factory)

    def make(seed: int) -> tuple[bytes, dict[str, np.ndarray]]:
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        gen = model_gen(opset=opset, method="symbolic-cinit", seed=seed, max_nodes=nodes, timeout_ms=10000)
        model = kind.from_gir(gen.make_concrete())
        model.refine_weights()
        oracle = model.make_oracle()
        return model.native_model.SerializeToString(), dict(oracle.input)

    return make


if __name__ == "__main__":
    main()
