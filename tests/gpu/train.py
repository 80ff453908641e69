"""Train small Llama- and GPT-shaped models for a few steps with PyTorch, and print peak
memory and step time beside linkwise's estimates.

    tests/gpu/train.py --linkwise build/linkwise [--csv RUNS.csv] [--tiny]

Mixed precision is done as Megatron does it: bf16 weights, fp32 main gradients that every
parameter's gradient is added to as soon as it is there, fp32 master weights and moments
(18 bytes a parameter); fp32 training has 16.  What is compared is what the allocator saw
at its fullest (torch.cuda.max_memory_allocated) with the estimate without its overhead.
--csv writes the runs as a runs file, which `linkwise calibrate` takes.  --tiny runs the
smallest shapes on the CPU: it shows that this program works, and measures nothing.
"""

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

COLUMNS = """source,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,gpu_mem_gb,gpus,gpus_per_node,\
inter_node_gbps,tp,pp,vpp,dp,cp,ep,sp,zero,micro_batch,global_batch,precision,attention,recompute,iter_time_s,\
tokens_per_s_per_gpu,tflops_per_gpu,mfu,peak_mem_gb,oom,notes""".split(",")

# family, layers, hidden, heads, kv heads, ffn, vocabulary, seq, micro-batch, precision, attention, recompute
SHAPES = [
    ("llama", 8, 2048, 16, 16, 5504, 32000, 2048, 4, "bf16", "flash", "none"),
    ("llama", 8, 2048, 16, 16, 5504, 128256, 2048, 4, "bf16", "flash", "none"),
    ("llama", 8, 2048, 16, 16, 5504, 32000, 2048, 4, "bf16", "flash", "full"),
    ("llama", 8, 2048, 16, 4, 7168, 32000, 4096, 2, "bf16", "flash", "none"),
    ("llama", 8, 2048, 16, 16, 5504, 32000, 2048, 2, "bf16", "unfused", "none"),
    ("llama", 8, 2048, 16, 16, 5504, 32000, 2048, 2, "fp32", "unfused", "none"),
    ("llama", 4, 4096, 32, 8, 14336, 128256, 4096, 1, "bf16", "flash", "none"),
    ("llama", 4, 4096, 32, 8, 14336, 128256, 4096, 1, "bf16", "flash", "full"),
    ("gpt", 8, 2048, 16, 16, 8192, 32000, 2048, 4, "bf16", "flash", "none"),
    ("gpt", 8, 2048, 16, 16, 8192, 32000, 2048, 4, "bf16", "flash", "full"),
    ("gpt", 8, 2048, 16, 16, 8192, 128256, 2048, 2, "bf16", "unfused", "none"),
    ("gpt", 8, 2048, 16, 16, 8192, 32000, 1024, 2, "fp32", "unfused", "none"),
]
TINY = [
    ("llama", 2, 64, 4, 2, 128, 128, 32, 2, "bf16", "unfused", "none"),
    ("gpt", 2, 64, 4, 4, 256, 128, 32, 2, "fp32", "unfused", "full"),
]


class Phases:
    """The most bytes that the allocator had in each part of a step; a timed step does not look."""

    def __init__(self, looks):
        self.looks, self.most = looks, {}

    @contextlib.contextmanager
    def part(self, name):
        if not self.looks:
            yield
            return
        torch.cuda.reset_peak_memory_stats()
        yield
        torch.cuda.synchronize()
        self.most[name] = max(self.most.get(name, 0), torch.cuda.max_memory_allocated())


def forget():
    """Free what the last run left on the GPU: FSDP's modules refer to one another."""
    gc.collect()
    torch.cuda.empty_cache()


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * y.to(x.dtype)


