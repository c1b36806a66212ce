"""Builds for devices with the compilers that are installed: what they say without a device, and what can be seen of the
builds all the same. Each compiler works in a process of its own."""

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pytest

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.engine.devices import lacking, present, require_device
from miscompile.engine.plan import Plan
from miscompile.execution.conformance_models import exhibits
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.targets.devices import CUDA_DRIVER
from miscompile.targets.registry import about, target_names
from miscompile.triage.script import write_script

pytestmark = [pytest.mark.compiler, pytest.mark.process]

MODULES = {name: name for name in ("onnxruntime", "openvino", "tvm", "iree", "tinygrad")}
MODULES |= {"xla": "jax", "inductor": "torch"}
NO_DRIVER = f"this machine has no NVIDIA driver ({CUDA_DRIVER} cannot be loaded)"

TEXTS = {
    "onnxruntime": ("; onnxruntime ", " has no CUDA build, pip install onnxruntime-gpu in its place"),
    "xla": ("; jax ", " has no CUDA plugin, it comes with pip install 'jax[cuda12]'"),
    "inductor": ("; torch ", " has no CUDA build, pip install --force-reinstall torch has one"),
    "iree": ("", ""),
    "tinygrad": ("", ""),
    "tvm": ("", ""),
}
"""What follows the missing driver with the wheels from PyPI's CPU builds, but for the version between the two."""


def installed(name: str) -> bool:
    return find_spec(MODULES[name]) is not None


def has_driver() -> bool:
    code = f"import ctypes; ctypes.CDLL('{CUDA_DRIVER}')"  # in a process of its own: nothing may start it here
    return not subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not installed(name), reason=f"{MODULES[name]} is not installed")


without_driver = pytest.mark.skipif(has_driver(), reason="there is an NVIDIA driver here")


def target(name: str) -> "pytest.ParameterSet":
    return pytest.param(name, marks=needs(name))


def python(code: str, **variables: str) -> str:
    """Run `code` in a process of its own; return what it prints."""
    words = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables}, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@without_driver
@needs("onnxruntime")
def test_a_plan_for_a_missing_device_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^--device cuda: onnxruntime cannot build for cuda here: this machine has no"
    ):
        require_device(Plan("onnxruntime", device="cuda"))
    require_device(Plan("onnxruntime"))


@without_driver
@needs("onnxruntime")
def test_devices_that_are_here() -> None:
    found = present("onnxruntime")
    assert list(found) == ["cpu", "cuda"]
    assert not found["cpu"]
    assert NO_DRIVER in found["cuda"]


@without_driver
@pytest.mark.parametrize("name", [target(name) for name in MODULES])
def test_a_missing_device_is_told_and_leaves_the_compiler_as_it_was(name: str) -> None:
    """Builds for the CPU work before and after: JAX, say, must forget a platform that did not come."""
    shown, device = exhibits()[1], about(name).devices[1]
    usual = "aot" if name == "inductor" else "full"  # which need not wait for a C++ compiler
    builds = [Build("off"), Build("full", device=device), Build(usual), Build(usual, device=device), Build("off")]
    with LocalPool(name, 1, Limits(seconds=60, memory=0)) as pool:
        outcomes = pool.run([Run(shown.case, name, build) for build in builds])
    if isinstance(outcomes[1], Values):
        pytest.skip(f"{device} is here")
    for place in (1, 3):
        outcome = outcomes[place]
        assert isinstance(outcome, Unsupported)
        check_words(name, outcome.message)
    for place in (0, 2, 4):
        outcome = outcomes[place]
        assert isinstance(outcome, Values)
        assert outcome.results[0][0] is not None
        assert outcome.results[0][0].same(shown.expected[0][0])


def check_words(name: str, said: str) -> None:
    assert "\n" not in said
    if name == "openvino":
        assert said.startswith("openvino cannot build for gpu here: OpenVINO finds no Intel GPU")
        assert said.endswith("(the system's package intel-opencl-icd), the wheel on PyPI has the plugin")
        return
    before, after = TEXTS[name]
    beginning = f"{name} cannot build for cuda here: {NO_DRIVER}{before}"
    assert said.startswith(beginning)
    if after:
        assert said.endswith(after)
        assert said[len(beginning) : -len(after)].replace(".", "").replace("+", "").isalnum(), "a version, no more"
    elif name != "tvm":  # which may lack what compiles its kernels as well
        assert said == beginning


