"""Hooks in Inductor's scheduler and code generator that observe the effects of its settings.

Settings are switched through Inductor's configuration, which does not tell whether they have changed the program.
Each hook observes the code that depends on a setting. Two settings have no effect for the CPU and no hook: see
`about.py`.
"""

import importlib
from typing import Any, Protocol

from miscompile.targets.inductor.switch_runner import replace_method


class Board(Protocol):
    """The receiver of observations."""

    def note(self, name: str) -> None:
        """Record that a pass has changed the program."""
        ...


def see_fusion(board: Board) -> None:
    """Observe horizontal fusion: two nodes are fused although neither reads a result of the other."""
    scheduler = importlib.import_module("torch._inductor.scheduler").Scheduler

    def fuse(original: Any, self: Any, node1: Any, node2: Any, *args: Any) -> Any:  # noqa: ANN401
        if not node2.ancestors & node1.get_operation_names():
            board.note("horizontal_fusion")
        return original(self, node1, node2, *args)

    replace_method(scheduler, "fuse_two_nodes", fuse)


def see_order(board: Board) -> None:
    """Compare the orders of loops and kernels with those that they replace."""
    scheduler = importlib.import_module("torch._inductor.scheduler")
    memory = importlib.import_module("torch._inductor.memory")

    def loops(original: Any, stride_lengths: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        order = original(stride_lengths, *args, **words)
        if order != list(reversed(range(len(stride_lengths[0])))):
            board.note("pick_loop_orders")
        return order

    def kernels(original: Any, nodes: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        ordered = original(nodes, *args, **words)
        if any(one is not other for one, other in zip(nodes, ordered, strict=True)):
            board.note("reorder_for_peak_memory")
        return ordered

    replace_method(scheduler, "pick_loop_order", loops)
    replace_method(memory, "reorder_for_peak_memory", kernels)


def see_reductions(board: Board) -> None:
    """Observe that a reduction is unrolled, or split into several steps."""
    reduction = importlib.import_module("torch._inductor.ir").Reduction

    def unroll(original: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        board.note("unroll_reductions")
        return original(*args, **words)

    def split(original: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        hint, parts = original(*args, **words)
        if parts != 1:
            board.note("split_reductions")
        return hint, parts

    replace_method(reduction, "_unroll_reduction_fn", unroll)
    replace_method(reduction, "num_splits", split)


def see_indices(board: Board) -> None:
    """Observe that a value is computed from constants and indices only, or that a computed index is inlined into an
    access."""
    propagation = importlib.import_module("torch._inductor.index_propagation").IndexPropagation

    def propagate(original: Any, self: Any, name: str, args: Any, words: Any) -> Any:  # noqa: ANN401
        result = original(self, name, args, words)
        if getattr(result, "is_symbolic", False) and name not in ("constant", "index_expr"):
            board.note("constant_and_index_propagation")
        return result

    def index(original: Any, self: Any, index: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        if getattr(index, "is_symbolic", False):
            board.note("constant_and_index_propagation")
        return original(self, index, *args, **words)

    replace_method(propagation, "propagate_sympy", propagate)
    replace_method(propagation, "indirect_indexing", index)


def see_layout(board: Board) -> None:
    """Observe whether the graph is compiled with channels last."""
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering

    def decide(original: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        chosen = original(*args, **words)
        if chosen:
            board.note("layout_optimization")
        return chosen

    replace_method(lowering, "decide_layout_opt", decide)


def see_vectors(board: Board) -> None:
    """Observe that the tail of a vectorised loop is vectorised, or that the heuristic overrules the choice of axes."""
    cpp = importlib.import_module("torch._inductor.codegen.cpp")
    widths: list[int] = []
    axes: list[Any] = []

    def start(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        original(self, *args, **words)
        if self.tail_size not in (None, 0):
            board.note("loop_tail_vectorization")

    def indices(original: Any, self: Any, functions: Any, sizes: Any, width: int) -> Any:  # noqa: ANN401
        chosen = original(self, functions, sizes, width)
        widths[:], axes[:] = [width], chosen
        return chosen

    def select(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        axes.clear()
        factors, chosen, *rest = original(self, *args, **words)
        if axes and (len(chosen) != len(axes) or any(factor not in widths for factor in factors)):
            board.note("tiling_heuristics")
        return (factors, chosen, *rest)

    replace_method(cpp.CppVecKernel, "__init__", start)
    replace_method(cpp.TilingSelect, "_select_tiling_indices", indices)
    replace_method(cpp.TilingSelect, "select_tiling", select)


SIGHTINGS = (see_fusion, see_order, see_reductions, see_indices, see_layout, see_vectors)
"""The hooks are independent: if a version lacks what one hook needs, only the settings of that hook are not
observed."""
