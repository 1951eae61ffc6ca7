// Lets pypto write a program's device code in the thread that asks for it.
//
// `ParallelExecuteAndWait` starts threads anew in each call, and code generation calls it for each leaf function: a
// program of a thousand leaves starts a thousand threads. Those that have ended are given back more slowly than
// new ones come where cores are few, and each holds 8 MiB of stack that counts as data, so that a right kernel
// reached the limit of its memory. This function stands in front of pypto's.
// Part of the library that holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <atomic>
#include <deque>
#include <functional>

namespace {

std::atomic<unsigned long> written{0};

}  // namespace

// How many pieces of device code were written so, in this process.
extern "C" unsigned long pypto_op_written_in_own_thread() { return written; }

namespace npu {
namespace tile_fwk {

void ParallelExecuteAndWait(unsigned, std::deque<std::function<void()>> tasks) {
    written += tasks.size();
    for (auto& task : tasks) task();
}

}  // namespace tile_fwk
}  // namespace npu
