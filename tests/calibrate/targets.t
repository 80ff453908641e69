#!/bin/bash
# The published runs, where they lie beside the checkout: every figure of `make accuracy`'s
# memory table that has a target reaches it.
# In the long form: that estimates are those on record is a matter of record.t.
. tests/lib/tap.sh
[ -n "$LINKWISE_LONG" ] || skip_all "long form"
RUNS=../shared/data/runs
[ -d $RUNS ] || skip_all "no published runs in $RUNS"
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory accuracy-memory RUNS=$RUNS SAN="${SAN:-}" >"$T/table" 2>"$T/err"
result $? "make accuracy-memory runs" "$T/err"
# Each line ends with prior, held out and the target: "0.9973  0.9971  >= .997".
sed -n '/^Memory\./,/^$/p' "$T/table" |
    awk 'match($0, /[<>]= [0-9.]+$/) {
        op = substr($0, RSTART, 2); want = substr($0, RSTART + 3) + 0; n = split(substr($0, 1, RSTART - 1), f, " ")
        got = (f[n] == "-" ? f[n - 1] : f[n]) + 0
        print ((op == ">=" && got >= want) || (op == "<=" && got <= want) ? "met" : "missed") ": " $0 }' >"$T/verdicts"
[ "$(wc -l <"$T/verdicts")" -ge 12 ] && ! grep -q '^missed' "$T/verdicts"
result $? "every target is met" "$T/verdicts"
done_testing
