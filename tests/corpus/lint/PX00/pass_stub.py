import os

import torch
import torch_npu
import pypto


def demo_wrapper(x):
    pass
