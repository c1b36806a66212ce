"""A standalone script does what the worker does, because it contains the functions that the worker calls."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held
from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.registry import about, load_attribute, parse_target, target_names
from miscompile.triage.inlining import bare, defined
from miscompile.triage.library_script import Failure, write_front_script
from miscompile.triage.script import write_script

RUNNERS = tuple(name for name in target_names() if about(name).script and load_attribute(about(name).script).sources)

FRONTS = tuple(f"{name}{{via={via}}}" for name in target_names() for via in about(name).fronts)
EVERY = (*RUNNERS, *FRONTS)

SMALL = """<ir_version: 10, opset_import: ["" : 21]>
g ({dtype}[2] x) => ({dtype}[2] y) {{ y = Identity(x) }}"""


def case(dtype: str) -> Case:
    model = onnx.parser.parse_model(SMALL.format(dtype=dtype))
    held = tensor(np.ones(2, np.float32), dtype) if dtype == "bfloat16" else tensor(np.ones(2, np.float32))
    return Case(to_program(read(model.SerializeToString())), ((held,),))


def scripts(name: str) -> Iterator[str]:
    """Yield scripts of one target: for every level, device and transform, with numbers that numpy lacks and without."""
    face = about(name)
    plain = [(level, dict[str, Any]()) for level in face.levels]
    devices = [(face.levels[-1], {"device": device}) for device in face.devices]
    own = [(face.levels[-1], {"transform": Spec(one)}) for one in face.transforms if one != "splice"]
    for dtype in ("float", "bfloat16"):
        item = case(dtype)
        for device in face.devices[1:]:  # builds that differ in nothing else
            held, faulty = (Run(item, name, Build(face.levels[-1], device=one)) for one in ("cpu", device))
            yield write_script(item, Evidence("wrong", "exact", "in a line", faulty, held, "y"))
        for level, options in (*plain, *devices, *own):
            faulty = Run(item, name, Build(level, frozenset(face.passes[:2]), **options))
            evidence = Evidence("wrong", "exact", "in a line", faulty, Run(item, name, Build(face.levels[0])), "y")
            yield write_script(item, evidence, culprits=face.passes[2:3])


def front_scripts(target: str) -> Iterator[str]:
    """Yield the script of a front end."""
    front, held = parse_target(target).front, Held(tensor(np.ones(2, np.float32)))
    assert front is not None
    failure = Failure("wrong", "run", "in a line", "", 0, 0, 0.0, (tensor(-np.ones(2, np.float32)),))
    if front.library == "torch":
        instance = Instance("torch", "torch.neg", "function", (held,))
    else:
        instance = Instance("keras", "keras.ops.negative", "function", (held,))
    yield write_front_script(instance, target, failure, {})


@cache
def scripts_of(target: str) -> tuple[str, ...]:
    return tuple(front_scripts(target) if target in FRONTS else scripts(target))


@pytest.mark.parametrize("name", RUNNERS)
def test_a_script_uses_every_variable_of_its_run(name: str) -> None:
    """The templates of `run` have many branches; one must not set a variable that only another one reads."""
    seen = 0
    for text in scripts_of(name):
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name in ("run", "run_here"):
                names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
                stored = {part.id for part in names if isinstance(part.ctx, ast.Store)}
                assert stored <= {part.id for part in names if isinstance(part.ctx, ast.Load)}, text
                seen += 1
    assert seen


LOWERED = tuple(name for name in RUNNERS if about(name).lowered)


@pytest.mark.parametrize("target", LOWERED)
def test_no_function_of_a_lowering_has_the_name_of_one_of_a_runner(target: str) -> None:
    """A script may contain both, because lowered programs bring functions of their own."""
    taken = defined(load_attribute(about(target).script).sources)
    lines = lines_of(target)
    assert isinstance(lines, ScriptLines)
    package = load_attribute(lines.program.partition(":")[0] + ":LOWERINGS")
    texts = [path.read_text("utf-8") for path in files(package).iterdir() if path.name.endswith(".py")]
    names = {node.name for text in texts for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert names
    assert not {name for name in names & taken if not name.startswith("_")}


def functions(text: str) -> dict[str, ast.stmt]:
    found = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {node.name: node for node in found}


def lines_of(target: str) -> ScriptLines | FrontLines:
    front = parse_target(target).front
    lines: ScriptLines | FrontLines = load_attribute(about(target).script if front is None else front.script)
    return lines


def worker_of(target: str) -> str:
    """Return the module of the adapter."""
    spec = parse_target(target)
    return (spec.about.adapter if spec.front is None else spec.front.adapter).partition(":")[0]


def text_of(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return re.sub("  # (noqa|type: ignore).*", "", Path(spec.origin).read_text("utf-8"))


class Plain(ast.NodeTransformer):
    """Drops the annotations of parameters and variables, as scripts do."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(part) if isinstance(part, ast.FunctionDef) else part for part in node.body]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return None if node.value is None else ast.Assign([node.target], node.value)


