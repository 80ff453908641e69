#!/bin/bash
# What Hugging Face transformers took on an H100 and an H200 (examples/runs/transformers.csv, measured
# by tests/gpu/huggingface.py), beside the estimates of its profile, which was fitted on none of it.
. tests/lib/tap.sh
"$LINKWISE" validate -q examples/runs/transformers.csv --per-row "$T/rows.csv" >"$T/table" 2>&1
result $? "all rows are estimated" "$T/table"

awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { n++; off = $at["est_peak_mem_gb"] / $at["peak_mem_gb"] - 1
      if (off > .01 || off < -.01) { print off, $0; bad++ } }
    END { print n " peaks"; exit bad || n != 30 }' "$T/rows.csv" >"$T/why"
result $? "30 peaks within 1 %" "$T/why"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { off = $at["est_iter_time_s"] / $at["iter_time_s"] - 1; n++
      far = off > .2 || off < -.2; near += off < .07 && off > -.07
      if (far) print off, $0; bad += far }
    END { print near " of " n " within 7 %"; exit bad || near < 20 }' "$T/rows.csv" >"$T/why"
result $? "steps within 20 %, two thirds of them within 7 %" "$T/why"
done_testing
