"""Lowering of programs of torch by ExecuTorch, and their execution by its runtime; standalone scripts contain the
functions that they need."""

import functools
import logging
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import torch
import torch._export.utils
from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, naive
from executorch.exir.passes import MemoryPlanningPass
from executorch.runtime import Runtime

from miscompile.targets.executorch.names import GROUPING, REUSE, VIEWS


def configure() -> None:
    """Configure torch for one thread, and without messages of its exporter."""
    torch.set_num_threads(1)
    torch.backends.nnpack.set_flags(False)  # warns on many processors
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"torch\.|executorch|miscompile|__main__")


def remember_operators() -> None:
    """Collect torch's composite operators once: a build asks for them several times, which takes a second."""
    place: Any = torch._export.utils
    name = "_collect_all_valid_cia_ops_for_namespace"
    setattr(place, name, functools.cache(getattr(place, name)))


def lowered_bytes(graph: Any, level: str, off: Collection[str] = ()) -> bytes:  # noqa: ANN401 - an ExportedProgram
    """Return the program that ExecuTorch makes of a captured graph, without what is `off`."""
    delegated = level == "full"
    edge = to_edge_transform_and_lower(graph, partitioner=partitioners(off)) if delegated else to_edge(graph)
    return bytes(edge.to_executorch(backend_config(off)).buffer)


def partitioners(off: Collection[str]) -> list[Any]:
    """Return XNNPACK's partitioner for the operators that are on; none if there are none, because it takes an empty
    list for all of them."""
    chosen = [config for config in ALL_PARTITIONER_CONFIGS if config.__name__ not in off]
    return [XnnpackPartitioner(configs=chosen, per_op_mode=GROUPING in off)] if chosen else []


def backend_config(off: Collection[str]) -> Any:  # noqa: ANN401 - of ExecuTorch
    """Return the options of the last step of the lowering."""
    suite = MemoryPlanningAlgorithmSuite(algo_list=[naive]) if REUSE in off else None
    planning = MemoryPlanningPass(memory_planning_algo=suite)
    return ExecutorchBackendConfig(memory_planning_pass=planning, remove_view_copy=VIEWS not in off)


class Loaded:
    """A program in ExecuTorch's runtime, which must outlive its methods."""

    def __init__(self, buffer: bytes) -> None:
        self.program = Runtime.get().load_program(buffer)
        self.method = self.program.load_method("forward")

    def run(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run once; results are copied out of the program's memory.

        A tensor without elements that was made of an array has strides at which the runtime aborts; its copy has not.
        """
        copies = [torch.empty(value.shape, dtype=value.dtype).copy_(value) for value in given]
        return [value.clone() for value in self.method.execute(copies)]
