"""Where each compiler's own tests of a library's operators are, and how they are counted.

Paths are those of the repositories in 2026, with older ones beside them where an older checkout is counted as well.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from miscompile.base.errors import UsageError
from miscompile.migration.ranking import counting
from miscompile.migration.ranking.checkout import Checkout

Included = Callable[[str], bool]
"""Tells whether a case of onnx's own suite of node tests is run, by its name."""


@dataclass(frozen=True, slots=True)
class Part:
    """Tests of one kind: files by regular expression, and the function that counts the operators in one of them."""

    files: str
    count: Callable[[str, str], Counter[str]]


@dataclass(frozen=True, slots=True)
class Suite:
    """A compiler's run of the node tests that come with onnx: the file that says which, and how it is read."""

    file: str
    included: Callable[[str], Included]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the tests of one compiler for the operators of one library are counted, in one of its repositories."""

    repository: str
    parts: tuple[Part, ...]
    suite: Suite | None = None
    excluded: str = ""
    """A file that lists the tests of `parts` which are not run, a part of their pytest name a line."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a checkout holds: uses in the tests themselves and, apart, in cases of onnx's suite that are run."""

    files: int
    uses: Mapping[str, int]
    suite: Mapping[str, int] = field(default_factory=dict)
    cases: int = 0


def apply(recipe: Recipe, checkout: Checkout) -> Found:
    """Count. Raises UsageError when the checkout has none of the files, so that no layout is mistaken for no tests."""
    files, uses = 0, Counter[str]()
    excluded = _lines(checkout, recipe.excluded)
    for part in recipe.parts:
        for name, text in checkout.files(re.compile(part.files)):
            files += 1
            if recipe.excluded:
                uses.update(counting.keras_in_python(text, name, excluded))
            else:
                uses.update(part.count(text, name))
    if not uses:
        raise UsageError(f"{checkout.path} has none of the tests that are counted; is it {recipe.repository}?")
    if recipe.suite is None:
        return Found(files, uses)
    found = list(checkout.files(re.compile(re.escape(recipe.suite.file))))
    if not found:
        raise UsageError(f"{checkout.path} has no {recipe.suite.file}; is it {recipe.repository}?")
    included = recipe.suite.included(found[0][1])
    run = [operators for name, operators in node_suite().items() if included(name)]
    return Found(files + 1, uses, Counter(operator for operators in run for operator in operators), len(run))


def _lines(checkout: Checkout, file: str) -> list[str]:
    if not file:
        return []
    texts = [text for _, text in checkout.files(re.compile(re.escape(file)))]
    return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


@cache
def node_suite() -> Mapping[str, tuple[str, ...]]:
    """Return the operators of every node case of the installed onnx, by the case's name."""
    from miscompile.producers.slices.node_cases import node_cases  # makes all cases, and only counting needs them

    return {case.name: (case.op,) for case in node_cases()}


