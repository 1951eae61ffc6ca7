import os

import torch
import torch_npu
import pypto
