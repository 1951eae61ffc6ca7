// Lets pypto's interpreter forget a turn of a loop when the turn is over.
//
// To compare each pass's program with the tensor graph, pypto's interpreter keeps of every turn all inputs and outputs as
// they were before, all of them as they were after, and every tensor in between. A kernel with a cache of 64 MB and a
// thousand turns so takes more than 125 GB. It also writes all inputs of every turn into files, whether or not tensors are
// saved. While nobody compares or saves, all that is left out: in front of `CopyWithLinkRelationship`, which makes those
// copies and no others, of `ExecuteFunctionFrame`, which keeps the rest, and of `DumpTensorBinary`, which writes.
//
// Everything is kept until `pypto_op_keep_turns(0)`.
// Part of the library that holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <memory>
#include <string>
#include <vector>

#include "interpreter.h"

using namespace pypto_op;

namespace {

using Frame = std::shared_ptr<void>;
using Pair = std::shared_ptr<void>;
using Copy = void (*)(void*, const void*);
using Writing = void (*)(void*, const std::shared_ptr<View>&, std::string);
using Execution = Frame (*)(void*, void*, void*, Pair&);

constexpr size_t kFrames = 0xc0;  // where pypto's FunctionInterpreter says which list keeps the frames (pypto 0.2.0)

bool is_kept = true;

std::vector<Frame>* KeptFrames(void* interpreter) {
    return *reinterpret_cast<std::vector<Frame>**>(static_cast<char*>(interpreter) + kFrames);
}

}  // namespace

extern "C" void pypto_op_keep_turns(int on) { is_kept = on != 0; }

extern "C" void pypto_op_copy_turn(void* to, const void* from) __asm__(
    "_ZN3npu8tile_fwk18FunctionIODataPair24CopyWithLinkRelationshipERS1_RKS1_");
extern "C" void pypto_op_copy_turn(void* to, const void* from) {
    static const auto real = reinterpret_cast<Copy>(
        Interface("_ZN3npu8tile_fwk18FunctionIODataPair24CopyWithLinkRelationshipERS1_RKS1_"));
    if (is_kept) real(to, from);
}

void pypto_op_write(void* self, const std::shared_ptr<View>& data, std::string name) __asm__(
    "_ZN3npu8tile_fwk19FunctionInterpreter16DumpTensorBinaryERKSt10shared_ptrINS0_17LogicalTensorDataEESs");
void pypto_op_write(void* self, const std::shared_ptr<View>& data, std::string name) {
    static const auto real = reinterpret_cast<Writing>(Interface(
        "_ZN3npu8tile_fwk19FunctionInterpreter16DumpTensorBinaryERKSt10shared_ptrINS0_17LogicalTensorDataEESs"));
    if (is_kept) real(self, data, name);
}

// Takes and returns what the member function does: one that returns a class takes the place for it first.
Frame pypto_op_execute(void* self, void* function, void* operation, Pair& data) __asm__(
    "_ZN3npu8tile_fwk19FunctionInterpreter20ExecuteFunctionFrameEPNS0_8FunctionEPNS0_9OperationERSt10shared_ptrINS0_"
    "18FunctionIODataPairEE");
Frame pypto_op_execute(void* self, void* function, void* operation, Pair& data) {
    static const auto real = reinterpret_cast<Execution>(Interface(
        "_ZN3npu8tile_fwk19FunctionInterpreter20ExecuteFunctionFrameEPNS0_8FunctionEPNS0_9OperationERSt10shared_ptrINS0_"
        "18FunctionIODataPairEE"));
    Frame frame = real(self, function, operation, data);
    if (!is_kept) {
        std::vector<Frame>* const kept = KeptFrames(self);
        if (kept != nullptr && !kept->empty() && kept->back() == frame) kept->pop_back();
    }
    return frame;
}
