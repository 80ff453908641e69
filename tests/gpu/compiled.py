"""Train compiled models on this GPU as nanoGPT and TorchTitan do, and write the runs as a runs file,
which `linkwise validate` compares with the estimates.

    tests/gpu/compiled.py --linkwise build/linkwise RUNS.csv [--only WORD]

nanoGPT compiles the whole model and trains fp32 weights under autocast; TorchTitan compiles layer by
layer, shards fp32 weights by FSDP2 (here over one rank), gathers them in bf16 and recomputes all of a
layer, every second product of it, or nothing.  Both step with the fused AdamW.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import checkpoint

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train import COLUMNS, Phases, forget, gpu_type  # pylint: disable=wrong-import-position

# framework, model, layers, hidden, heads, kv heads, ffn, vocabulary, sequence, micro-batch, micro-batches, recompute
RUNS = [
    ("nanogpt", "GPT2-124M", 12, 768, 12, 12, 3072, 50304, 1024, 12, 4, "none"),
    ("nanogpt", "GPT2-medium", 24, 1024, 16, 16, 4096, 50304, 1024, 8, 2, "none"),
    ("nanogpt", "GPT2-large", 36, 1280, 20, 20, 5120, 50304, 1024, 4, 2, "none"),
    ("torchtitan", "Llama-8B-8-layers", 8, 4096, 32, 8, 14336, 128256, 8192, 1, 1, "none"),
    ("torchtitan", "Llama-8B-8-layers", 8, 4096, 32, 8, 14336, 128256, 8192, 1, 1, "selective"),
    ("torchtitan", "Llama-8B-8-layers", 8, 4096, 32, 8, 14336, 128256, 8192, 1, 1, "full"),
    ("torchtitan", "Llama-3.2-1B", 16, 2048, 32, 8, 8192, 128256, 4096, 2, 1, "selective"),
    ("torchtitan", "Llama-3.2-1B", 16, 2048, 32, 8, 8192, 128256, 4096, 2, 2, "none"),
]


class Layer(nn.Module):
    def __init__(self, gpt, hidden, heads, kv_heads, ffn):
        super().__init__()
        self.gpt, self.heads, self.kv_heads, self.width = gpt, heads, kv_heads, hidden // heads
        kv = kv_heads * self.width
        norm = (lambda: nn.LayerNorm(hidden, bias=False)) if gpt else (lambda: nn.RMSNorm(hidden, eps=1e-5))
        self.norm1, self.norm2 = norm(), norm()
        sizes = (hidden + 2 * kv,) if gpt else (hidden, kv, kv)
        self.qkv = nn.ModuleList(nn.Linear(hidden, n, bias=False) for n in sizes)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.up = nn.ModuleList(nn.Linear(hidden, ffn, bias=False) for _ in range(1 if gpt else 2))
        self.down = nn.Linear(ffn, hidden, bias=False)

    def heads_of(self, x, rotary):
        b, s, h = x.shape
        kv = self.kv_heads * self.width
        parts = [p(x) for p in self.qkv]
        q, k, v = parts if len(parts) == 3 else parts[0].split((h, kv, kv), -1)
        q, k, v = (t.view(b, s, -1, self.width) for t in (q, k, v))
        if not self.gpt:
            q, k = (self.turn(t, rotary) for t in (q, k))
            k, v = (t.repeat_interleave(self.heads // self.kv_heads, 2) for t in (k, v))
        return (t.transpose(1, 2) for t in (q, k, v))

    @staticmethod
    def turn(x, rotary):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * rotary).flatten(3).type_as(x)

    def forward(self, x, rotary):
        b, s, h = x.shape
        attended = F.scaled_dot_product_attention(*self.heads_of(self.norm1(x), rotary), is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, s, h))
        y = self.norm2(x)
        y = F.gelu(self.up[0](y)) if self.gpt else F.silu(self.up[0](y)) * self.up[1](y)
        return x + self.down(y)


class Model(nn.Module):
    def __init__(self, run):
        super().__init__()
        framework, _, layers, hidden, heads, kv_heads, ffn, vocab, seq, *_ = run
        gpt = framework == "nanogpt"
        self.embedding = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(seq, hidden) if gpt else None
        self.layers = nn.ModuleList(Layer(gpt, hidden, heads, kv_heads, ffn) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden, bias=False) if gpt else nn.RMSNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, vocab, bias=False)
        if gpt:
            self.head.weight = self.embedding.weight
        width = hidden // heads
        angles = torch.outer(torch.arange(seq), 5e5 ** (-torch.arange(0, width, 2) / width)).unsqueeze(1)
        self.rotary = None if gpt else torch.polar(torch.ones_like(angles), angles).cuda()

    def forward(self, tokens):
        """The logits; nanoGPT's model gives the loss."""
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        for layer in self.layers:
            x = layer(x, self.rotary)
        logits = self.head(self.norm(x))
        return logits if self.positions is None else F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def loss_of(logits, tokens):
    return F.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())


