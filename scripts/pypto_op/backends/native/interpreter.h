// What pypto's interpreter keeps of a tensor (layout of pypto 0.2.0), and a way to the functions that stand behind ours.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace pypto_op {

using Sizes = std::vector<int64_t>;

// pypto's RawTensorData: a vector of bytes (with an allocator without state), the type, the shape.
struct Raw {
    uint8_t* begin;
    uint8_t* end;
    uint8_t* capacity;
    uint8_t* device;
    int32_t type;
    Sizes shape;
    Sizes stride;
    int64_t elements;
    int64_t bytes_each;
};

// pypto's LogicalTensorData and ExecuteOperationContext, as far as they are read here.
struct View {
    std::shared_ptr<Raw> data;
    Sizes shape;
    Sizes valid;
    Sizes offset;
};

// Whether a view is all of its memory. A dynamic axis may stand as -1 in the view's shape, or in the memory's.
inline bool IsWhole(const View& view) {
    if (!view.data || view.shape.empty()) return false;
    const Sizes& whole = view.data->shape;
    int64_t bytes = view.data->bytes_each;
    for (size_t axis = 0; axis < view.shape.size(); ++axis) {
        const bool is_dynamic = view.shape[axis] < 0 && whole.size() == view.shape.size();
        bytes *= is_dynamic ? whole[axis] : view.shape[axis];
    }
    for (const int64_t offset : view.offset) {
        if (offset != 0) return false;
    }
    return bytes == view.data->end - view.data->begin;
}

using Views = std::vector<std::shared_ptr<View>>;

struct Context {
    void* frame;
    void* interpreter;
    void* operation;
    const Views* from;
    Views* unused;
    Views* to;
};

using Operation = void (*)(Context*);

// Whether this process follows the compiled program where pypto's pages forbid what it does, or are silent: scripts do.
// A verdict does not.
extern bool follows_program;  // moved_memory.cpp

// Where the memory begins that was made last, by whatever operation.
extern uint8_t* freshest;  // strict_memory.cpp

inline void* Interface(const char* symbol) {
    static void* const library = dlopen("libtile_fwk_interface.so", RTLD_LAZY | RTLD_NOLOAD);
    void* found = library == nullptr ? nullptr : dlsym(library, symbol);
    if (found == nullptr) {
        std::fprintf(stderr, "pypto-op: %s not found in pypto\n", symbol);
        std::abort();
    }
    return found;
}

}  // namespace pypto_op