@needs("onnxruntime")
def test_a_session_in_which_the_device_does_nothing_is_told_from_others() -> None:
    """A provider that takes no nodes, and is in every wheel, stands in for CUDA; then the CPU's own."""
    said = python(
        """
        from miscompile.core.run import Build
        from miscompile.execution.conformance_models import exhibits
        from miscompile.targets.onnxruntime import adapter, runner

        case = exhibits()[1].case
        target = adapter.OnnxRuntime()
        target._gate._open.add("cuda")
        runner.CUDA_OPTIONS.clear()
        azure, cpu, cuda = "AzureExecutionProvider", "CPUExecutionProvider", "CUDAExecutionProvider"
        for first, second in ((azure, cpu), (cpu, azure), (cuda, cpu)):
            runner.PROVIDERS.update(cuda=first, cpu=second)
            try:
                session = target.build(case.program, Build(device="cuda"))
                print("runs", session.run(case.feeds[0])[0].array[0, 0])
            except Exception as error:
                print(type(error).__name__, error)
        """
    )
    idle, runs, left_out = said.splitlines()[-3:]
    assert idle == "IdleDeviceError AzureExecutionProvider takes no node of this model"
    assert runs.startswith("runs ")
    assert left_out.startswith("NoDeviceError onnxruntime cannot build here: CUDAExecutionProvider does not load")


@needs("xla")
def test_jax_compiles_and_runs_on_the_device_of_the_build() -> None:
    """The second of two CPU devices stands in for CUDA: results and what is compiled must be on it."""
    said = python(
        """
        import os
        from miscompile.targets.xla.environment import prepare
        os.environ.update(prepare())
        os.environ["XLA_FLAGS"] += " --xla_force_host_platform_device_count=2"
        import jax
        from miscompile.core.run import Build
        from miscompile.execution.conformance_models import exhibits
        from miscompile.targets.xla import adapter

        target = adapter.Xla()
        target._gate._open.add("cuda")
        second = jax.devices("cpu")[1]
        original = jax.devices
        jax.devices = lambda name=None: [second] if name == "cuda" else original(name)
        builds = [Build("full"), *(Build(level, device="cuda") for level in ("full", "O0", "off"))]
        for shown in (exhibits()[1], exhibits()[5]):
            for build in builds:
                session = target.build(shown.case.program, build)
                inner, places = session._function, set()
                def spied(*values):
                    results = inner(*values)
                    places.update(device for value in (*values, *results) for device in value.devices())
                    return results
                session._function = spied
                got = session.run(shown.case.feeds[0])
                right = all(a.same(b) for a, b in zip(got, shown.expected[0], strict=True))
                print(build.device, sorted(place.id for place in places), right)
        """
    )
    for line in said.splitlines():
        device, _, rest = line.partition(" ")
        assert rest == ("[0] True" if device == "cpu" else "[1] True")
    assert said.count("cuda") == 6


@needs("iree")
def test_iree_compiles_for_cuda_without_a_device() -> None:
    said = python(
        """
        from miscompile.execution.conformance_models import exhibits
        from miscompile.targets.iree.runner import compile_text, import_text
        from miscompile.targets.iree.flags import cuda_flags, flags

        for shown in (exhibits()[0], exhibits()[1]):
            for level in ("off", "full"):
                code = compile_text(import_text(shown.case.program.payload), flags(level, (), cuda_flags((9, 0))))
                print(b".target sm_89" in code, b"tf32" in code)
        """
    )
    assert said.splitlines() == ["True False"] * 4, "kernels for the newest architecture, none of them with tf32"


@needs("tvm")
def test_tvm_binds_every_loop_nest_to_threads() -> None:
    said = python(
        """
        from miscompile.core.run import Build
        from miscompile.execution.conformance_models import exhibits
        from miscompile.targets.tvm import adapter, runner
        import onnx, tvm

        for shown in (exhibits()[1], exhibits()[2], exhibits()[6]):
            for level in ("off", "default", "cpu", "full"):
                module = runner.read_model(onnx.ModelProto.FromString(shown.case.program.payload))
                target, pipeline = adapter.pipeline_of(Build(level, device="cuda"), "sm_80")
                with tvm.transform.PassContext(opt_level=3), target:
                    module = pipeline(module)
                loops = [f for f in module.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
                print(bool(loops), all("threadIdx" in f.script() for f in loops))
        print(runner.exactly(lambda *given: given)("p", 3, [b"-a", b"--use_fast_math", b"-b"]))
        """
    )
    *loops, options = said.splitlines()
    assert loops == ["True True"] * 12
    assert options == "('p', 2, [b'-a', b'-b'])", "no fast mathematics, which rounds otherwise by design"


