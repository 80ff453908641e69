#!/bin/bash
# PyTorch trains Llama- and GPT-shaped blocks on this machine's GPU; peak bytes and step times
# are printed beside the estimates.  Without a GPU the smallest shapes run on the CPU, which
# shows that the program works, and the comparison is skipped.
. tests/lib/tap.sh
needs_python torch python3-torch
$PY tests/gpu/train.py --tiny --steps 2 --linkwise "$LINKWISE" >"$T/tiny" 2>&1 &&
    [ "$(grep -cE '^(llama|gpt) ' "$T/tiny")" = 2 ]
result $? "both families train on the CPU" "$T/tiny"
why=$($PY -c 'import torch
print("" if torch.cuda.is_available() and int(torch.__version__.split(".")[0]) >= 2 and
      hasattr(torch.Tensor, "register_post_accumulate_grad_hook") else
      "no CUDA GPU, or PyTorch before 2.1: no peak and no step time was measured")' 2>/dev/null)
if [ -n "$why" ]; then
    skip "peaks and step times beside the estimates" "$why"
    done_testing
fi
$PY tests/gpu/train.py --linkwise "$LINKWISE" --csv "$T/runs.csv" >"$T/table" 2>&1 &&
    [ "$(grep -cE '^(llama|gpt) ' "$T/table")" = 12 ]
result $? "twelve shapes train on the GPU" "$T/table"
sed 's/^/# /' "$T/table"
"$LINKWISE" calibrate "$T/runs.csv" >"$T/fit" 2>&1
result $? "the runs are ones that calibrate takes" "$T/fit"
sed 's/^/# /' "$T/fit"
done_testing
