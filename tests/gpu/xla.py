"""Train Llama- and GPT-shaped models with JAX on this GPU as MaxText does, and write the runs as a runs
file, which `linkwise validate` compares with the estimates.

    tests/gpu/xla.py --linkwise build/linkwise RUNS.csv [--only WORD]

Weights and moments are fp32, products take bf16 casts of them, layers are one scan, and each is
recomputed whole (`full`), but for its products (`minimal`), or not at all.  The memory is what XLA says
that the compiled step needs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# model, layers, hidden, heads, kv heads, ffn, vocabulary, sequence, micro-batch, micro-batches, recompute
RUNS = [
    ("Llama-3.2-1B", 16, 2048, 32, 8, 8192, 128256, 4096, 2, 1, "full"),
    ("Llama-3.2-1B", 16, 2048, 32, 8, 8192, 128256, 4096, 2, 1, "minimal"),
    ("Llama-3.2-1B", 16, 2048, 32, 8, 8192, 128256, 2048, 2, 1, "none"),
    ("Llama-8B-8-layers", 8, 4096, 32, 8, 14336, 32000, 8192, 2, 1, "full"),
    ("Llama-8B-8-layers", 8, 4096, 32, 8, 14336, 32000, 8192, 1, 1, "minimal"),
    ("Llama-8B-8-layers", 8, 4096, 32, 8, 14336, 32000, 4096, 1, 1, "none"),
    ("TinyLlama-1.1B", 22, 2048, 32, 4, 5632, 32000, 2048, 8, 1, "minimal"),
    ("TinyLlama-1.1B", 22, 2048, 32, 4, 5632, 32000, 2048, 4, 4, "full"),
    ("GPT-1.3B", 24, 2048, 16, 16, 8192, 51200, 1024, 8, 1, "full"),
    ("GPT-1.3B", 24, 2048, 16, 16, 8192, 51200, 1024, 4, 1, "none"),
    ("GPT-350M", 24, 1024, 16, 16, 4096, 51200, 1024, 8, 1, "full"),
]


def shapes_of(run):
    """Each weight's shape."""
    _, layers, hidden, heads, kv_heads, ffn, vocab, seq, *_ = run
    gpt, kv = kv_heads == heads, kv_heads * (hidden // heads)
    shapes = {"embedding": (vocab, hidden), "head": (hidden, vocab),
              "norm": (hidden,), "norm1": (layers, hidden),
              "norm2": (layers, hidden), "q": (layers, hidden, hidden),
              "k": (layers, hidden, kv), "v": (layers, hidden, kv),
              "out": (layers, hidden, hidden), "up": (layers, hidden, ffn),
              "down": (layers, ffn, hidden)}
    if gpt:
        shapes["positions"] = (seq, hidden)
        del shapes["head"]
    else:
        shapes["gate"] = shapes["up"]
    return shapes


def build(run):
    """The step as a function of weights, moments and tokens, and its optimizer."""
    import jax
    import jax.numpy as jnp
    import optax

    _, _, hidden, heads, kv_heads, _, _, seq, _, micro_batches, recompute = run
    gpt, width = kv_heads == heads, hidden // heads

    def normed(x, scale):
        y = x.astype(jnp.float32)
        if gpt:
            y = y - jnp.mean(y, -1, keepdims=True)
        y = y * jax.lax.rsqrt(jnp.mean(jnp.square(y), -1, keepdims=True) + 1e-5)
        return (y * scale).astype(jnp.bfloat16)

    def product(x, w):
        return x @ w.astype(jnp.bfloat16)

    def turned(x):
        angles = jnp.arange(seq)[:, None] * 5e5 ** (-jnp.arange(0, width, 2) / width)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        a, b = jnp.split(x.astype(jnp.float32), 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(jnp.bfloat16)

    def layer(x, w):
        b, s, _ = x.shape
        y = normed(x, w["norm1"])
        q, k, v = (product(y, w[n]).reshape(b, s, -1, width) for n in "qkv")
        if not gpt:
            q, k = turned(q), turned(k)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn").reshape(b, s, -1)
        x = x + product(y, w["out"])
        y = normed(x, w["norm2"])
        up = product(y, w["up"])
        y = jax.nn.gelu(up) if gpt else jax.nn.silu(product(y, w["gate"])) * up
        return x + product(y, w["down"]), None

    policies = {"full": jax.checkpoint_policies.nothing_saveable,
                "minimal": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}
    if recompute in policies:
        layer = jax.checkpoint(layer, policy=policies[recompute], prevent_cse=False)

    def loss_of(weights, tokens):
        table = weights["embedding"]
        x = table.astype(jnp.bfloat16)[tokens]
        if gpt:
            x = x + weights["positions"].astype(jnp.bfloat16)
        in_layers = {n: w for n, w in weights.items() if n not in ("embedding", "head", "norm", "positions")}
        x, _ = jax.lax.scan(layer, x, in_layers)
        x = normed(x, weights["norm"])
        logits = product(x, table.T if gpt else weights["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4))

    def gradients(weights, tokens):
        if micro_batches == 1:
            return jax.value_and_grad(loss_of)(weights, tokens[0])

        def one(total, tokens):
            loss, grads = jax.value_and_grad(loss_of)(weights, tokens)
            return jax.tree.map(jnp.add, total, grads), loss

        total, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, weights), tokens)
        return losses.mean(), total

    def step(weights, moments, tokens):
        loss, grads = gradients(weights, tokens)
        updates, moments = optimizer.update(grads, moments, weights)
        return optax.apply_updates(weights, updates), moments, loss

    return jax.jit(step, donate_argnums=(0, 1)), optimizer


def started(run, optimizer):
    """Weights, moments and tokens."""
    import jax
    import jax.numpy as jnp

    shapes = shapes_of(run)
    keys = jax.random.split(jax.random.key(0), len(shapes))
    weights = {n: jnp.ones(shape, jnp.float32) if "norm" in n else 0.02 * jax.random.normal(k, shape, jnp.float32)
               for k, (n, shape) in zip(keys, shapes.items())}
    tokens = jax.random.randint(keys[0], (run[9], run[8], run[7]), 0, run[6])
    return weights, optimizer.init(weights), tokens


def train(run, steps):
    """Bytes that XLA says the step needs and that the allocator had, and the median second of a step."""
    import jax

    step, optimizer = build(run)
    weights, moments, tokens = started(run, optimizer)
    begun = time.monotonic()
    need = step.lower(weights, moments, tokens).compile().memory_analysis()
    out = {"compile_s": round(time.monotonic() - begun, 1), "arguments": need.argument_size_in_bytes,
           "temporary": need.temp_size_in_bytes}
    out["peak"] = sum(out[n] for n in ("arguments", "temporary")) + need.output_size_in_bytes - need.alias_size_in_bytes
    seconds = []
    for _ in range(steps):
        start = time.monotonic()
        weights, moments, loss = step(weights, moments, tokens)
        loss.block_until_ready()
        seconds.append(time.monotonic() - start)
    out["seconds"] = statistics.median(seconds[2:])
    out["allocator"] = jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    return out


def csv_row(run, gpu, out, columns):
    import jax

    model, layers, hidden, heads, kv_heads, ffn, vocab, seq, micro_batch, micro_batches, recompute = run
    cells = {"source": "gpu-check-xla", "framework": "maxtext", "model": model, "layers": layers, "hidden": hidden,
             "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab, "seq": seq, "gpu": gpu, "gpus": 1,
             "gpus_per_node": 1, "tp": 1, "pp": 1, "dp": 1, "zero": 3, "micro_batch": micro_batch,
             "global_batch": micro_batch * micro_batches, "precision": "bf16", "attention": "flash",
             "recompute": {"minimal": "selective"}.get(recompute, recompute), "oom": 0, "notes": f"jax {jax.__version__}",
             "iter_time_s": f"{out['seconds']:.6g}", "peak_mem_gb": f"{out['peak'] / 2**30:.6g}"}
    return ",".join(str(cells.get(c, "")) for c in columns)


def in_a_process(index, options):
    """Each run has a process of its own: JAX's allocator forgets nothing."""
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    command = [sys.executable, __file__, "-", "--run", str(index), "--steps", str(options.steps), "--gpu", options.gpu]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=150, check=False).stdout


def one_run(index, options):
    from train import COLUMNS

    run = RUNS[index]
    out = train(run, options.steps)
    gib = {k: round(v / 2**30, 3) if k not in ("seconds", "compile_s") else v for k, v in out.items()}
    print(json.dumps({"run": f"{run[0]} {run[10]}", **gib}), file=sys.stderr, flush=True)
    print(csv_row(run, options.gpu, out, COLUMNS + ["framework"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="write the runs here")
    parser.add_argument("--linkwise", default="build/linkwise")
    parser.add_argument("--only", default="", help="runs whose model and recompute have this in their names")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--run", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run >= 0:
        one_run(options.run, options)
        return
    from train import COLUMNS, gpu_type

    options.gpu = gpu_type(options.linkwise)
    rows = [",".join(COLUMNS + ["framework"])]
    for index, run in enumerate(RUNS):
        if options.only not in f"{run[0]} {run[10]}":
            continue
        rows += in_a_process(index, options).splitlines()
        with open(options.csv, "w", encoding="utf-8") as out:
            out.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
