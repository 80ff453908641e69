"""Train models of Hugging Face transformers for a few steps on this GPU, and write the runs as a
runs file, which `linkwise validate` compares with the estimates.

    tests/gpu/huggingface.py --linkwise build/linkwise RUNS.csv [--only WORD]

The models are those of people's fine-tuning jobs, of the shapes in their config.json, with random
weights; the loop is that of transformers' Trainer, but for its optimizer: AdamW as PyTorch has it by
default, gradients clipped, sdpa attention.  Measured are the median step and the most that the allocator had
(torch.cuda.max_memory_allocated) after the first step.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train import COLUMNS, gpu_type  # pylint: disable=wrong-import-position

LLAMA = {"model_type": "llama", "rms_norm_eps": 1e-5}
TINYLLAMA = {**LLAMA, "hidden_size": 2048, "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
             "intermediate_size": 5632, "vocab_size": 32000, "max_position_embeddings": 2048}
LLAMA_1B = {**LLAMA, "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True,
            "max_position_embeddings": 8192}
LLAMA_8B = {**LLAMA, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192}
MISTRAL_7B = {**LLAMA_8B, "model_type": "mistral", "vocab_size": 32000, "sliding_window": None}
QWEN_1B = {"model_type": "qwen2", "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12,
           "num_key_value_heads": 2, "intermediate_size": 8960, "vocab_size": 151936, "tie_word_embeddings": True,
           "max_position_embeddings": 8192}
QWEN3_600M = {"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
              "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
              "tie_word_embeddings": True, "max_position_embeddings": 8192}
# Fewer layers than people's, so that all of AdamW fits.
OLMOE = {"model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 16,
         "num_key_value_heads": 16, "intermediate_size": 1024, "num_experts": 64, "num_experts_per_tok": 8,
         "vocab_size": 50304, "max_position_embeddings": 4096}
QWEN3_30B = {"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 32,
             "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
             "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 8192}
MIXTRAL = {"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 3, "num_attention_heads": 32,
           "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2,
           "vocab_size": 32000, "max_position_embeddings": 4096}
GPT2_LARGE = {"model_type": "gpt2", "n_embd": 1280, "n_layer": 36, "n_head": 20, "n_positions": 1024, "vocab_size": 50257}

# name, config, sequence, micro-batch, micro-batches, how weights are kept, recompute
RUNS = [
    ("TinyLlama-1.1B", TINYLLAMA, 2048, 4, 1, "bf16-true", "none"),
    ("TinyLlama-1.1B", TINYLLAMA, 2048, 8, 1, "bf16-true", "full"),
    ("TinyLlama-1.1B", TINYLLAMA, 2048, 2, 2, "bf16-true", "none"),
    ("TinyLlama-1.1B", TINYLLAMA, 2048, 2, 1, "bf16-mixed", "none"),
    ("Llama-3.2-1B", LLAMA_1B, 4096, 2, 1, "bf16-true", "none"),
    ("Llama-3.2-1B", LLAMA_1B, 4096, 4, 1, "bf16-true", "full"),
    ("Llama-3.2-1B", LLAMA_1B, 2048, 2, 1, "bf16-mixed", "full"),
    ("Qwen2.5-1.5B", QWEN_1B, 2048, 4, 1, "bf16-true", "none"),
    ("Qwen2.5-1.5B", QWEN_1B, 4096, 2, 1, "bf16-true", "full"),
    ("Qwen3-0.6B", QWEN3_600M, 4096, 2, 1, "bf16-true", "none"),
    ("GPT2-large", GPT2_LARGE, 1024, 8, 1, "bf16-true", "none"),
    ("GPT2-large", GPT2_LARGE, 1024, 4, 1, "bf16-mixed", "none"),
    ("Llama-3.1-8B-LoRA", LLAMA_8B, 2048, 2, 1, "bf16-true", "none"),
    ("Llama-3.1-8B-LoRA", LLAMA_8B, 4096, 2, 1, "bf16-true", "full"),
    ("Mistral-7B", MISTRAL_7B, 4096, 1, 1, "bf16-true", "full"),
]
EXPERTS = [
    ("OLMoE-1B-7B", OLMOE, 2048, 4, 1, "bf16-true", "none"),
    ("OLMoE-1B-7B", OLMOE, 2048, 8, 1, "bf16-true", "full"),
    ("OLMoE-1B-7B", OLMOE, 2048, 1, 1, "bf16-true", "none"),
    ("Qwen3-30B-A3B", QWEN3_30B, 2048, 4, 1, "bf16-true", "none"),
    ("Qwen3-30B-A3B", QWEN3_30B, 4096, 4, 1, "bf16-true", "full"),
    ("Qwen3-30B-A3B", QWEN3_30B, 4096, 1, 2, "bf16-true", "full"),
    ("Mixtral-8x7B", MIXTRAL, 2048, 2, 1, "bf16-true", "none"),
    ("Mixtral-8x7B", MIXTRAL, 4096, 4, 1, "bf16-true", "full"),
    ("Mixtral-8x7B-LoRA", MIXTRAL, 4096, 4, 1, "bf16-true", "none"),
]
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj"]


def model_of(config, kept, recompute, lora, experts=None):
    """The model on the GPU, ready to train, and the parameters that are trained."""
    from transformers import AutoConfig, AutoModelForCausalLM

    fields = {k: v for k, v in config.items() if k != "model_type"}
    shape = AutoConfig.for_model(config["model_type"], **fields)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(shape, attn_implementation="sdpa", experts_implementation=experts)
    model = model.to("cuda", torch.float32 if kept == "bf16-mixed" else torch.bfloat16)
    if recompute == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if lora:
        from peft import LoraConfig, get_peft_model

        model.enable_input_require_grads()
        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=ADAPTED, task_type="CAUSAL_LM"))
    model.train()
    return model, [p for p in model.parameters() if p.requires_grad]


def train(run, options):
    """Peak bytes of the allocator, and the median second of a step."""
    name, config, seq, micro_batch, micro_batches, kept, recompute = run
    torch.manual_seed(1)
    model, parameters = model_of(config, kept, recompute, "LoRA" in name, options.experts)
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=options.fused or None)
    mixed = torch.autocast("cuda", torch.bfloat16) if kept == "bf16-mixed" else contextlib.nullcontext()
    seconds = []
    for step in range(options.steps):
        batches = torch.randint(0, config["vocab_size"], (micro_batches, micro_batch, seq), device="cuda")
        torch.cuda.synchronize()
        if step == 1:
            torch.cuda.reset_peak_memory_stats()
        start = time.monotonic()
        for tokens in batches:
            with mixed:
                loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss / micro_batches
            loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.monotonic() - start)
    return torch.cuda.max_memory_allocated(), statistics.median(seconds[1:])


def csv_row(run, gpu, peak, seconds, fused=False):
    name, config, seq, micro_batch, micro_batches, kept, recompute = run
    gpt = config["model_type"] == "gpt2"
    tied = gpt or config.get("tie_word_embeddings", False)
    hidden = config["n_embd"] if gpt else config["hidden_size"]
    heads = config["n_head"] if gpt else config["num_attention_heads"]
    notes = [f"torch {torch.__version__}", f"untie-embeddings-and-output-weights={'false' if tied else 'true'}"]
    if "head_dim" in config:
        notes.append(f"kv-channels={config['head_dim']}")
    experts = config.get("num_experts", config.get("num_local_experts", 0))
    ffn = config.get("moe_intermediate_size", config.get("intermediate_size", 4 * hidden))
    if experts:
        notes += [f"num-experts={experts}", f"moe-router-topk={config['num_experts_per_tok']}",
                  f"moe-ffn-hidden-size={ffn}"]
    if "LoRA" in name:
        notes.append("LoRA")
    if fused:
        notes.append("adamw_torch_fused")
    cells = {"source": "gpu-check-transformers", "framework": "transformers", "model": name,
             "layers": config["n_layer"] if gpt else config["num_hidden_layers"], "hidden": hidden, "heads": heads,
             "kv_heads": config.get("num_key_value_heads", heads), "ffn": ffn,
             "vocab": config["vocab_size"], "seq": seq, "gpu": gpu, "gpus": 1, "gpus_per_node": 1, "tp": 1, "pp": 1,
             "dp": 1, "zero": 0, "micro_batch": micro_batch, "global_batch": micro_batch * micro_batches,
             "precision": kept, "attention": "flash", "recompute": recompute, "oom": 0, "notes": "; ".join(notes),
             "iter_time_s": f"{seconds:.6g}", "peak_mem_gb": f"{peak / 2**30:.6g}"}
    return ",".join(str(cells.get(c, "")) for c in COLUMNS + ["framework"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="write the runs here")
    parser.add_argument("--linkwise", default="build/linkwise")
    parser.add_argument("--only", default="", help="runs whose model has this in its name")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--experts", choices=["grouped_mm", "eager"],
                        help="models of experts in place of the others, by this implementation")
    parser.add_argument("--fused", action="store_true", help="the fused AdamW, the Trainer's since PyTorch 2.8")
    options = parser.parse_args()
    gpu = gpu_type(options.linkwise)
    rows = [",".join(COLUMNS + ["framework"])]
    for run in EXPERTS if options.experts else RUNS:
        if options.only not in run[0]:
            continue
        try:
            peak, seconds = train(run, options)
        except (RuntimeError, TypeError, ValueError) as why:
            print(f"{run[0]} of {run[2]} x {run[3]}: {str(why).splitlines()[0]}", file=sys.stderr, flush=True)
            continue
        finally:
            torch.cuda.empty_cache()
        rows.append(csv_row(run, gpu, peak, seconds, options.fused))
        print(json.dumps({"model": run[0], "peak_gib": peak / 2**30, "seconds": seconds}), file=sys.stderr, flush=True)
        with open(options.csv, "w", encoding="utf-8") as out:
            out.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