def every_second_product():
    """What TorchTitan's selective recomputation keeps: attention, and every second product."""
    products = [0]
    kept = {getattr(torch.ops.aten, f"_scaled_dot_product_{kind}_attention").default
            for kind in ("flash", "efficient", "cudnn")}

    def policy(_, op, *__, **___):
        if op == torch.ops.aten.mm.default:
            products[0] += 1
        keep = op in kept or op == torch.ops.aten.mm.default and products[0] % 2
        return checkpoint.CheckpointPolicy.MUST_SAVE if keep else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    return checkpoint.create_selective_checkpoint_contexts(policy)


def as_torchtitan(model, recompute):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    options = {"mesh": init_device_mesh("cuda", (1,)),
               "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for i, layer in enumerate(model.layers):
        if recompute == "full":
            layer = checkpoint_wrapper(layer, preserve_rng_state=False)
        elif recompute == "selective":
            layer = checkpoint_wrapper(layer, preserve_rng_state=False, context_fn=every_second_product)
        model.layers[i] = torch.compile(layer, fullgraph=True)
        fully_shard(model.layers[i], **options)
    return fully_shard(model, **options)


def train(run, steps):
    """The most bytes of the allocator in the parts of a step, and the median second of one."""
    framework, *_, vocab, seq, micro_batch, micro_batches, recompute = run
    torch.manual_seed(1)
    torch._dynamo.reset()
    with torch.device("cuda"):
        model = Model(run)
    nano = framework == "nanogpt"
    model = torch.compile(model) if nano else as_torchtitan(model, recompute)
    compiled_loss = torch.compile(loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    autocast = torch.autocast("cuda", torch.bfloat16) if nano else contextlib.nullcontext()
    seconds = []
    for step in range(steps):
        phases = Phases(step == steps - 1)
        batches = torch.randint(0, vocab, (micro_batches, micro_batch, seq), device="cuda")
        torch.cuda.synchronize()
        start = time.monotonic()
        for tokens in batches:
            with phases.part("forward"), autocast:
                loss = (model(tokens) if nano else compiled_loss(model(tokens), tokens)) / micro_batches
            with phases.part("backward"):
                loss.backward()
        with phases.part("optimizer"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.monotonic() - start)
    phases.most["kept"] = torch.cuda.memory_allocated()
    return phases.most, statistics.median(seconds[2:-1])


def csv_row(run, gpu, peak, seconds):
    framework, model, layers, hidden, heads, kv_heads, ffn, vocab, seq, micro_batch, micro_batches, recompute = run
    nano = framework == "nanogpt"
    cells = {"source": "gpu-check-compiled", "framework": framework, "model": model, "layers": layers, "hidden": hidden,
             "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab, "seq": seq, "gpu": gpu, "gpus": 1,
             "gpus_per_node": 1, "tp": 1, "pp": 1, "dp": 1, "zero": 0 if nano else 3, "micro_batch": micro_batch,
             "global_batch": micro_batch * micro_batches, "precision": "bf16-mixed" if nano else "bf16",
             "attention": "flash", "recompute": recompute, "oom": 0,
             "notes": f"torch {torch.__version__}; compile", "iter_time_s": f"{seconds:.6g}",
             "peak_mem_gb": f"{peak / 2**30:.6g}"}
    return ",".join(str(cells.get(c, "")) for c in COLUMNS + ["framework"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="write the runs here")
    parser.add_argument("--linkwise", default="build/linkwise")
    parser.add_argument("--only", default="", help="runs whose framework and model have this in their names")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    gpu = gpu_type(options.linkwise)
    os.environ.update({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"})
    torch.distributed.init_process_group("nccl")
    rows = [",".join(COLUMNS + ["framework"])]
    for run in RUNS:
        if options.only not in f"{run[0]} {run[1]}":
            continue
        try:
            most, seconds = train(run, options.steps)
        except (RuntimeError, TypeError, ValueError, AttributeError) as why:
            print(f"{run[0]} {run[1]} {run[-1]}: {str(why).splitlines()[0]}", file=sys.stderr, flush=True)
            continue
        finally:
            forget()
        rows.append(csv_row(run, gpu, max(most.values()), seconds))
        gib = {part: round(b / 2**30, 3) for part, b in most.items()}
        print(json.dumps({"run": f"{run[0]} {run[1]} {run[-1]}", "seconds": seconds, **gib}), file=sys.stderr, flush=True)
        with open(options.csv, "w", encoding="utf-8") as out:
            out.write("\n".join(rows) + "\n")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
