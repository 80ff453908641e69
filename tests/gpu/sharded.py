"""Train models of Hugging Face transformers on ranks that share this GPU, under PyTorch's DDP, FSDP
and FSDP2, and write the peaks as a runs file, which `linkwise validate` compares with the estimates.

    tests/gpu/sharded.py --linkwise build/linkwise RUNS.csv [--only WORD]

NCCL takes every rank for a host of its own, so what is sharded, gathered and reduced lies in memory
as on as many GPUs.  Times mean nothing and are not written.  Peaks are the allocator's, of the rank
that had most; the parts of a step that they lie in go to stderr.
"""

import argparse
import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from huggingface import LLAMA_1B, LLAMA_8B, QWEN_1B, TINYLLAMA, csv_row, model_of
from train import COLUMNS, Phases, forget, gpu_type  # pylint: disable=wrong-import-position

# ranks, how it is parallel, name, config, sequence, micro-batch, micro-batches, how weights are kept, recompute
RUNS = [
    (2, "ddp", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-true", "none"),
    (2, "ddp", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-mixed", "none"),
    (2, "ddp", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-mixed", "full"),
    (2, "ddp", "Llama-3.1-8B-LoRA", LLAMA_8B, 2048, 1, 1, "bf16-true", "full"),
    (2, "fsdp", "Llama-3.2-1B", LLAMA_1B, 4096, 1, 1, "bf16-mixed", "none"),
    (2, "fsdp", "Llama-3.2-1B", LLAMA_1B, 4096, 1, 1, "bf16-mixed", "full"),
    (2, "fsdp", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-true", "none"),
    (2, "fsdp", "TinyLlama-1.1B", TINYLLAMA, 2048, 4, 1, "bf16-mixed", "full"),
    (2, "fsdp no_sync", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 2, "bf16-mixed", "full"),
    (2, "fsdp", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 2, "bf16-mixed", "full"),
    (2, "fsdp shard_grad_op", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-mixed", "full"),
    (2, "fsdp2", "Llama-3.2-1B", LLAMA_1B, 4096, 1, 1, "bf16-mixed", "none"),
    (2, "fsdp2", "Llama-3.2-1B", LLAMA_1B, 4096, 1, 1, "bf16-mixed", "full"),
    (2, "fsdp2", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-true", "none"),
    (2, "fsdp2 kept", "TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-mixed", "full"),
    (2, "fsdp2", "Llama-3.1-8B-LoRA", LLAMA_8B, 2048, 1, 1, "bf16-true", "full"),
    (4, "fsdp", "Llama-3.2-1B", LLAMA_1B, 4096, 1, 1, "bf16-mixed", "none"),
    (4, "fsdp", "Qwen2.5-1.5B", QWEN_1B, 2048, 2, 1, "bf16-mixed", "full"),
    (4, "fsdp2", "Llama-3.2-1B", LLAMA_1B, 4096, 1, 1, "bf16-mixed", "none"),
    (4, "fsdp2", "Qwen2.5-1.5B", QWEN_1B, 2048, 2, 1, "bf16-mixed", "full"),
]


def layers_of(model):
    return next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) > 2)


def wrap(model, how, mixed):
    """The model as the library makes it parallel."""
    if how.startswith("ddp"):
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    if how.startswith("fsdp2"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        options = {"mesh": init_device_mesh("cuda", (dist.get_world_size(),))}
        if mixed:
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in layers_of(model):
            fully_shard(layer, reshard_after_forward="kept" not in how, **options)
        return fully_shard(model, **options)
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(layers_of(model)[0])})
    strategy = ShardingStrategy.SHARD_GRAD_OP if "shard_grad_op" in how else ShardingStrategy.FULL_SHARD
    dtypes = MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16) if mixed else None
    return FullyShardedDataParallel(model, sharding_strategy=strategy, auto_wrap_policy=policy, mixed_precision=dtypes,
                                    device_id=0, use_orig_params=True)


def accumulating(model, how, last):
    if last or "no_sync" not in how and not how.startswith("ddp"):
        return contextlib.nullcontext()
    return model.no_sync()


def train(run, steps):
    """The most bytes in the parts of a step after the first, and between steps."""
    _, how, name, config, seq, micro_batch, micro_batches, kept, recompute = run
    torch.manual_seed(1)
    mixed = kept == "bf16-mixed"
    model = model_of(config, kept, recompute, "LoRA" in name)[0]
    if not mixed:  # FSDP shards one kind of weights: adapters in bf16, too
        model.to(torch.bfloat16)
    model = wrap(model, how, mixed)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5)
    autocast = torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext()
    for step in range(steps):
        phases = Phases(step == steps - 1)
        batches = torch.randint(0, config["vocab_size"], (micro_batches, micro_batch, seq), device="cuda")
        for i, tokens in enumerate(batches):
            with accumulating(model, how, i == micro_batches - 1):
                with phases.part("forward"), autocast:
                    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss / micro_batches
                with phases.part("backward"):
                    loss.backward()
        with phases.part("clip"):
            if hasattr(model, "clip_grad_norm_"):
                model.clip_grad_norm_(1.0)
            else:
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        with phases.part("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        del loss
    phases.most["kept"] = torch.cuda.memory_allocated()
    return phases.most


def most_of_ranks(most):
    """The most that any rank had, of each part."""
    names = sorted(most)
    bytes_ = torch.tensor([most[n] for n in names], dtype=torch.float64, device="cuda")
    dist.all_reduce(bytes_, dist.ReduceOp.MAX)
    return dict(zip(names, bytes_.tolist()))


def work(options):
    """One rank: all runs of as many ranks, rank 0 printing what they had."""
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", timeout=timedelta(seconds=60))
    for number, run in enumerate(RUNS):
        if run[0] != dist.get_world_size() or options.only not in f"{run[1]} {run[2]}":
            continue
        try:
            said = most_of_ranks(train(run, options.steps))
        except (RuntimeError, TypeError, ValueError, AttributeError) as why:
            said = {"failed": str(why).splitlines()[0]}
        forget()
        if dist.get_rank() == 0:
            print(json.dumps([number, said]), flush=True)
    dist.barrier()
    os._exit(0)


def ranks(world, options):
    """What rank 0 of `world` ranks on this GPU prints, line by line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(world):
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(port), "NCCL_HOSTID": f"host{rank}", "NCCL_SOCKET_IFNAME": "lo",
               "NCCL_IB_DISABLE": "1", "LOCAL_RANK": "0"}
        command = [sys.executable, __file__, options.csv, "--rank", "--only", options.only, "--steps", str(options.steps)]
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                                        text=True))
    yield from started[0].stdout
    for p in started:
        p.wait()


def row(run, gpu, peak):
    world, how, *rest = run
    _, _, _, micro_batch, micro_batches, _, _ = rest
    line = dict(zip(COLUMNS + ["framework"], csv_row(rest, gpu, peak, 0).split(",")))
    kind = how.split()[0]
    line.update({"source": "gpu-check-sharded", "framework": f"transformers ({kind})", "gpus": world, "gpus_per_node": world,
                 "dp": world, "zero": 0 if kind == "ddp" else 2 if "shard_grad_op" in how or "kept" in how else 3,
                 "global_batch": world * micro_batch * micro_batches, "iter_time_s": "",
                 "notes": f"{line['notes']}; {how}"})
    return ",".join(str(line[c]) for c in COLUMNS + ["framework"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="write the runs here")
    parser.add_argument("--linkwise", default="build/linkwise")
    parser.add_argument("--only", default="", help="runs whose way and model have this in their names")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rank", action="store_true", help="be one of the ranks")
    options = parser.parse_args()
    if options.rank:
        work(options)
    gpu = gpu_type(options.linkwise)
    rows = [",".join(COLUMNS + ["framework"])]
    for world in sorted({r[0] for r in RUNS}):
        for line in ranks(world, options):
            number, said = json.loads(line)
            run = RUNS[number]
            named = {"run": f"{run[0]} ranks, {run[1]}, {run[2]}, {run[7]}, {run[8]}"}
            if "failed" in said:
                print(json.dumps({**named, **said}), file=sys.stderr, flush=True)
                continue
            gib = {part: round(b / 2**30, 3) for part, b in said.items()}
            print(json.dumps({**named, **gib}), file=sys.stderr, flush=True)
            rows.append(row(run, gpu, max(said.values())))
            with open(options.csv, "w", encoding="utf-8") as out:
                out.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