class Block(nn.Module):
    """One layer; Llama's is gated with RMS norms and no biases, GPT's plain with both."""

    def __init__(self, family, hidden, heads, kv_heads, ffn, attention):
        super().__init__()
        gpt = family == "gpt"
        norm = nn.LayerNorm if gpt else RMSNorm
        self.heads, self.kv_heads, self.dim = heads, kv_heads, hidden // heads
        self.attention, self.gpt = attention, gpt
        self.norm1, self.norm2 = norm(hidden), norm(hidden)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.dim, bias=gpt)
        self.out = nn.Linear(hidden, hidden, bias=gpt)
        self.up = nn.Linear(hidden, ffn, bias=gpt)
        self.gate = None if gpt else nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=gpt)
        self.dropout = nn.Dropout(0.1 if gpt else 0.0)

    def attend(self, q, k, v):
        k = k.repeat_interleave(self.heads // self.kv_heads, 1) if self.kv_heads < self.heads else k
        v = v.repeat_interleave(self.heads // self.kv_heads, 1) if self.kv_heads < self.heads else v
        if self.attention == "flash":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / self.dim**0.5
        mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        return torch.softmax(scores.masked_fill(mask, float("-inf")).float(), -1).to(q.dtype) @ v

    def forward(self, x):
        b, s, h = x.shape
        parts = self.qkv(self.norm1(x)).view(b, s, -1, self.dim).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.kv_heads, self.kv_heads), 1)
        x = x + self.dropout(self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, s, h)))
        y = self.norm2(x)
        y = F.gelu(self.up(y)) if self.gpt else F.silu(self.gate(y)) * self.up(y)
        return x + self.dropout(self.down(y))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        family, layers, hidden, heads, kv_heads, ffn, vocab, seq, _, _, attention, recompute = shape
        self.embedding = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(seq, hidden) if family == "gpt" else None
        self.layers = nn.ModuleList(Block(family, hidden, heads, kv_heads, ffn, attention) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden) if family == "gpt" else RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocab, bias=False)
        self.recompute = recompute == "full"
        if family == "gpt":
            self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = F.dropout(x + self.positions.weight, 0.1, self.training)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), tokens.view(-1))


class Trainer:
    """Adam on fp32 master weights; in fp32 the weights are their own."""

    def __init__(self, model, mixed):
        self.weights = list(model.parameters())
        self.mixed = mixed
        self.masters = [p.detach().float().clone() if mixed else p for p in self.weights]
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4, foreach=False)
        if mixed:
            for weight, master in zip(self.weights, self.masters):
                master.grad = torch.zeros_like(master)
                self.add_gradients(weight, master)

    @staticmethod
    def add_gradients(weight, master):
        def add(parameter):
            master.grad.add_(parameter.grad)
            parameter.grad = None

        def add_alone(gradient):
            master.grad.add_(gradient)

        if hasattr(weight, "register_post_accumulate_grad_hook"):
            weight.register_post_accumulate_grad_hook(add)
        else:  # PyTorch before 2.1 keeps the bf16 gradient until the step: CPU trials only
            weight.register_hook(add_alone)

    def step(self):
        self.optimizer.step()
        for weight, master in zip(self.weights, self.masters):
            if self.mixed:
                weight.data.copy_(master)
                master.grad.zero_()
            weight.grad = None


def train(shape, device, steps):
    """Peak bytes of the allocator (None on a CPU) and the median second of a step."""
    _, _, _, _, _, _, vocab, seq, batch, precision, _, _ = shape
    mixed = precision == "bf16"
    cuda = device == "cuda"
    torch.manual_seed(1)
    model = Model(shape).to(device, torch.bfloat16 if mixed else torch.float32)
    trainer = Trainer(model, mixed)
    seconds = []
    for step in range(steps):
        tokens = torch.randint(0, vocab, (batch, seq), device=device)
        if cuda:
            torch.cuda.synchronize()
            if step == 1:
                torch.cuda.reset_peak_memory_stats()
        start = time.monotonic()
        model(tokens).backward()
        trainer.step()
        if cuda:
            torch.cuda.synchronize()
        seconds.append(time.monotonic() - start)
    peak = torch.cuda.max_memory_allocated() if cuda else None
    del model, trainer
    if cuda:
        torch.cuda.empty_cache()
    return peak, statistics.median(seconds[1:])


