// Moves a tensor into an output of other axes, for scripts, as the compiled program does.
//
// `out.move(x)` gives the output's memory to x, with x's axes, whatever axes the output was declared with: the compiled
// program has no other. pypto's interpreter holds the output by its declared axes, and fails. In front of
// `ExecuteOpAssemble`: while both have equally many elements, the output's memory is seen with the axes of the record.
//
// Only in a process that follows the program (`interpreter.h`): pypto's pages do not say that axes may differ.
// Part of the library that holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <cstdint>
#include <cstdio>
#include <utility>

#include "interpreter.h"

using namespace pypto_op;

bool pypto_op::follows_program = false;

namespace {

bool has_told = false;

// The memory with its view's axes, as long as this lives.
class Seen {
public:
    explicit Seen(View& view)
        : view_(view), raw_(*view.data), shape_(view.shape), stride_(view.shape.size(), 1), offset_(view.shape.size(), 0) {
        for (size_t axis = shape_.size() - 1; axis-- > 0;) stride_[axis] = stride_[axis + 1] * shape_[axis + 1];
        Swap();
    }
    ~Seen() { Swap(); }
    Seen(const Seen&) = delete;
    Seen& operator=(const Seen&) = delete;

private:
    void Swap() {
        std::swap(raw_.shape, shape_);
        std::swap(raw_.stride, stride_);
        std::swap(view_.offset, offset_);
    }

    View& view_;
    Raw& raw_;
    Sizes shape_;
    Sizes stride_;
    Sizes offset_;
};

void Tell(const View& view) {
    if (has_told) return;
    has_told = true;
    std::fprintf(stderr,
                 "pypto-op: a tensor of %zu axes is moved into an output of %zu. The compiled program does so too, but "
                 "pypto's pages do not say that it may; a verdict refuses such a kernel.\n",
                 view.shape.size(), view.data->shape.size());
}

}  // namespace

extern "C" void pypto_op_follow_program(int on) { follows_program = on != 0; }

extern "C" void pypto_op_assemble(Context* context) __asm__(
    "_ZN3npu8tile_fwk17ExecuteOpAssembleEPNS0_23ExecuteOperationContextE");
extern "C" void pypto_op_assemble(Context* context) {
    static const auto real =
        reinterpret_cast<Operation>(Interface("_ZN3npu8tile_fwk17ExecuteOpAssembleEPNS0_23ExecuteOperationContextE"));
    if (follows_program && context != nullptr && context->to->size() == 1 && context->to->front()) {
        View& to = *context->to->front();
        if (IsWhole(to) && to.shape.size() != to.data->shape.size()) {
            Tell(to);
            const Seen seen(to);
            return real(context);
        }
    }
    real(context);
}
