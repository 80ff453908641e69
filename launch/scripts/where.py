#!/usr/bin/env python3
"""linkwise: the UUID of CUDA device 0 as this process sees it, like GPU-8f1c...

Asks the driver (libcuda.so.1: cuInit, cuDeviceGet, cuDeviceGetUuid), so that what is
printed is what a program in this place would get.  Exit code 1 without a device.
"""
import ctypes
import sys

try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(1)
uuid_of = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
device = ctypes.c_int()
raw = (ctypes.c_ubyte * 16)()
if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0) or uuid_of(raw, device):
    sys.exit(1)
digits = bytes(raw).hex()
# A MIG instance has a UUID of its own: _v2 returns it, and its name begins with MIG-.
name = ctypes.create_string_buffer(256)
cuda.cuDeviceGetName(name, 256, device)
kind = "MIG-" if b"MIG" in name.value else "GPU-"
print(kind + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])))
