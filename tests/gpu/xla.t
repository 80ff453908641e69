#!/bin/bash
# Models train in JAX on this machine's GPU as in MaxText, beside the estimates of the profile of
# XLA.
. tests/lib/tap.sh
. tests/lib/gpu_runs.sh
needs_gpu jax optax
runs_on_gpu 11 xla.py
done_testing
