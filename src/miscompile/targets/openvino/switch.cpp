// Switches OpenVINO's passes off by name, in a process that preloads it: OpenVINO has no public switch for a pass. It
// stands in front of the two functions that run them; LIBRARY is the name of the file that contains these.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <unordered_set>

#include "openvino/core/model.hpp"
#include "openvino/core/node.hpp"
#include "openvino/pass/manager.hpp"
#include "openvino/pass/matcher_pass.hpp"
#include "openvino/pass/pattern/matcher.hpp"

#ifndef SEEN
#define SEEN(kind, name, changed) (changed)
#endif

static std::unordered_set<std::string> skipped;

// Skips exactly the passes `names`, separated by blanks; no pass may run meanwhile.
extern "C" void skip_passes(const char* names) {
    std::istringstream words(names);
    skipped.clear();
    for (std::string name; words >> name;) skipped.insert(name);
}

// Members are called like functions that take `this` first, and other objects by address (the Itanium C++ ABI).
template <typename Function>
static Function* original(const char* symbol) {
    void* library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void* found = library != nullptr ? dlsym(library, symbol) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "pass switch: %s has no %s\n", LIBRARY, symbol);
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}

// Tries one matcher on one node; returns whether it changed the graph.
bool ov::pass::MatcherPass::apply(std::shared_ptr<Node> node) {
    static auto forward =
        original<bool(void*, void*)>("_ZN2ov4pass11MatcherPass5applyESt10shared_ptrINS_4NodeEE");
    const std::string name = get_matcher() ? get_matcher()->get_name() : get_type_info().name;
    return skipped.count(name) == 0 && SEEN('M', name, forward(this, &node));
}

// Runs one registered pass on the whole model.
bool ov::pass::Manager::run_pass(const std::shared_ptr<PassBase>& pass, const std::shared_ptr<Model>& model) {
    static auto forward = original<bool(void*, const void*, const void*)>(
        "_ZN2ov4pass7Manager8run_passERKSt10shared_ptrINS0_8PassBaseEERKS2_INS_5ModelEE");
    const std::string name = pass->get_type_info().name;
    return skipped.count(name) == 0 && SEEN('P', name, forward(this, &pass, &model));
}
