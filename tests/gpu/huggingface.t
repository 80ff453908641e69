#!/bin/bash
# Hugging Face transformers trains models of today on this machine's GPU, with adapters too; peaks and
# steps are compared with the estimates of the profile of transformers, with nothing fitted.
. tests/lib/tap.sh
. tests/lib/gpu_runs.sh
needs_gpu transformers peft
runs_on_gpu 15 huggingface.py
runs_on_gpu 15 huggingface.py --fused
runs_on_gpu 9 huggingface.py --experts grouped_mm --fused
done_testing