def tvm_suite(text: str) -> Included:
    """Read the list of operators whose cases TVM runs; a case belongs to one when its name begins with it."""
    lists = {
        target.id: node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "_INCLUDE_OPS" not in lists:
        raise UsageError("TVM's run of onnx's suite is not written as it was in 2026; the recipe must follow it")
    names = ast.literal_eval(lists["_INCLUDE_OPS"])
    pattern = re.compile(rf"test_(?:{'|'.join(map(re.escape, names))})(?:_.*)?")
    return lambda name: pattern.fullmatch(name) is not None


def tinygrad_suite(text: str) -> Included:
    """Read the patterns that tinygrad excludes; those under a condition on the device hold for its own machines."""
    tree = ast.parse(text)
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    excluded = [
        re.compile(call.args[0].value)
        for call in calls
        if ast.unparse(call.func) == "backend_test.exclude"
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    ]
    return lambda name: not any(pattern.search(f"{name}_cpu") for pattern in excluded)


def onnxruntime_suite(text: str) -> Included:
    """Read the lists of filters that ONNX Runtime applies on every device."""
    data = json.loads("\n".join(line.partition("//")[0] for line in text.splitlines()))
    lists = ("current_failing_tests", "unsupported_usages", "failing_permanently",
             "tests_with_pre_opset7_dependencies", "test_with_types_disabled_due_to_binary_size_concerns")  # fmt: skip
    filters = [item for name in lists for item in data.get(name, ()) if isinstance(item, str)]
    excluded = re.compile("|".join(f"(?:{one})" for one in [*filters, "FLOAT16"]))
    return lambda name: not excluded.search(f"{name}_cpu")


RECIPES: dict[tuple[str, str], tuple[Recipe, ...]] = {
    ("tvm", "onnx"): (
        Recipe(
            "apache/tvm",
            (Part(r"tests/python/relax/test_frontend_onnx\.py", counting.onnx_in_python),),
            Suite("tests/python/relax/test_frontend_onnx_backend.py", tvm_suite),
        ),
    ),
    ("tvm", "torch"): (
        Recipe(
            "apache/tvm",
            (
                Part(
                    r"tests/python/relax/test_frontend_(from_exported_program|from_fx|dynamo)\.py",
                    counting.torch_in_python,
                ),
            ),
        ),
    ),
    ("onnxruntime", "onnx"): (
        Recipe(
            "microsoft/onnxruntime",
            (Part(r"onnxruntime/test/providers/cpu/.*\.cc", counting.onnx_in_cpp),),
            Suite("onnxruntime/test/testdata/onnx_backend_test_series_filters.jsonc", onnxruntime_suite),
        ),
    ),
    ("onnxruntime", "torch"): (
        Recipe(
            "microsoft/onnxscript",
            (
                Part(r"tests/function_libs/torch_lib/e2e_ops_tests\.py", counting.torch_in_python),
                Part(r"tests/function_libs/torch_lib/ops_test_data\.py", counting.torch_in_database),
            ),
        ),
        Recipe("pytorch/pytorch", (Part(r"test/onnx/.*test_.*\.py", counting.torch_in_python),)),
    ),
    ("openvino", "onnx"): (
        Recipe(
            "openvinotoolkit/openvino",
            (
                Part(
                    r"(src/frontends/onnx/tests/models|ngraph/test/models/onnx)/.*\.prototxt", counting.onnx_in_prototxt
                ),
            ),
        ),
    ),
    ("openvino", "torch"): (
        Recipe(
            "openvinotoolkit/openvino",
            (Part(r"tests/layer_tests/pytorch_tests/test_.*\.py", counting.torch_in_python),),
        ),
    ),
    ("openvino", "keras"): (
        Recipe(
            "keras-team/keras",
            (Part(r"keras/src/(layers|ops|activations|backend)/.*_test\.py", counting.keras_in_python),),
            excluded="keras/src/backend/openvino/excluded_concrete_tests.txt",
        ),
    ),
    ("inductor", "torch"): (
        Recipe("pytorch/pytorch", (Part(r"test/inductor/test_.*\.py", counting.torch_in_python),)),
    ),
    ("iree", "onnx"): (
        Recipe(
            "iree-org/iree-test-suites",
            (Part(r"onnx_ops/onnx/node/generated/[^/]+/model\.mlir", counting.onnx_in_mlir),),
        ),
        Recipe("llvm/torch-mlir", (Part(r"test/Conversion/TorchOnnxToTorch/.*\.mlir", counting.onnx_in_mlir),)),
    ),
    ("tinygrad", "onnx"): (
        Recipe(
            "tinygrad/tinygrad",
            (
                Part(
                    r"test/(external/external_test_onnx_(ops|runner)|backend/test_quantize_onnx)\.py",
                    counting.onnx_in_python,
                ),
            ),
            Suite("test/external/external_test_onnx_backend.py", tinygrad_suite),
        ),
    ),
}
"""By compiler and library; several recipes are for several repositories, whose counts are added."""
