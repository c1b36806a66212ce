// Preloaded into a process that compiles with OpenVINO: counts what its transformations do, and switches them off by
// name. It stands in front of two functions of libopenvino, which all transformations pass through:
//
//   ov::pass::MatcherPass::apply  tries one matcher on one node and returns whether it changed the graph;
//   ov::pass::Manager::run_pass   runs one registered pass on the whole model.
//
// Nothing links against libopenvino, so that preloading costs nothing in processes that do not use it; the true
// functions are looked up when the first pass runs. LIBRARY is the file name of the library, such as
// "libopenvino.so.2641".

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "openvino/core/model.hpp"
#include "openvino/core/node.hpp"
#include "openvino/pass/manager.hpp"
#include "openvino/pass/matcher_pass.hpp"
#include "openvino/pass/pattern/matcher.hpp"

namespace {

struct Tally {
    char kind;  // 'M': a matcher, counted by node; 'P': a pass over the model, counted by run
    std::string name;
    unsigned long tried = 0;
    unsigned long fired = 0;
};

// Transformations may run in several threads; the order of `tallies` is that of the first try.
std::mutex guard;
std::vector<Tally> tallies;
std::unordered_map<std::string, std::size_t> places;
std::unordered_set<std::string> disabled;
std::string text;

// Looks a member function of libopenvino up. Members are called like functions that take `this` first, and objects
// that must not be copied bitwise are handed over by address: the calling convention of the Itanium C++ ABI.
template <typename Function>
Function* original(const char* symbol) {
    void* library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void* found = library != nullptr ? dlsym(library, symbol) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "pass observer: %s has no %s\n", LIBRARY, symbol);
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}

// Tells whether the pass may run.
bool allowed(const std::string& name) {
    const std::lock_guard<std::mutex> lock(guard);
    return disabled.empty() || disabled.count(name) == 0;
}

void count(char kind, const std::string& name, bool fired) {
    const std::lock_guard<std::mutex> lock(guard);
    const auto [place, fresh] = places.try_emplace(kind + name, tallies.size());
    if (fresh) {
        tallies.push_back({kind, name});
    }
    Tally& tally = tallies[place->second];
    ++tally.tried;
    tally.fired += fired;
}

}  // namespace

bool ov::pass::MatcherPass::apply(std::shared_ptr<ov::Node> node) {
    using Apply = bool(MatcherPass*, std::shared_ptr<ov::Node>*);
    static Apply* const forward = original<Apply>("_ZN2ov4pass11MatcherPass5applyESt10shared_ptrINS_4NodeEE");
    const auto matcher = get_matcher();
    const std::string name = matcher != nullptr ? matcher->get_name() : get_type_info().name;
    if (!allowed(name)) {
        return false;
    }
    const bool fired = forward(this, &node);
    count('M', name, fired);
    return fired;
}

bool ov::pass::Manager::run_pass(const std::shared_ptr<PassBase>& pass, const std::shared_ptr<Model>& model) {
    using RunPass = bool(Manager*, const std::shared_ptr<PassBase>&, const std::shared_ptr<Model>&);
    static RunPass* const forward =
        original<RunPass>("_ZN2ov4pass7Manager8run_passERKSt10shared_ptrINS0_8PassBaseEERKS2_INS_5ModelEE");
    const std::string name = pass->get_type_info().name;
    if (!allowed(name)) {
        return false;
    }
    const bool fired = forward(this, pass, model);
    count('P', name, fired);
    return fired;
}

extern "C" {

// Forgets all counts.
void pass_observer_reset() {
    const std::lock_guard<std::mutex> lock(guard);
    tallies.clear();
    places.clear();
}

// Switches exactly the passes off whose names stand in `names`, each followed by a newline.
void pass_observer_disable(const char* names) {
    const std::lock_guard<std::mutex> lock(guard);
    disabled.clear();
    std::string name;
    for (; *names != '\0'; ++names) {
        if (*names == '\n') {
            disabled.insert(std::move(name));
            name.clear();
        } else {
            name.push_back(*names);
        }
    }
}

// Returns a line "KIND<tab>NAME<tab>TRIED<tab>FIRED" for every pass since the last reset, in the order in which they
// first ran. The text lives until the next call.
const char* pass_observer_report() {
    const std::lock_guard<std::mutex> lock(guard);
    text.clear();
    for (const Tally& tally : tallies) {
        text += tally.kind;
        text += '\t' + tally.name + '\t' + std::to_string(tally.tried) + '\t' + std::to_string(tally.fired) + '\n';
    }
    return text.c_str();
}
}
