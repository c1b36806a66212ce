"""The lines that a reproducer for OpenVINO consists of, beside what all scripts have in common.

A script that switches passes carries its own few lines of C++ for it, since OpenVINO's Python package has no switch.
"""

import textwrap

from miscompile.targets.about import ScriptLines
from miscompile.targets.openvino.about import FRAMES, GPU_PROPERTIES, LEVELS, PASSES, PROPERTIES
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.presentations import PRESENTED, source_of


def _python(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


_NAMES = "\n".join(f"    {line}" for line in textwrap.wrap(" ".join((*PASSES, *FRAMES)), 112))

_PRESENTED = """\
{% set presented = presented if presented in ("reload", "external") else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
"""

_PRELUDE = (
    PLACEMENT
    + PRESENTED
    + _PRESENTED
    + '''\
{% set everything = faulty.level == "off" or (reference is not none and reference.level == "off") %}
{% if everything or culprits or faulty.disabled or (reference is not none and reference.disabled) %}
import ctypes
import os
import shutil
import subprocess
{% if kind in ("death", "hang") %}
import sys
{% endif %}
import tempfile

# OpenVINO has no public switch for a pass: this library stands in front of the functions that run them.
SWITCH = r"""
#include <dlfcn.h>
#include <set>
#include <sstream>
#include "openvino/core/model.hpp"
#include "openvino/core/node.hpp"
#include "openvino/pass/manager.hpp"
#include "openvino/pass/matcher_pass.hpp"
#include "openvino/pass/pattern/matcher.hpp"

static std::set<std::string> skipped;

extern "C" void skip(const char* names) {
    std::istringstream words(names);
    skipped.clear();
    for (std::string name; words >> name;) skipped.insert(name);
}

static bool skips(const std::string& name) { return skipped.count(name) != 0; }

static void* original(const char* symbol) { return dlsym(dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD), symbol); }

bool ov::pass::MatcherPass::apply(std::shared_ptr<Node> node) {
    using Apply = bool(void*, void*);
    static auto forward = (Apply*)original("_ZN2ov4pass11MatcherPass5applyESt10shared_ptrINS_4NodeEE");
    return !skips(get_matcher() ? get_matcher()->get_name() : get_type_info().name) && forward(this, &node);
}

bool ov::pass::Manager::run_pass(const std::shared_ptr<PassBase>& pass, const std::shared_ptr<Model>& model) {
    using RunPass = bool(void*, const void*, const void*);
    static auto forward = (RunPass*)original(
        "_ZN2ov4pass7Manager8run_passERKSt10shared_ptrINS0_8PassBaseEERKS2_INS_5ModelEE");
    return !skips(pass->get_type_info().name) && forward(this, &pass, &model);
}
"""


def preload_switch():
    """Compile SWITCH and start this process anew with it, unless that has been done."""
    if "SWITCH_FOLDER" in os.environ:
        shutil.rmtree(os.environ.pop("SWITCH_FOLDER"))
        return
    folder, home = tempfile.mkdtemp(), os.path.dirname(ov.__file__)
    library = next(name for name in os.listdir(home + "/libs") if name.startswith("libopenvino.so."))
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-shared", "-fPIC", f'-DLIBRARY="{library}"']
    command += ["-isystem", home + "/include", "-x", "c++", "-", "-o", folder + "/switch.so", "-ldl"]
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
{% if presented == "external" or (presented and given.stage == "read") %}
import os
import tempfile
{% if presented == "external" %}
{% raw %}
'''
    + source_of("external.py")
    + """
{% endraw %}
{% endif %}
{% endif %}
"""
)

_RUN = (
    PLACEMENT
    + PRESENTED
    + _PRESENTED
    + '''\
{% set everything = faulty.level == "off" or (reference is not none and reference.level == "off") %}
def run(level, off={{ nothing }}):
    """Compile with the properties and without the passes of `level`, nor those in `off`; return all outputs."""
    properties, skipped = level
{% if placed %}
    device = {{ where }}
{% endif %}
{% if presented %}
    changed = {{ sees }}
{% endif %}
{% if everything or culprits or faulty.disabled or (reference is not none and reference.disabled) %}
    ctypes.CDLL(None).skip(" ".join([*skipped, *(off{{ " or ()" if placed or presented }})]).encode())
{% endif %}
    core = ov.Core()
{% if presented == "external" or (presented and given.stage == "read") %}
    read = read_by_file(core) if changed else core.read_model(model.SerializeToString())
{% else %}
    read = core.read_model(model.SerializeToString())
{% endif %}
    places = {name: index for index, port in enumerate(read.inputs) for name in port.get_names()}
    if len(read.inputs) == len(model.graph.input):  # else inputs that nothing uses were dropped
        places = {port.name: index for index, port in enumerate(model.graph.input)}
    own = [port.name for port in model.graph.input if port.name not in places]
    places.update(zip(own, [i for i, port in enumerate(read.inputs) if not port.get_names() & set(feeds[0])]))
    fixed = {
        "INFERENCE_NUM_THREADS": {{ faulty.threads }},
'''
    + "".join(f'        "{name}": {_python(value)},\n' for name, value in PROPERTIES.items())
    + """    }
    known = core.get_property("CPU", "SUPPORTED_PROPERTIES")
    fixed = {name: value for name, value in fixed.items() if name in known}
{% if placed %}
    if device == "gpu":
        properties = {@GPU@}
        compiled = core.compile_model(read, "GPU", properties)
    else:
        compiled = core.compile_model(read, "CPU", {**fixed, **properties})
{% else %}
    compiled = core.compile_model(read, "CPU", {**fixed, **properties})
{% endif %}
{% if presented == "reload" and given.stage == "compiled" %}
    if changed:
{% if placed %}
        place, properties = ("GPU", properties) if device == "gpu" else ("CPU", {**fixed, **properties})
        compiled = core.import_model(compiled.export_model(), place, properties)
{% else %}
        compiled = core.import_model(compiled.export_model(), "CPU", {**fixed, **properties})
{% endif %}
{% endif %}
    results = []
    for feed in feeds:
        request = compiled.create_infer_request()
        for name, array in feed.items():
            if name in places:
                request.set_input_tensor(places[name], value_of(np.asarray(array), read.inputs[places[name]]))
        request.infer()
        results.append([array_of(request.get_output_tensor(i)) for i in range(len(compiled.outputs))])
    return results


{% if presented == "external" %}
def read_by_file(core):
    \"\"\"Read the model from a file that has its initialisers in another file.\"\"\"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        store(onnx.load_model_from_string(model.SerializeToString()), path, {{ given.seed }}, shapes_too=True)
        return core.read_model(path)


{% elif presented == "reload" and given.stage == "read" %}
def read_by_file(core):
    \"\"\"Read the model, save it in OpenVINO's own format, and read that.\"\"\"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.xml")
        ov.save_model(core.read_model(model.SerializeToString()), path, compress_to_fp16=False)
        return core.read_model(path)


{% endif %}
def value_of(array, port):
    \"\"\"Wrap an input; the bits of a type that numpy lacks get the type of the model's input.\"\"\"
{% if types %}
    if port.get_element_type().get_type_name() in ("bf16", "f8e4m3", "f8e5m2"):
        return ov.Tensor(array, ov.Shape(array.shape), port.get_element_type())
{% endif %}
    return ov.Tensor(array)


def array_of(value):
    \"\"\"Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits.\"\"\"
    if value.element_type == ov.Type.bf16:
        return (np.array(value.data).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.array(value.str_data if value.element_type.get_type_name() == "string" else value.data)
"""
)


_RUN = _RUN.replace("@GPU@", ", ".join(f'"{name}": {_python(value)}' for name, value in GPU_PROPERTIES.items()))


def _level(name: str) -> str:
    properties = ", ".join(f'"{key}": {_python(value)}' for key, value in LEVELS[name].items())
    return f"({{{properties}}}, {'OPTIONAL' if name == 'off' else '()'})"


SCRIPT = ScriptLines(
    imports=("import openvino as ov",),
    levels={name: _level(name) for name in LEVELS},
    run=_RUN,
    versions='"openvino", ov.__version__',
    prelude=_PRELUDE,
)
