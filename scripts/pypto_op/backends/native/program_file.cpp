// Leaves out `program.json` where nobody reads it: pypto writes its program as text after all passes, which takes as long as
// the passes do.
//
// In front of `Program::DumpJsonFile`. It is written until `pypto_op_write_program(0)`.
// Part of the library that holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <string>

#include "interpreter.h"

using namespace pypto_op;

namespace {

using Writing = void (*)(void*, const std::string&, void*);

bool is_written = true;

}  // namespace

extern "C" void pypto_op_write_program(int on) { is_written = on != 0; }

void pypto_op_dump_program(void* program, const std::string& path, void* function) __asm__(
    "_ZN3npu8tile_fwk7Program12DumpJsonFileERKSsPNS0_8FunctionE");
void pypto_op_dump_program(void* program, const std::string& path, void* function) {
    static const auto real =
        reinterpret_cast<Writing>(Interface("_ZN3npu8tile_fwk7Program12DumpJsonFileERKSsPNS0_8FunctionE"));
    if (is_written) real(program, path, function);
}
