#!/bin/bash
# Compiled models train on this machine's GPU as in nanoGPT and TorchTitan, beside the estimates of
# their profiles.
. tests/lib/tap.sh
. tests/lib/gpu_runs.sh
needs_gpu
runs_on_gpu 8 compiled.py
done_testing
