#!/bin/bash
# A rank trains with weights, gradients and states on the host, beside the estimates of the profile
# of transformers.
. tests/lib/tap.sh
. tests/lib/gpu_runs.sh
needs_gpu transformers peft
runs_on_gpu 4 offload.py
done_testing
