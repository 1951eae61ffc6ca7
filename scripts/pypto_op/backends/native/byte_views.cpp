// Reads a view's bytes as another type row by row, as the view lies in its tensor.
//
// `pypto.view(x, dtype=...)` reads the bytes of a view as numbers of another type, in the same rows. pypto's interpreter
// copies that many bytes from the view's first one on, as if its rows lay side by side. So where a row of the view is
// shorter than its tensor's, it reads padding, or the next columns, and leaves the last rows out. In front of
// `ExecuteOpViewType`: views of equal rows are copied row by row; what else there is goes to the real one.
//
// Part of the library that holds the cost model's switch, loaded with RTLD_GLOBAL before pypto.
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "interpreter.h"

using namespace pypto_op;

namespace {

bool IsSound(const View& view) {
    const Raw* raw = view.data.get();
    return raw != nullptr && raw->bytes_each > 0 && !view.shape.empty() && view.shape.size() == raw->stride.size() &&
           view.offset.size() == view.shape.size() && raw->elements * raw->bytes_each == raw->end - raw->begin;
}

int64_t RowBytes(const View& view) { return view.shape.back() * view.data->bytes_each; }

// Whether both have the same rows, each with the same number of bytes.
bool HaveEqualRows(const View& from, const View& to) {
    if (from.shape.size() != to.shape.size() || RowBytes(from) != RowBytes(to)) return false;
    for (size_t axis = 0; axis + 1 < from.shape.size(); ++axis) {
        if (from.shape[axis] != to.shape[axis]) return false;
    }
    return true;
}

// Where a row begins in its tensor's memory; `row` counts the rows of the view.
uint8_t* RowBegin(const View& view, int64_t row) {
    const Sizes& stride = view.data->stride;
    int64_t element = stride.back() * view.offset.back();
    for (size_t axis = view.shape.size() - 1; axis-- > 0;) {
        element += stride[axis] * (view.offset[axis] + row % view.shape[axis]);
        row /= view.shape[axis];
    }
    uint8_t* begin = view.data->begin + element * view.data->bytes_each;
    if (begin < view.data->begin || begin + RowBytes(view) > view.data->end) {
        throw std::out_of_range("pypto-op: a view of another type leaves its tensor's memory");
    }
    return begin;
}

void CopyRows(const View& from, const View& to) {
    int64_t rows = 1;
    for (size_t axis = 0; axis + 1 < from.shape.size(); ++axis) rows *= from.shape[axis];
    if (RowBytes(from) == 0) return;
    for (int64_t row = 0; row < rows; ++row) std::memcpy(RowBegin(to, row), RowBegin(from, row), RowBytes(from));
}

}  // namespace

extern "C" void pypto_op_view_type(Context* context) __asm__(
    "_ZN3npu8tile_fwk17ExecuteOpViewTypeEPNS0_23ExecuteOperationContextE");
extern "C" void pypto_op_view_type(Context* context) {
    static const auto real =
        reinterpret_cast<Operation>(Interface("_ZN3npu8tile_fwk17ExecuteOpViewTypeEPNS0_23ExecuteOperationContextE"));
    if (context != nullptr && context->from->size() == 1 && context->to->size() == 1) {
        const std::shared_ptr<View> from = context->from->front(), to = context->to->front();
        if (from && to && IsSound(*from) && IsSound(*to) && HaveEqualRows(*from, *to)) return CopyRows(*from, *to);
    }
    real(context);
}
