// Makes the memory of pypto's interpreter as strict as a device's.
//
// pypto's interpreter fills each new tensor with zeros, and lets a view begin or end outside its tensor as long as it
// stays inside the allocation, where it meets the neighbouring rows. A device promises neither. So, in front of the
// real constructors:
//
// - `RawTensorData`: what no operation wrote is NaN, or a number that nobody means where integers lie;
// - `LogicalTensorData`: a view whose valid part leaves the tensor is refused, and one that lacks an offset: pypto reads
//   the missing one from wherever. Padding behind the valid part may hang over: nothing is read there.
//
// Part of the library that holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "interpreter.h"

using namespace pypto_op;

uint8_t* pypto_op::freshest = nullptr;

namespace {

using RawConstructor = void (*)(Raw*, int32_t, const Sizes&);
using Growth = void (*)(Raw*, size_t);
using ViewConstructor = void (*)(void*, std::shared_ptr<Raw>, const Sizes&, const Sizes&, const Sizes&);

// What is filled is copied on, a page at a time: a loop over the numbers took a fifth of a large kernel's time.
template <typename Number>
bool Fill(const Raw& raw, Number value) {
    constexpr size_t kPage = 4096;
    const size_t bytes = static_cast<size_t>(raw.end - raw.begin);
    std::memcpy(raw.begin, &value, std::min(sizeof(Number), bytes));
    for (size_t done = sizeof(Number); done < bytes;) {
        const size_t step = std::min({done, kPage, bytes - done});
        std::memcpy(raw.begin + done, raw.begin, step);
        done += step;
    }
    return true;
}

// NaN of pypto's DataType; integers: the byte 0xA5 throughout, negative, so that as an index it lies outside.
// Returns whether the memory is filled.
bool Poison(const Raw& raw) {
    freshest = raw.begin;
    constexpr int kHalf = 6, kFloat = 7, kBfloat = 8, kBool = 15, kDouble = 16;
    if (raw.begin == nullptr || raw.elements * raw.bytes_each != raw.end - raw.begin) return false;  // of another layout
    switch (raw.type) {
        case kHalf: return Fill<uint16_t>(raw, 0x7e00);
        case kBfloat: return Fill<uint16_t>(raw, 0x7fc0);
        case kFloat: return Fill<uint32_t>(raw, 0x7fc00000);
        case kDouble: return Fill<uint64_t>(raw, 0x7ff8000000000000);
        case kBool: return Fill<uint8_t>(raw, 1);
        case 5: case 10: case 17: case 18: return Fill<uint8_t>(raw, 0x7f);
        default: return Fill<uint8_t>(raw, 0xA5);
    }
}

std::string Text(const Sizes& sizes) {
    std::string text = "[";
    for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return text + "]";
}

// The valid part of the view: pypto takes an empty valid shape for the whole shape, and no more than the shape.
Sizes Valid(const Sizes& shape, const Sizes& valid) {
    Sizes result = valid.empty() ? shape : valid;
    for (size_t i = 0; i < shape.size() && i < result.size(); ++i) {
        if (shape[i] >= 0 && result[i] > shape[i]) result[i] = shape[i];
    }
    return result;
}

void Check(const Raw& raw, const Sizes& shape, const Sizes& valid_shape, const Sizes& offset) {
    const Sizes valid = Valid(shape, valid_shape);
    if (valid.size() != raw.shape.size()) return;  // the memory of a tensor of another shape
    if (offset.size() != valid.size()) {
        throw std::out_of_range("pypto-op: a view has " + std::to_string(offset.size()) + " offsets for " +
                                std::to_string(valid.size()) + " axes: " + Text(offset) + " in a tensor of shape " +
                                Text(raw.shape));
    }
    for (size_t i = 0; i < valid.size(); ++i) {
        if (valid[i] == 0) return;  // nothing is read or written
    }
    for (size_t i = 0; i < valid.size(); ++i) {
        if (offset[i] >= 0 && offset[i] + valid[i] <= raw.shape[i]) continue;
        throw std::out_of_range("pypto-op: a view leaves its tensor on axis " + std::to_string(i) + ": offset " +
                                Text(offset) + " and valid shape " + Text(valid) + " in a tensor of shape " +
                                Text(raw.shape));
    }
}

}  // namespace

extern "C" void pypto_op_raw(Raw* self, int32_t type, const Sizes& shape) __asm__(
    "_ZN3npu8tile_fwk13RawTensorDataC1ENS0_8DataTypeERKSt6vectorIlSaIlEE");
extern "C" void pypto_op_raw(Raw* self, int32_t type, const Sizes& shape) {
    static const auto real =
        reinterpret_cast<RawConstructor>(Interface("_ZN3npu8tile_fwk13RawTensorDataC1ENS0_8DataTypeERKSt6vectorIlSaIlEE"));
    real(self, type, shape);
    if (self->type == type && self->shape == shape) Poison(*self);
}

// The same constructor where pypto's compiler put it in line, for the result of an operation: the buffer grows last.
// pypto writes zeros byte by byte, a quarter of a large kernel's time, so a new buffer is made here, as its allocator does.
extern "C" void pypto_op_grow(Raw* self, size_t bytes) __asm__(
    "_ZNSt6vectorIhN3npu8tile_fwk16AlignedAllocatorIhLm64EEEE17_M_default_appendEm");
extern "C" void pypto_op_grow(Raw* self, size_t bytes) {
    static const auto real = reinterpret_cast<Growth>(
        Interface("_ZNSt6vectorIhN3npu8tile_fwk16AlignedAllocatorIhLm64EEEE17_M_default_appendEm"));
    void* memory = nullptr;
    if (self->begin != nullptr || bytes == 0 || posix_memalign(&memory, 64, bytes) != 0) return real(self, bytes);
    self->begin = static_cast<uint8_t*>(memory);
    self->end = self->capacity = self->begin + bytes;
    if (!Poison(*self)) std::memset(memory, 0, bytes);
}

extern "C" void pypto_op_view(void* self, std::shared_ptr<Raw> raw, const Sizes& shape, const Sizes& valid,
                              const Sizes& offset) __asm__("_ZN3npu8tile_fwk17LogicalTensorDataC1ESt10shared_ptrINS0_"
                                                           "13RawTensorDataEERKSt6vectorIlSaIlEES9_S9_");
extern "C" void pypto_op_view(void* self, std::shared_ptr<Raw> raw, const Sizes& shape, const Sizes& valid,
                              const Sizes& offset) {
    static const auto real = reinterpret_cast<ViewConstructor>(
        Interface("_ZN3npu8tile_fwk17LogicalTensorDataC1ESt10shared_ptrINS0_13RawTensorDataEERKSt6vectorIlSaIlEES9_S9_"));
    if (raw) Check(*raw, shape, valid, offset);
    real(self, raw, shape, valid, offset);
}
