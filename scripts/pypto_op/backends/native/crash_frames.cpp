// Tells where a process crashed, in C++ frames: pypto's own handler does not live to do that, since its logger crashes.
//
// Writes to standard error what `backtrace` finds, in glibc's format, and hands the signal on to whatever handled it
// before: Python's fault handler, which tells the Python frames. Names are mangled; c++filt reads them.
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kFrames = 32;  // the interpreter's own frames lie below
constexpr int kOwn = 2;
struct sigaction before[NSIG];

void Tell(int signal, siginfo_t*, void*) {
    static const char head[] = "C++ frames (most recent call first):\n";
    sigaction(signal, &before[signal], nullptr);  // first, in case the stack is so broken that this crashes too
    void* frames[kFrames];
    const int found = backtrace(frames, kFrames);
    if (write(STDERR_FILENO, head, sizeof(head) - 1) > 0) {
        // Without this function and the kernel's trampoline to it.
        if (found > kOwn) backtrace_symbols_fd(frames + kOwn, found - kOwn, STDERR_FILENO);
    }
    raise(signal);  // is delivered when this handler returns
}

}  // namespace

// Puts the handler in front of those that are installed now. Call it after faulthandler.enable, whose stack it uses.
extern "C" void pypto_op_tell_crashes() {
    void* frame[1];
    backtrace(frame, 1);  // loads the unwinder now, which allocates memory
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = Tell;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int signal : kSignals) {
        sigaction(signal, nullptr, &before[signal]);
        sigaction(signal, &action, nullptr);
    }
}
