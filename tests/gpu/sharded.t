#!/bin/bash
# Ranks that share this machine's GPU train under DDP, FSDP and FSDP2; peaks are compared with the
# estimates of the profile of transformers, with nothing fitted.
. tests/lib/tap.sh
. tests/lib/gpu_runs.sh
needs_gpu transformers peft
runs_on_gpu 20 sharded.py
done_testing
