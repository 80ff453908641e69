#!/bin/bash
# Hugging Face transformers trains models of today on this machine's GPU, with adapters too; peaks and
# steps are compared with the estimates of the profile of transformers, with nothing fitted.
. tests/lib/tap.sh
needs_python torch python3-torch
for module in transformers peft; do needs_python $module "$module (pip)"; done
$PY -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || skip_all "there is no CUDA GPU"
$PY tests/gpu/huggingface.py --linkwise "$LINKWISE" "$T/runs.csv" 2>"$T/said" &&
    [ "$(grep -c '^gpu-check-transformers,' "$T/runs.csv")" = 15 ]
result $? "fifteen runs on the GPU" "$T/said"
"$LINKWISE" validate "$T/runs.csv" --per-row "$T/rows.csv" >"$T/table" 2>&1 && ! grep -q "skipped: " "$T/table"
result $? "all of them are estimated" "$T/table"
$PY - "$T/rows.csv" <<'P' | sed 's/^/# /'
import csv
import sys
print("model               seq   b  kept        recompute  peak GiB  est GiB      %  step ms   est ms      %")
for r in csv.DictReader(open(sys.argv[1])):
    peak, est, s, est_s = (float(r[k]) for k in ("peak_mem_gb", "est_peak_mem_gb", "iter_time_s", "est_iter_time_s"))
    print(f"{r['model']:18} {r['seq']:>5} {r['global_batch']:>3}  {r['precision']:10}  {r['recompute']:9} {peak:9.2f} "
          f"{est:8.2f} {100 * (est / peak - 1):+6.1f} {1e3 * s:8.1f} {1e3 * est_s:8.1f} {100 * (est_s / s - 1):+6.1f}")
P
sed 's/^/# /' "$T/table"
done_testing