def config_json(shape):
    family, layers, hidden, heads, kv_heads, ffn, vocab, seq, *_ = shape
    if family == "gpt":
        return {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_inner": ffn,
                "n_positions": seq, "vocab_size": vocab}
    return {"model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "intermediate_size": ffn, "vocab_size": vocab}


def ask(linkwise, *arguments):
    return json.loads(subprocess.run([linkwise, *arguments], check=True, stdout=subprocess.PIPE).stdout)


def estimate(linkwise, shape, gpu):
    """Bytes of tensors, and the second of a step."""
    *_, seq, batch, precision, attention, recompute = shape
    with tempfile.NamedTemporaryFile("w", suffix=".json") as model:
        json.dump(config_json(shape), model)
        model.flush()
        job = ["--seq", str(seq), "--global-batch", str(batch), "--micro-batch", str(batch), "--zero", "0",
               "--precision", precision, "--attention", attention, "--recompute", recompute,
               "--fused-norm", "on" if shape[0] == "gpt" else "off", "--fused-mlp", "off", "--json"]
        stage = ask(linkwise, "mem", model.name, "--gpu", gpu, *job)["per_stage"][0]
        step = ask(linkwise, "time", f"1x1 {gpu}", model.name, *job)["step_s"]
    return stage["peak_bytes"] - stage["overhead_bytes"], step


def gpu_type(linkwise):
    """The built-in type that is this GPU."""
    name = torch.cuda.get_device_name(0).lower().replace(" ", "-")
    bytes_ = torch.cuda.get_device_properties(0).total_memory
    types = [t for t in ask(linkwise, "gpus", "--json")["gpus"]
             if t["name"].split("-")[0] in name.split("-") or t["name"].replace("rtx-", "") in name]
    if not types:
        sys.exit(f"train.py: {name} is no built-in GPU type (`linkwise gpus`)")
    return min(types, key=lambda t: abs(t["memory_gb"] * 1e9 - bytes_))["name"]


def csv_row(shape, gpu, peak, seconds):
    family, layers, hidden, heads, kv_heads, ffn, vocab, seq, batch, precision, attention, recompute = shape
    cells = {"source": "gpu-check", "model": f"{family}-h{hidden}-l{layers}-v{vocab}", "layers": layers,
             "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab, "seq": seq,
             "gpu": gpu, "gpus": 1, "gpus_per_node": 1, "tp": 1, "pp": 1, "dp": 1, "zero": 0, "micro_batch": batch,
             "global_batch": batch, "precision": precision, "attention": attention, "recompute": recompute,
             "iter_time_s": f"{seconds:.6g}", "peak_mem_gb": f"{peak / 2**30:.6g}", "oom": 0,
             "notes": f"torch {torch.__version__}; fused-norm={'true' if family == 'gpt' else 'false'}; fused-mlp=false"}
    return ",".join(str(cells.get(c, "")) for c in COLUMNS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linkwise", default="build/linkwise")
    parser.add_argument("--csv", help="write the runs here")
    parser.add_argument("--tiny", action="store_true", help="the smallest shapes, on the CPU")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    device = "cpu" if options.tiny else "cuda"
    gpu = "a100-sxm4-80g" if options.tiny else gpu_type(options.linkwise)
    rows = [",".join(COLUMNS)]

    where = f"no GPU, nothing measured; estimates for {gpu}" if options.tiny else gpu
    print(f"{where}, torch {torch.__version__}")
    print("family  layers  hidden  vocab   seq   b  prec  attention  recompute   peak GiB   est GiB      %   step ms    est ms      %")
    for shape in TINY if options.tiny else SHAPES:
        bytes_, step = estimate(options.linkwise, shape, gpu)
        peak, seconds = train(shape, device, options.steps)
        family, layers, hidden, _, _, _, vocab, seq, batch, precision, attention, recompute = shape
        line = (f"{family:6}  {layers:6}  {hidden:6}  {vocab:6}  {seq:4}  {batch:2}  {precision:4}  {attention:9}  "
                f"{recompute:9}  ")
        if peak:
            line += (f"{peak / 2**30:9.3f} {bytes_ / 2**30:9.3f} {100 * (bytes_ / peak - 1):+6.1f} {1e3 * seconds:9.2f} "
                     f"{1e3 * step:9.2f} {100 * (step / seconds - 1):+6.1f}")
            rows.append(csv_row(shape, gpu, peak, seconds))
        else:
            line += f"        - {bytes_ / 2**30:9.3f}      -         - {1e3 * step:9.2f}      -"
        print(line, flush=True)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8") as out:
            out.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
