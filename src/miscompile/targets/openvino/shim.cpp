// Preloaded into a process that compiles with OpenVINO: counts what its transformations do, and switches them off by
// name. The switch is `switch.cpp`, which standalone scripts contain; the counts are the worker's alone.
//
// Nothing links against libopenvino, so that preloading costs nothing in processes that do not use it; the true
// functions are looked up when the first pass runs. LIBRARY is the file name of the library, such as
// "libopenvino.so.2641".

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

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
std::string text;

bool count(char kind, const std::string& name, bool fired) {
    const std::lock_guard<std::mutex> lock(guard);
    const auto [place, fresh] = places.try_emplace(kind + name, tallies.size());
    if (fresh) {
        tallies.push_back({kind, name});
    }
    Tally& tally = tallies[place->second];
    ++tally.tried;
    tally.fired += fired;
    return fired;
}

}  // namespace

#define SEEN count
#include "switch.cpp"

extern "C" {

// Forgets all counts.
void pass_observer_reset() {
    const std::lock_guard<std::mutex> lock(guard);
    tallies.clear();
    places.clear();
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
