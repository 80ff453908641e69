# Runs that a script measures on this machine's GPU, beside the estimates.

needs_gpu() { # MODULE...
    needs_python torch python3-torch
    local module
    for module; do needs_python "$module" "$module (pip)"; done
    $PY -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || skip_all "there is no CUDA GPU"
}

# runs_on_gpu COUNT SCRIPT [ARGUMENT...]: it writes COUNT runs, and all of them are estimated.
runs_on_gpu() {
    local count=$1
    shift
    $PY "tests/gpu/$1" --linkwise "$LINKWISE" "${@:2}" "$T/runs.csv" 2>"$T/said" &&
        [ "$(grep -c '^gpu-check-' "$T/runs.csv")" = "$count" ]
    result $? "$count runs of $*" "$T/said"
    sed 's/^/# /' "$T/said"
    "$LINKWISE" validate "$T/runs.csv" --per-row "$T/rows.csv" >"$T/table" 2>&1 && ! grep -q "skipped: " "$T/table"
    result $? "all of them are estimated" "$T/table"
    $PY - "$T/rows.csv" <<'P' | sed 's/^/# /'
import csv
import sys


def beside(measured, estimated, unit):
    if not measured:
        return f"{'-':>8} {'-':>8} {'-':>6}"
    return f"{unit * float(measured):8.2f} {unit * float(estimated):8.2f} {100 * (float(estimated) / float(measured) - 1):+6.1f}"


print("model               seq   b  kept        recompute  peak GiB  est GiB      %  step ms   est ms      %")
for r in csv.DictReader(open(sys.argv[1])):
    print(f"{r['model']:18} {r['seq']:>5} {r['global_batch']:>3}  {r['precision']:10}  {r['recompute']:9} "
          f"{beside(r['peak_mem_gb'], r['est_peak_mem_gb'], 1)} {beside(r['iter_time_s'], r['est_iter_time_s'], 1e3)}")
P
    sed 's/^/# /' "$T/table"
}
