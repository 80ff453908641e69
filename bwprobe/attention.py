"""bwprobe --compute: how fast PyTorch's attention kernels are on one GPU, forward, causal.

Prints a line for each kind of kernels that runs here: its name, tokens, heads, their width, FLOP/s;
and why others do not: "no", and the reason."""
import sys
import time

TOKENS, HEADS, WIDTH = 16384, 16, 128
TIMES, WARM_UP_S = 15, 0.5
KINDS = (("flash2", "FLASH_ATTENTION"), ("cudnn", "CUDNN_ATTENTION"))


def seconds(cuda, work):
    """The median of several executions on a warm GPU."""
    until = time.monotonic() + WARM_UP_S
    taken = []
    while time.monotonic() < until:
        work()
        cuda.synchronize()
    for _ in range(TIMES):
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) * 1e-3)
    return sorted(taken)[TIMES // 2]


def say_no(what, why):
    """Why something was not measured, on one line."""
    print("no", what, *str(why).split("\n")[:1], flush=True)


def main(device):
    """Measure the kinds that this PyTorch and this GPU have."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as attend

    torch.cuda.set_device(device)
    shape = (1, HEADS, TOKENS, WIDTH)
    qkv = [torch.randn(*shape, dtype=torch.bfloat16, device="cuda") for _ in range(3)]
    flop = 2.0 * HEADS * TOKENS * TOKENS * WIDTH  # of two products, the half under the diagonal
    for name, backend in KINDS:
        try:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                taken = seconds(torch.cuda, lambda: attend(*qkv, is_causal=True))
        except (AttributeError, RuntimeError) as why:
            say_no(name, why)
            continue
        print(name, TOKENS, HEADS, WIDTH, "%.6g" % (flop / taken), flush=True)


try:
    main(int(sys.argv[1]))
except ImportError as error:
    say_no("PyTorch, or it is too old:", error)
except Exception as error:  # whatever a driver or a GPU in use says
    say_no("PyTorch on this GPU:", error)
