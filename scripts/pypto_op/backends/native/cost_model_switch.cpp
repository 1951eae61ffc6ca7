// Lets a process leave out pypto's cost model when nobody asked for its figures.
//
// pypto's `CostModelRunOnceDataFromHost` runs the kernel's control flow, then the cost model, and only then copies
// the outputs that the calculator computed at compile time back into the caller's tensors. So it must be called,
// but the cost model inside it (most of its time) has no part in the numbers. pypto reaches the cost model through
// the five functions below. Loaded with RTLD_GLOBAL before pypto, these stand in front of the real ones: they do
// nothing while the switch is off, and hand every call on while it is on. It is off until it is told where the
// real ones are.
//
// Built with -D_GLIBCXX_USE_CXX11_ABI=0, pypto's own ABI, since one of them takes a std::string.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void* simulation = nullptr;  // pypto's libtile_fwk_simulation.so while the cost model is on

// The real function.
template <typename Function>
Function Real(const char* symbol) {
    void* found = dlsym(simulation, symbol);
    if (found == nullptr) {
        std::fprintf(stderr, "pypto-op: %s not found in pypto\n", symbol);
        std::abort();
    }
    return reinterpret_cast<Function>(found);
}

}  // namespace

// Turns the cost model on, given the path of pypto's simulation library, or off, given a null pointer.
// Returns 0, or -1 when pypto has not loaded that library.
extern "C" int pypto_op_switch_cost_model(const char* library) {
    simulation = library == nullptr ? nullptr : dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return library != nullptr && simulation == nullptr ? -1 : 0;
}

namespace npu {
namespace tile_fwk {

// Only the five member functions that pypto_impl calls; a member function is called like a free one that takes
// the object's address first.
class CostModelAgent {
public:
    void SubmitLeafFunctionsToCostModel();
    void SubmitTopo(std::string& path);
    void RunCostModel();
    void TerminateCostModel();
    unsigned long GetLeafFunctionTimeCost(unsigned long hash);
};

void CostModelAgent::SubmitLeafFunctionsToCostModel() {
    if (simulation == nullptr) return;
    static const auto real =
        Real<void (*)(CostModelAgent*)>("_ZN3npu8tile_fwk14CostModelAgent30SubmitLeafFunctionsToCostModelEv");
    real(this);
}

void CostModelAgent::SubmitTopo(std::string& path) {
    if (simulation == nullptr) return;
    static const auto real =
        Real<void (*)(CostModelAgent*, std::string&)>("_ZN3npu8tile_fwk14CostModelAgent10SubmitTopoERSs");
    real(this, path);
}

void CostModelAgent::RunCostModel() {
    if (simulation == nullptr) return;
    static const auto real = Real<void (*)(CostModelAgent*)>("_ZN3npu8tile_fwk14CostModelAgent12RunCostModelEv");
    real(this);
}

void CostModelAgent::TerminateCostModel() {
    if (simulation == nullptr) return;
    static const auto real =
        Real<void (*)(CostModelAgent*)>("_ZN3npu8tile_fwk14CostModelAgent18TerminateCostModelEv");
    real(this);
}

unsigned long CostModelAgent::GetLeafFunctionTimeCost(unsigned long hash) {
    if (simulation == nullptr) return 0;
    static const auto real = Real<unsigned long (*)(CostModelAgent*, unsigned long)>(
        "_ZN3npu8tile_fwk14CostModelAgent23GetLeafFunctionTimeCostEm");
    return real(this, hash);
}

}  // namespace tile_fwk
}  // namespace npu
