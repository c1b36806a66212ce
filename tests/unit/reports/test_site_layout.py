"""The layered layout: edges lead downwards, and no two boxes overlap."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from site_stores import HOSTILE, a_model

from miscompile.core.case import Program
from miscompile.graph.emit import to_program
from miscompile.reports.site.graphs import MOST_NODES, draw_graph, draw_program, marks_of
from miscompile.reports.site.layout import layered_layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]], int]:
    count = draw(st.integers(1, 12))
    sizes = [(float(draw(st.integers(10, 200))), float(draw(st.integers(10, 80)))) for _ in range(count)]
    inputs = draw(st.integers(0, count - 1))
    pairs = [(one, other) for one in range(count) for other in range(max(one + 1, inputs), count)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    return sizes, edges, inputs


@settings(max_examples=60)
@given(graph=graphs())
def test_edges_lead_downwards_and_no_boxes_overlap(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]], int],
) -> None:
    sizes, edges, inputs = graph
    found = layered_layout(sizes, edges, range(inputs))
    for (start, end), route in zip(edges, found.routes, strict=True):
        assert found.centres[start][1] < found.centres[end][1]
        heights = [y for _, y in route]
        assert heights == sorted(heights)
    boxes = [(*centre, *size) for centre, size in zip(found.centres, sizes, strict=True)]
    for x, y, width, height in boxes:
        assert x - width / 2 >= -0.01
        assert x + width / 2 <= found.width + 0.01
        assert y + height / 2 <= found.height + 0.01
    for one, other in combinations(boxes, 2):
        apart = abs(one[0] - other[0]) >= (one[2] + other[2]) / 2 - 0.01
        assert apart or abs(one[1] - other[1]) >= (one[3] + other[3]) / 2 - 0.01


def test_an_empty_graph_has_no_size() -> None:
    assert layered_layout([], []).height == 0


def test_a_drawing_has_inputs_nodes_and_outputs_with_types() -> None:
    drawn = draw_graph(a_model().graph, "y", {("v", "y")})
    assert [(box.role, box.lines[0]) for box in drawn.boxes] == [
        ("input", "x"), ("node", "Add"), ("node", "Relu"), ("wrong", "y"),
    ]  # fmt: skip
    assert [line.marked for line in drawn.lines] == [False, True, False]
    assert drawn.boxes[2].lines[-1] == "> y: float32[2]"


def test_long_names_do_not_widen_a_box() -> None:
    drawn = draw_graph(a_model(HOSTILE * 3).graph)
    assert all(len(line) <= 34 and "\n" not in line for box in drawn.boxes for line in box.lines)


def test_programs_that_cannot_be_drawn_have_no_drawing() -> None:
    assert draw_program(Program("instance", b"{}", (), ())) is None
    assert draw_program(Program("onnx", b"no model", (), ())) is None
    model = a_model()
    nodes = model.graph.nodes[:1] * (MOST_NODES + 1)
    large = type(model)(type(model.graph)("g", model.graph.inputs, model.graph.outputs, nodes), model.opsets)
    assert draw_program(to_program(large)) is None


def test_marks_are_read_from_the_edges_of_a_barrier() -> None:
    assert marks_of({"resisted": {"edges": ["x1>v3: operand-order held by if", "odd"]}}) == {("x1", "v3")}
    assert marks_of({}) == marks_of({"resisted": "odd"}) == set()