@needs("inductor")
def test_programs_of_torch_make_all_their_tensors_on_the_device() -> None:
    """Fake tensors know devices without having them, and refuse to mix those of two."""
    said = python(
        """
        import numpy as np, torch
        from torch._subclasses import FakeTensorMode
        from miscompile.producers.slices.node_cases import node_cases
        from miscompile.graph.read import read
        from miscompile.targets.lowering.program import UnloweredError
        from miscompile.targets.inductor.adapter import to_torch
        from miscompile.targets.inductor.runner import on_device
        from miscompile.targets.lowering.torch_program import program

        def fake(values):
            return [torch.empty(value.shape, dtype=value.dtype, device="cuda") for value in values]

        counts = {}
        for item in list(node_cases(13))[::16]:
            try:
                text = program(read(item.case.program.payload))
                inputs = [to_torch(value) for value in item.case.feeds[0]]
                constants = {name: to_torch(value) for name, value in text.constants.items()}
            except Exception:
                continue  # has no lowering
            with FakeTensorMode(), on_device("cuda"), torch.no_grad():
                space = {"torch": torch, "np": np, **dict(zip(constants, fake(constants.values())))}
                exec(text.source, space)
                try:
                    kinds = {value.device.type for value in space["program"](*fake(inputs))}
                    what = "cuda" if kinds <= {"cuda"} else item.name
                except RuntimeError as error:
                    what = str(error).splitlines()[0]
                    what = "cannot be faked" if "not linked with" in what or "aten." in what else f"{item.name}: {what}"
            counts[what] = counts.get(what, 0) + 1
        print(sorted(counts), counts["cuda"])
        """
    )
    kinds, _, number = said.strip().rpartition(" ")
    assert eval(kinds) in (["cannot be faked", "cuda"], ["cuda"])
    assert int(number) > 30


@needs("inductor")
def test_cuda_is_hidden_before_the_fork_and_made_exact_behind_it() -> None:
    said = python(
        """
        import torch
        from miscompile.targets.inductor import adapter
        seen, torch.cuda.is_available = [], lambda: seen.append(1) or True
        original = torch.cuda.is_available
        with adapter.cuda_hidden():
            print(torch.cuda.is_available())
        print(torch.cuda.is_available is original, seen)
        target = adapter.Inductor()
        print(seen, torch.cuda.is_initialized())
        adapter.make_exact()
        cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        print(cuda.allow_tf32, cudnn.allow_tf32, cuda.allow_fp16_reduced_precision_reduction)
        print(cuda.allow_bf16_reduced_precision_reduction, cudnn.benchmark, cudnn.deterministic)
        """
    )
    *hidden, precision, order = said.splitlines()[-5:]
    assert hidden == ["False", "True []", "[] False"]
    assert (precision, order) == ("False False False", "False False True")


SETS_DEVICE = {
    "onnxruntime": ['"CUDAExecutionProvider"', '"use_tf32": "0"', "start_on(device, "],
    "openvino": ["compile_read(core, read, level, device)", '"INFERENCE_PRECISION_HINT": "f32"'],
    "tvm": ["tvm.cuda(0)", "--use_fast_math", "dlight.gpu.Fallback", "\ncompile_exactly()\n"],
    "xla": ['jax.config.update("jax_platforms", "cpu,cuda")', "jax.default_device", '"highest"', "CUDA_OPTIONS if"],
    "inductor": ["with on_device(device)", ".to(device)", "allow_tf32"],
    "iree": ["--iree-hal-target-device=cuda", "cuda_flags(capability())"],
    "tinygrad": ['place = "CUDA" if device == "cuda"'],
}


def script(name: str, case: Case, faulty: Build, reference: Build | None) -> str:
    runs = Run(case, name, faulty), None if reference is None else Run(case, name, reference)
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    return write_script(case, Evidence("wrong", "monte-carlo", "seen", *runs, "", details))


@pytest.mark.parametrize("name", list(SETS_DEVICE))
def test_a_script_sets_the_device(name: str) -> None:
    case, device = exhibits()[1].case, about(name).devices[1]
    plain = script(name, case, Build("full"), Build("off"))
    for faulty in (Build("full", device=device), Build("off", device=device)):
        text = script(name, case, faulty, Build("off"))
        compile(text, "repro.py", "exec")
        for word in SETS_DEVICE[name]:
            assert word in text
            assert word not in plain or name == "openvino"
    compile(plain, "repro.py", "exec")


@without_driver
@pytest.mark.parametrize("name", [target(name) for name in SETS_DEVICE])
def test_a_script_for_a_missing_device_fails_and_says_no_bug(name: str, tmp_path: "os.PathLike[str]") -> None:
    """It runs its reference on the CPU first; only then the compiler refuses the device."""
    if name == "openvino" and not lacking("openvino", "gpu"):
        pytest.skip("there is an Intel GPU here")
    text = script(name, exhibits()[1].case, Build("full", device=about(name).devices[1]), Build("off"))
    text = text.replace("\nfound = problem(", '\nprint("the reference works")\nfound = problem(')
    path = os.path.join(tmp_path, "repro.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([sys.executable, "-W", "ignore", path], capture_output=True, text=True, check=False)
    assert "the reference works" in done.stdout, done.stderr
    assert done.returncode == 1
    assert "BUG:" not in done.stdout
    assert "Traceback" in done.stderr


def test_every_target_with_devices_is_tested_here() -> None:
    assert {name for name in target_names() if about(name).devices != ("cpu",)} == set(MODULES) == set(SETS_DEVICE)
