// What pypto's interpreter keeps of a tensor (layout of pypto 0.2.0), and a way to the functions that stand behind ours.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
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
