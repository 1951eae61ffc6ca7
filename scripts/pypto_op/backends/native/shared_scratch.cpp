// Gives a tensor that is reshaped in place into an output the output's memory, for scripts, as the compiled program does.
//
// Turns of a loop fill parts of one tensor, and each turn reshapes it in place and assembles the result as a whole into an
// output. pypto's compiler gives the tensor, the reshaped one and the output one memory, so what a turn leaves alone stays
// as earlier turns wrote it. pypto's interpreter gives each turn a tensor that nothing has written, and copies all of it.
// In front of `AllocateDataView`: such a tensor begins with what the output holds, which comes to the same, since nothing
// but the copy back touches the output meanwhile.
//
// Only in a process that follows the program (`interpreter.h`): pypto's page of `reshape` forbids it. Part of the library that
// holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "interpreter.h"

using namespace pypto_op;

namespace {

using Tensor = std::shared_ptr<void>;  // pypto's LogicalTensor
using Operations = std::set<void*>;
using Tensors = std::vector<Tensor>;
using Allocation = std::shared_ptr<View> (*)(void*, void*, const Tensor&, Tensor);
using Attribute = bool (*)(void*, const std::string&);

constexpr int kReshape = 144, kAssemble = 147;  // pypto's Opcode
constexpr size_t kProducers = 0x160, kConsumers = 0x190;  // in LogicalTensor
constexpr size_t kFrom = 0x40, kTo = 0x58, kCode = 0x110;  // in Operation

bool has_told = false;

template <typename Member>
Member& At(void* object, size_t offset) {
    return *reinterpret_cast<Member*>(static_cast<char*>(object) + offset);
}

// The only consumer, if it is of this kind, takes the tensor alone and makes one; a null pointer otherwise.
void* OnlyConsumer(const Tensor& tensor, int code) {
    const Operations& consumers = At<Operations>(tensor.get(), kConsumers);
    if (consumers.size() != 1 || At<int>(*consumers.begin(), kCode) != code) return nullptr;
    void* const operation = *consumers.begin();
    return At<Tensors>(operation, kFrom).size() == 1 && At<Tensors>(operation, kTo).size() == 1 ? operation : nullptr;
}

bool IsFilledInParts(const Tensor& tensor) {
    const Operations& producers = At<Operations>(tensor.get(), kProducers);
    for (void* const operation : producers) {
        if (At<int>(operation, kCode) != kAssemble) return false;
    }
    return !producers.empty();
}

bool IsInPlace(void* reshape) {
    static const auto ask =
        reinterpret_cast<Attribute>(Interface("_ZNK3npu8tile_fwk9Operation16GetBoolAttributeERKSs"));
    return ask(reshape, "op_attr_isInplace");
}

// The tensor into which this one is reshaped in place and assembled, with no other use on the way; or none.
Tensor OutputBehind(const Tensor& tensor) {
    if (!IsFilledInParts(tensor)) return nullptr;
    void* const reshape = OnlyConsumer(tensor, kReshape);
    if (reshape == nullptr || !IsInPlace(reshape)) return nullptr;
    const Tensor& reshaped = At<Tensors>(reshape, kTo).front();
    void* const assemble = OnlyConsumer(reshaped, kAssemble);
    if (assemble == nullptr || At<Operations>(reshaped.get(), kProducers).size() != 1) return nullptr;
    const Tensor& output = At<Tensors>(assemble, kTo).front();
    const bool is_last = At<Operations>(output.get(), kConsumers).empty();
    return is_last && At<Operations>(output.get(), kProducers).size() == 1 ? output : nullptr;
}

void Tell() {
    if (has_told) return;
    has_told = true;
    std::fprintf(stderr,
                 "pypto-op: a tensor that is filled in parts is reshaped in place into an output. The compiled program lets "
                 "both share memory, and so does this run; pypto's page of reshape forbids it, and a verdict refuses it.\n");
}

void BeginAsOutput(const View& tensor, const View& output) {
    if (!IsWhole(tensor) || !IsWhole(output) || tensor.data->type != output.data->type) return;
    const Raw &to = *tensor.data, &from = *output.data;
    if (to.begin == from.begin || to.end - to.begin != from.end - from.begin) return;
    Tell();
    std::memcpy(to.begin, from.begin, static_cast<size_t>(to.end - to.begin));
}

}  // namespace

std::shared_ptr<View> pypto_op_allocate(void* self, void* frame, const Tensor& tensor, Tensor in_place) __asm__(
    "_ZN3npu8tile_fwk19FunctionInterpreter16AllocateDataViewERNS0_13FunctionFrameERKSt10shared_ptrINS0_13LogicalTensorEES8_");
std::shared_ptr<View> pypto_op_allocate(void* self, void* frame, const Tensor& tensor, Tensor in_place) {
    static const auto real = reinterpret_cast<Allocation>(Interface(
        "_ZN3npu8tile_fwk19FunctionInterpreter16AllocateDataViewERNS0_13FunctionFrameERKSt10shared_ptrINS0_"
        "13LogicalTensorEES8_"));
    if (!follows_program || !tensor) return real(self, frame, tensor, in_place);
    freshest = nullptr;
    std::shared_ptr<View> view = real(self, frame, tensor, in_place);
    if (view && view->data && freshest != nullptr && freshest == view->data->begin) {
        if (const Tensor output = OutputBehind(tensor)) {
            freshest = nullptr;
            const std::shared_ptr<View> held = real(self, frame, output, nullptr);
            if (held && held->data && freshest == nullptr) BeginAsOutput(*view, *held);
        }
    }
    return view;
}
