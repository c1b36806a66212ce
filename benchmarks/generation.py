"""CPU microseconds that strict generation spends on a graph, by part. Run as a script.

The graphs are generated once to write down every request for inference, emission and elements, which are then made
again on their own, and once more to be timed as a whole. The rest of the time is spent on sampling: choosing
operators and operands, facts, motifs.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.ops.support import Support
from miscompile.producers import finish, scope
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict

PARTS = {
    "infer": [(scope, "infer_call")],
    "emit": [(finish, name) for name in ("node_field", "tensor_field", "info_body", "assembled")],
    "draw": [(scope, "draw"), (finish, "draw")],
}
"""The functions that make up a part, by the modules that call them."""

_WARM = 300
"""Graphs made beforehand: the first ones fill the caches of fragments, names and types."""


class Recorder:
    """Stands in for the functions of one part and remembers their arguments."""

    def __init__(self, places: Sequence[tuple[Any, str]]) -> None:
        self.calls: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._places = [(module, name, getattr(module, name)) for module, name in places]

    def __enter__(self) -> "Recorder":
        for module, name, function in self._places:
            setattr(module, name, self._recording(function))
        return self

    def __exit__(self, *_: object) -> None:
        for module, name, function in self._places:
            setattr(module, name, function)

    def replay(self) -> None:
        """Make every call again."""
        for function, arguments in self.calls:
            try:
                function(*arguments)
            except ModelError:  # a call that breaks its operator's rules; it was drawn and rejected
                continue

    def _recording(self, function: Callable[..., object]) -> Callable[..., object]:
        def record(*arguments: Any) -> object:  # noqa: ANN401 - whatever the function takes
            self.calls.append((function, arguments))
            return function(*arguments)

        return record


def measure(support: Support, options: GeneratorOptions, graphs: int, seed: int) -> dict[str, float]:
    """Return CPU microseconds per graph: `total`, each of `PARTS`, and the rest as `sample`."""
    recorders = {part: Recorder(places) for part, places in PARTS.items()}
    for recorder in recorders.values():
        with recorder:
            _generate(support, options, graphs, seed)
    timed = {part: _cpu(recorder.replay) for part, recorder in recorders.items()}
    total = _cpu(
        lambda: _generate(support, options, graphs, seed), before=lambda: _generate(support, options, _WARM, seed)
    )
    found = {part: 1e6 * seconds / graphs for part, seconds in {**timed, "total": total}.items()}
    return {"sample": found["total"] - sum(found[part] for part in PARTS), **found}


def _generate(support: Support, options: GeneratorOptions, graphs: int, seed: int) -> None:
    producer = Strict(options, support)
    for index in range(graphs):
        producer.propose(stream(seed, "benchmark", index))


def _cpu(action: Callable[[], None], before: Callable[[], None] | None = None) -> float:
    if before is not None:
        before()
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> int:
    """Measure several rounds and print the fastest, because neighbours on the machine only ever add time."""
    parser = argparse.ArgumentParser(description="CPU microseconds of strict generation per graph, by part.")
    parser.add_argument("--target", default="onnxruntime", help="whose support table is used, or 'open' for none")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    support = Support(open=True) if given.target == "open" else probe_support(Plan(given.target), given.target)
    options = GeneratorOptions(nodes=given.nodes)
    rounds = [measure(support, options, given.graphs, given.seed) for _ in range(max(1, given.rounds))]
    best = min(rounds, key=lambda found: found["total"])
    if given.json:
        print(json.dumps({part: round(value, 1) for part, value in best.items()}))
    else:
        for part, value in best.items():
            print(f"{part:8}{value:8.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
