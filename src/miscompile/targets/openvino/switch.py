"""A switch for OpenVINO's passes that is small enough for a standalone script, with a few lines of C++.

The worker's library (`observer.py`) also counts the changes of the passes.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import openvino as ov

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
"""OpenVINO has no public switch for a pass: this library stands in front of the functions that run them."""


def preload_switch() -> None:
    """Compile SWITCH and restart this process with it, unless that has been done."""
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


def skip(names: Iterable[str]) -> None:
    """Skip exactly the passes `names` in all later compilations."""
    ctypes.CDLL(None).skip(" ".join(names).encode())
