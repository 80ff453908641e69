"""Train models of Hugging Face transformers under FSDP2 with all states on the host, and write the runs
as a runs file, which `linkwise validate` compares with the estimates.

    tests/gpu/offload.py --linkwise build/linkwise RUNS.csv [--only WORD]

One rank: weights come up for each pass, gradients go down, and the host clips them and steps.  Each
step's parts, forward with backward, clipping and the optimizer, go to stderr in seconds.
"""

import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from huggingface import LLAMA_1B, QWEN_1B, TINYLLAMA, csv_row, model_of  # pylint: disable=wrong-import-position
from sharded import layers_of
from train import COLUMNS, forget, gpu_type

# name, config, sequence, micro-batch, micro-batches, how weights are kept, recompute; and is AdamW fused?
RUNS = [
    (("TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-mixed", "full"), False),
    (("TinyLlama-1.1B", TINYLLAMA, 2048, 4, 2, "bf16-mixed", "full"), True),
    (("Llama-3.2-1B", LLAMA_1B, 4096, 2, 1, "bf16-true", "full"), True),
    (("Qwen2.5-1.5B", QWEN_1B, 2048, 2, 1, "bf16-mixed", "none"), True),
]


def offloaded(config, kept, recompute):
    """The model, its layers and the rest of it sharded over one rank, on the host."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    model = model_of(config, kept, recompute, lora=False)[0].to("cpu")
    options = {"mesh": init_device_mesh("cuda", (1,)), "offload_policy": CPUOffloadPolicy()}
    if kept == "bf16-mixed":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in layers_of(model):
        fully_shard(layer, **options)
    fully_shard(model, **options)
    for module in model.modules():  # rotary embeddings' frequencies
        for name, buffer in list(module._buffers.items()):
            if buffer is not None:
                module._buffers[name] = buffer.cuda()
    return model


def train(run, fused, steps):
    """Peak bytes of the allocator, the median second of a step, and the last step's parts."""
    _, config, seq, micro_batch, micro_batches, kept, recompute = run
    torch.manual_seed(1)
    model = offloaded(config, kept, recompute)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=fused or None)
    seconds = []
    for step in range(steps):
        batches = torch.randint(0, config["vocab_size"], (micro_batches, micro_batch, seq), device="cuda")
        torch.cuda.synchronize()
        if step == 1:
            torch.cuda.reset_peak_memory_stats()
        at = [time.monotonic()]
        for tokens in batches:
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss / micro_batches
            loss.backward()
        torch.cuda.synchronize()
        at.append(time.monotonic())
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        at.append(time.monotonic())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        at.append(time.monotonic())
        seconds.append(at[-1] - at[0])
    return torch.cuda.max_memory_allocated(), statistics.median(seconds[1:]), [b - a for a, b in zip(at, at[1:])]


def row(run, fused, gpu, peak, seconds):
    line = dict(zip(COLUMNS + ["framework"], csv_row(run, gpu, peak, seconds, fused).split(",")))
    line.update({"source": "gpu-check-offload", "framework": "transformers (fsdp2)", "zero": 3,
                 "notes": f"{line['notes']}; fsdp2; cpu_offload=true"})
    return ",".join(str(line[c]) for c in COLUMNS + ["framework"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="write the runs here")
    parser.add_argument("--linkwise", default="build/linkwise")
    parser.add_argument("--only", default="", help="runs whose model has this in its name")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    gpu = gpu_type(options.linkwise)
    os.environ.update({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": "29519"})
    torch.cuda.set_device(0)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    rows = [",".join(COLUMNS + ["framework"])]
    for run, fused in RUNS:
        if options.only not in run[0]:
            continue
        peak, seconds, parts = train(run, fused, options.steps)
        forget()
        rows.append(row(run, fused, gpu, peak, seconds))
        print(json.dumps({"run": f"{run[0]} {run[5]} {run[6]}", "peak_gib": peak / 2**30, "seconds": seconds,
                          "parts": [round(s, 3) for s in parts]}), file=sys.stderr, flush=True)
        with open(options.csv, "w", encoding="utf-8") as out:
            out.write("\n".join(rows) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
