#!/usr/bin/env python3
"""linkwise: the UUID of CUDA device LOCAL_RANK (0 without that) as this process sees it, like
GPU-8f1c...; `none` where it sees no such device.

Asks the driver (libcuda.so.1: cuInit, cuDeviceGet, cuDeviceGetUuid), so that what is
printed is what a program in this place would get.  Exit code 1 without a driver.
"""
import ctypes
import os
import sys

try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(1)
uuid_of = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
local = os.environ.get("LOCAL_RANK", "")
number = int(local) if local.isdigit() else 0
device = ctypes.c_int()
raw = (ctypes.c_ubyte * 16)()
if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), number) or uuid_of(raw, device):
    print("none")
    sys.exit(0)
digits = bytes(raw).hex()
# A MIG instance has a UUID of its own: _v2 returns it, and its name begins with MIG-.
name = ctypes.create_string_buffer(256)
cuda.cuDeviceGetName(name, 256, device)
kind = "MIG-" if b"MIG" in name.value else "GPU-"
print(kind + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])))
