"""Conditions of the pages of RNN, GRU and LSTM."""

import math

from miscompile.oracles.unspecified.pages.node import NodeView, PageCondition


def recurrent(gates: int) -> tuple[tuple[str, PageCondition], ...]:
    """Return the conditions of a recurrent layer with so many gates."""

    def state(place: int) -> PageCondition:
        def holds(node: NodeView) -> bool:
            shape, x, r = node.shape(place), node.shape(0), node.shape(2)
            if shape is None or x is None or r is None or len(x) != 3 or len(r) != 3:
                return shape is None
            batch = x[0] if node.whole("layout", 0) else x[1]
            directions = (batch, r[0]) if node.whole("layout", 0) else (r[0], batch)
            return shape == (*directions, r[2])

        return holds

    def lengths(node: NodeView) -> bool:
        shape, x = node.shape(4), node.shape(0)
        if shape is None or x is None or len(x) != 3:
            return shape is None
        steps, batch = (x[1], x[0]) if node.whole("layout", 0) else (x[0], x[1])
        return shape == (batch,) and all(1 <= item <= steps for item in node.numbers(4))

    def width(place: int, count: int) -> PageCondition:
        def holds(node: NodeView) -> bool:
            shape, r = node.shape(place), node.shape(2)
            return shape is None or (r is not None and len(r) == 3 and shape == (r[0], count * r[2]))

        return holds

    def clip(node: NodeView) -> bool:
        value = node.instance.kwargs.get("clip")
        return not isinstance(value, int | float) or 0 < value < math.inf

    def hidden(node: NodeView) -> bool:
        r, size = node.shape(2), node.instance.kwargs.get("hidden_size")
        return size is None or (r is not None and len(r) == 3 and r[2] == size and r[2] > 0)

    def weights(node: NodeView) -> bool:
        x, w, r = node.shape(0) or (), node.shape(1) or (), node.shape(2) or ()
        if not len(x) == len(w) == len(r) == 3:
            return False
        directions = 2 if node.text("direction", "forward") == "bidirectional" else 1
        return w == (directions, gates * r[2], x[2]) and r == (directions, gates * r[2], r[2])

    return (
        ("W is [directions, gates * hidden_size, input_size], R likewise", weights),
        ("hidden_size is that of R", hidden),
        ("B is [directions, 2 * gates * hidden_size]", width(3, 2 * gates)),
        ("sequence_lens are [batch], within the sequence", lengths),
        ("initial_h is [directions, batch, hidden_size]", state(5)),
        ("initial_c is [directions, batch, hidden_size]", state(6)),
        ("P is [directions, 3 * hidden_size]", width(7, 3)),
        ("clip is a positive threshold", clip),
    )
