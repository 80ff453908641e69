#!/bin/bash
# What small runs of transformers, of its models of experts, DDP, FSDP with and without offloading,
# nanoGPT, TorchTitan and JAX took on an H100 and an H200 (examples/runs, measured by tests/gpu),
# beside the estimates of their profiles.
. tests/lib/tap.sh

# off ESTIMATE MEASURED LEAST FAR NEAR SHARE: of rows that measured it, which are LEAST at least, none
# is off by more than FAR, and a SHARE by less than NEAR.
off() {
    awk -F, -v est="$1" -v real="$2" -v least="$3" -v most="$4" -v close_by="$5" -v share="$6" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at[real] != "" { n++; d = $at[est] / $at[real] - 1; d = d < 0 ? -d : d; near += d < close_by
            if (d > most) { print d, $0; bad++ } }
        END { print near " of " n " within " close_by; exit bad || n < least || near < share * n }' "$T/rows.csv" >"$T/why"
}
peaks() { off est_peak_mem_gb peak_mem_gb "$@"; }
steps() { off est_iter_time_s iter_time_s "$@"; }
estimate() {
    "$LINKWISE" validate -q "examples/runs/$1.csv" --per-row "$T/rows.csv" >"$T/table" 2>&1 && ! grep -q "skipped: " "$T/table"
    result $? "all rows of $1 are estimated" "$T/table"
}

estimate transformers
peaks 45 .015 .01 .95; result $? "45 peaks within 1.5 %, all but two within 1 %" "$T/why"
steps 45 .2 .07 .66; result $? "steps within 20 %, two thirds of them within 7 %" "$T/why"
estimate sharded
peaks 20 .03 .01 .8; result $? "20 sharded peaks within 3 %, four fifths within 1 %" "$T/why"
estimate experts
peaks 11 .045 .03 .9; result $? "peaks of experts within 4.5 %, all but one within 3 %" "$T/why"
steps 11 .15 .07 .8; result $? "steps of experts within 15 %, most within 7 %" "$T/why"
estimate compiled
peaks 3 .015 .01 .6; result $? "nanoGPT's peaks within 1.5 %" "$T/why"
steps 7 .2 .1 .8; result $? "compiled steps within 20 %, all but one within 10 %" "$T/why"
estimate jax
peaks 11 .06 .03 .8; result $? "JAX's peaks within 6 %, four fifths within 3 %" "$T/why"
steps 11 .12 .065 .9; result $? "JAX's steps within 12 %, all but one within 6.5 %" "$T/why"
grep -v ",4,8,bf16-mixed," examples/runs/offload.csv >"$T/offload.csv"
"$LINKWISE" validate -q "$T/offload.csv" --per-row "$T/rows.csv" >"$T/table" 2>&1
result $? "offloaded rows of one micro-batch are estimated" "$T/table"
peaks 3 .08 .02 .6; result $? "offloaded peaks within 8 %" "$T/why"
steps 3 .35 .15 .6; result $? "offloaded steps within 35 %, two within 15 %" "$T/why"
done_testing