def imported(module: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of this package that `module` imports from, each with a name that it imports."""
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("miscompile.targets"):
            yield from ((str(node.module), alias.name) for alias in node.names)


def behind(module: str, sources: Collection[str]) -> set[str]:
    """Return `module` and all modules of targets that it imports, directly or not; `sources` are not followed."""
    found, left = set[str](), [module]
    while left:
        one = left.pop()
        if one in found or one in sources or find_spec(one) is None:
            continue
        found.add(one)
        left += [origin for origin, _ in imported(one)]
    return {one for one in found if not one.endswith(("script", "__init__"))}


def named(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names and the attributes that code mentions outside its import lines."""
    every = [part for node in nodes for part in ast.walk(node)]
    plain = {part.id for part in every if isinstance(part, ast.Name)}
    return plain | {part.attr for part in every if isinstance(part, ast.Attribute)}


def bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top level binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("name", EVERY)
def test_a_script_contains_the_very_functions_that_the_worker_calls(name: str) -> None:
    trees, texts = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for text in map(text_of, lines_of(name).sources):
        for key, node in functions(text).items():
            trees[key].append(ast.dump(Plain().visit(node)))
        for key, node in functions(bare(text)).items():
            texts[key].append(str(ast.get_source_segment(bare(text), node)))
    seen = set[str]()
    for text in scripts_of(name):
        compile(text, "script", "exec")
        for key, node in functions(text).items():
            if key in trees:
                assert ast.dump(node) in trees[key]
                assert any(written in text for written in texts[key])
                seen.add(key)
    assert len(seen) > 1


@pytest.mark.parametrize("name", EVERY)
def test_the_worker_calls_what_a_script_calls(name: str) -> None:
    """No function in a module for scripts is for scripts alone: the worker names it, or what the worker names does."""
    sources = lines_of(name).sources
    parts = {key: node for source in sources for node in ast.parse(text_of(source)).body for key in bound(node)}
    reached, left = set[str](), named(ast.parse(text_of(one)) for one in behind(worker_of(name), sources))
    while left := (left & set(parts)) - reached:
        reached |= left
        left = named(parts[key] for key in left)
    for text in scripts_of(name):
        own = [node for node in ast.parse(text).body if not bound(node) & set(parts)]
        called = {part.id for node in own for part in ast.walk(node) if isinstance(part, ast.Name)} & set(parts)
        assert called
        assert called <= reached


@pytest.mark.parametrize("name", EVERY)
def test_the_worker_imports_what_the_script_contains(name: str) -> None:
    """The worker or another module that it imports from the same folders, so that no copy of a function is meant."""
    sources = set(lines_of(name).sources)
    pairs = [pair for module in behind(worker_of(name), sources) for pair in imported(module)]
    reached = {origin for origin, _ in pairs} | {f"{origin}.{one}" for origin, one in pairs}
    left = reached & sources
    while left:
        more = {origin for source in left for origin, _ in imported(source)} - reached
        reached, left = reached | more, more & sources
    assert sources <= reached


@pytest.mark.parametrize("name", EVERY)
def test_a_script_imports_nothing_of_ours(name: str) -> None:
    for text in scripts_of(name):
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not any(one.startswith("miscompile") for one in names)


@pytest.mark.parametrize("name", EVERY)
def test_the_modules_of_a_script_import_nothing_of_ours_but_each_other(name: str) -> None:
    sources = lines_of(name).sources
    for module in sources:
        for node in ast.walk(ast.parse(text_of(module))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("miscompile"):
                assert node.module in sources


@pytest.mark.parametrize("name", [name for name in RUNNERS if about(name).lowered])
def test_a_lowered_program_may_call_its_values_like_functions_of_the_script(name: str) -> None:
    words = ["tensor", "run", "feeds", "LEVELS", "settings_for", "compile_function", "problem"]
    nodes = " ".join(f"{after} = Add({before}, w)" for before, after in pairwise(["x", *words, "y"]))
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}, float[2] seen = {{1, 2}}> {{ {nodes} }}"""
    text = text.replace("Add(problem, w)", "Add(problem, seen)")
    program = to_program(read(onnx.parser.parse_model(text).SerializeToString()))
    item = Case(program, ((tensor(np.ones(2, np.float32)),),))
    held, faulty = (Run(item, name, Build(level)) for level in ("off", "full"))
    found = write_script(item, Evidence("wrong", "exact", "in a line", faulty, held, "y"))
    bound = [key for key in functions(found) if key in words]
    assert sorted(bound) == sorted(set(bound))
    assert "tensor_2 = " in found
    assert "\nseen_2 = tensor(" in found
    assert not re.search(r"^(tensor|seen|problem) = ", found, re.MULTILINE)


def test_every_target_with_scripts_has_a_runner() -> None:
    """But for the toy: it is part of this package, so that its scripts import it."""
    assert {name for name in target_names() if about(name).script} - set(RUNNERS) == {"toy"}
