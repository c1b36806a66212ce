"""The parts of standalone scripts for OpenVINO, besides the runner and the parts common to all scripts.

A script that switches passes contains `switch.cpp`, because OpenVINO's Python package has no switch. The script
compiles it into a folder that it deletes; the worker's library, which also counts, is kept in a cache (`observer.py`).
"""

import textwrap
from pathlib import Path

from miscompile.targets.about import ScriptLines
from miscompile.targets.openvino.about import ABOUT, FRAMES, PASSES
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.presentations import PRESENTED

_NAMES = "\n".join(f"    {line}" for line in textwrap.wrap(" ".join((*PASSES, *FRAMES)), 112))

_SWITCHED = """\
{% set presented = presented if presented in ("reload", "external") else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
{% set everything = faulty.level == "off" or (reference is not none and reference.level == "off") %}
{% set switched = everything or culprits or faulty.disabled or (reference is not none and reference.disabled) %}
"""

_PRELUDE = (
    PLACEMENT
    + PRESENTED
    + _SWITCHED
    + '''\
{% if switched %}
SWITCH = r"""
{% raw %}
'''
    + Path(__file__).with_name("switch.cpp").read_text("utf-8")
    + '''\
{% endraw %}
"""


def preload_switch():
    """Compile SWITCH and restart this process with it, unless that has been done."""
    if "SWITCH_FOLDER" in os.environ:
        shutil.rmtree(os.environ.pop("SWITCH_FOLDER"))
        return
    folder, home = tempfile.mkdtemp(), os.path.dirname(ov.__file__)
    library = next(name for name in os.listdir(home + "/libs") if name.startswith("libopenvino.so."))
    command = compile_command([os.environ.get("CXX", "g++")], home + "/include", library)
    command += ["-x", "c++", "-", "-o", folder + "/switch.so", "-ldl"]
    subprocess.run(command, input=SWITCH.encode(), check=True)
    os.environ.update(SWITCH_FOLDER=folder, LD_PRELOAD=folder + "/switch.so")
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


preload_switch()
{% if everything %}

# All that is optional.
OPTIONAL = """
'''
    + _NAMES
    + '''
""".split()
{% endif %}
{% endif %}
'''
)

_RUN = (
    PLACEMENT
    + PRESENTED
    + _SWITCHED
    + '''\
{% set further = ["device"] if placed else [] %}
{% set further = further + ["threads=%d" % faulty.threads] if faulty.threads != 1 else further %}
{% set kinds = "[types.get(name, 0) for name in feed]" if types else "[0] * len(feed)" %}
{% set build = "level" ~ (", " if further) ~ further | join(", ") %}
def run(level, off={{ nothing }}):
    """Compile at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
{% if switched %}
    skip([{{ '*(OPTIONAL if level == "off" else ()), ' if everything }}*(off{{ " or ()" if nothing == "None" }})])
{% endif %}
    core, payload = ov.Core(), model.SerializeToString()
{% if presented == "external" or (presented and given.stage == "read") %}
    if {{ sees }}:
        with tempfile.TemporaryDirectory() as folder:
{% if presented == "external" %}
            # The file of the model, and beside it one with its initialisers.
            path = f"{folder}/model.onnx"
            store(onnx.load_model_from_string(payload), path, {{ given.seed }}, shapes_too=True)
            read = core.read_model(path)
{% else %}
            read = read_saved(core, payload, folder)
{% endif %}
    else:
        read = core.read_model(payload)
{% else %}
    read = core.read_model(payload)
{% endif %}
{% if presented == "reload" and given.stage == "compiled" %}
    compiled = (compile_reloaded if {{ sees }} else compile_read)(core, read, {{ build }})
{% else %}
    compiled = compile_read(core, read, {{ build }})
{% endif %}
    request, results = compiled.create_infer_request(), []
    numbers = places(list(feeds[0]), read, payload)
    for feed in feeds:
        infer(request, numbers, list(feed.values()), {{ kinds }})
        results.append([seen(request.get_output_tensor(place)) for place in range(len(model.graph.output))])
    return results


def seen(output):
    """Return an output as numbers{{ "; 16-bit brain floats are widened, other foreign types stay bits" if exotic }}."""
{% if exotic %}
    name, words = from_tensor(output)
    return (words.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else words
{%- else %}
    return from_tensor(output)[1]
{%- endif %}
'''
)

SCRIPT = ScriptLines(
    sources=(
        "miscompile.targets.external",
        "miscompile.targets.openvino.switch",
        "miscompile.targets.openvino.runner",
    ),
    imports=("import os, shutil, subprocess, tempfile", "import openvino as ov"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"openvino", ov.__version__',
    prelude=_PRELUDE,
)
