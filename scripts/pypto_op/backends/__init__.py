"""Where kernels run: one interface, pypto's simulator on the CPU and the NPU behind it."""
