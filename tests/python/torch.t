#!/bin/bash
# A job whose launcher numbered the ranks in another order than the plan: torch_device_mesh gives
# the plan's groups over gloo, and RANK from megatron_ranks the plan's order.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python torch python3-torch
cd "$T" && "$PY" "$OLDPWD/tests/python/job.py"
