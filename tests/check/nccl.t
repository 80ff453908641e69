#!/bin/bash
# check --nccl-log: logs of known rings on uneven nodes, in two versions' shapes, as the document and
# the table tell them; what tests/check/nccl_lines.c and nccl_groups.c have by single cases is theirs.
. tests/lib/tap.sh
[ -n "$(command -v python3)" ] || { echo "1..0 # SKIP python3 is not installed"; exit 0; }
L="spawn $LINKWISE" P=$T/plan.json
$L plan '1x4 h100-sxm5-80g intra:370 inter:48 + 1x4 h100-sxm5-80g intra:370 inter:40 + 1x2 h100-sxm5-80g intra:370 inter:20' \
    llama-3.2-1b --seq 2048 --global-batch 40 --tp 1 --pp 1 --dp 10 --threads 1 -o "$P" >/dev/null || exit 1
$L plan '4x4 h100-sxm5-80g intra:370 inter:48' llama-3.2-1b --seq 2048 --global-batch 32 --tp 2 --pp 2 --dp 4 \
    --threads 1 -o "$T/tp.json" >/dev/null || exit 1
logs() { py tests/lib/nccl_logs.py "$@" || echo "Bail out!  the generator failed"; }
says() { expect 0 "$1" "$2" $L check "${plan:-$P}" --nccl-log "$3"; }
# holds NAME LOG EXPRESSION: of the document n, its groups g by name
holds() {
    $L check "${plan:-$P}" --nccl-log "$2" --json >"$T/json" 2>"$T/err"
    py "$T/holds.py" "$T/json" "$3" >"$T/why" 2>&1
    result $? "$1" "$T/why"
}
cat >"$T/holds.py" <<'E'
import json, sys
d = json.load(open(sys.argv[1]))
n = d["nccl"]
g = {x["group"]: x for x in n["groups"]}
c = {x["check"]: x for x in d["checks"]}
w = g.get("dp", {}).get("worst")
print(json.dumps(n, indent=1))
assert eval(" ".join(sys.argv[2].split())), sys.argv[2]
E

for shape in 2.21 2.4; do
    logs "$P" "$T/same-$shape" shape=$shape channels=4
    says "$shape: as priced" "nccl rings +ok +2 groups ring from node to node as priced" "$T/same-$shape"
    holds "... every hop and lane, at no cost" "$T/same-$shape" \
        'w["hops"]["both"] == 3 and w["hops"]["only_priced"] == w["hops"]["only_nccl"] == 0 and w["channels"] == 4
         and w["priced_lanes"] == w["nccl_lanes"] == 2 and abs(w["nccl_s"] / w["priced_s"] - 1) < 1e-3
         and n["ranks_known"] == 10 and n["unfinished"] == n["ambiguous"] == 0 and n["log"]["not_understood"] == 0
         and "nccl jobs" not in c'
    logs "$P" "$T/other-$shape" shape=$shape channels=1 nodes=n0,n2,n1
    holds "$shape: one channel, the nodes in another order" "$T/other-$shape" \
        'w["hops"]["both"] == 0 and w["hops"]["only_priced"] == w["hops"]["only_nccl"] == 3 and w["nccl_lanes"] == 1
         and g["dp"]["differ"] == 2 and w["hops"]["slowest_only_nccl"]["gb_per_s"] == 20
         and {w["hops"]["slowest_only_nccl"]["from"], w["hops"]["slowest_only_nccl"]["to"]} & {"n2"}
         and c["nccl cost"]["verdict"] == "note" and d["ok"]'
    logs "$P" "$T/mixed-$shape" shape=$shape channels=4 files=1 prefix=mpirun
    $L check "$P" --nccl-log "$T/same-$shape" --json >"$T/a" 2>&1
    holds "$shape: all ranks in one file, shuffled, with mpirun's marks" "$T/mixed-$shape/all.log" \
        'n["groups"] == json.load(open(sys.argv[1].replace("json", "a")))["nccl"]["groups"] and n["processes"] == 10'
done

# Groups of a plan with tp, dp and pp.
plan=$T/tp.json
for shape in 2.21 2.4; do
    logs "$plan" "$T/tp-$shape" groups=world,tp,dp,pp shape=$shape prefix=srun
    holds "$shape: tp, dp and pp groups are told apart" "$T/tp-$shape" \
        'g["tp"]["found"] == 8 == g["tp"]["compared"] and g["dp"]["found"] == 4 and g["pp"]["found"] == 8
         and g["all ranks"]["found"] == 1 and n["others"] == n["ambiguous"] == 0
         and c["nccl groups"]["verdict"] == "ok" and ": tp +0 s, dp +0 s," in c["nccl cost"]["found"]'
done
holds "rank 0's log alone" "$T/tp-2.21/0.log" \
    'n["processes"] == 1 and g["all ranks"]["partly_known"] == 1 and g["all ranks"]["compared"] == 1
     and g["dp"]["found"] == 1 and c["nccl ranks"]["verdict"] == "note"'
expect 0 "several files" "2 files: 2 processes" $L check "$plan" --nccl-log "$T/tp-2.21/0.log" --nccl-log "$T/tp-2.21/5.log"
expect 0 "a pattern" "7 files: 7 processes" $L check "$plan" --nccl-log "$T/tp-2.21/1?.log" --nccl-log "$T/tp-2.21/9.log"
expect 0 "standard input" "1 files: 1 processes" sh -c "$LINKWISE check $plan --nccl-log - <$T/tp-2.21/3.log"
plan=

# What the logs contradict, and what is none.
logs "$P" "$T/moved" moved=1
$L check "$P" --nccl-log "$T/moved" >"$T/out" 2>&1
[ $? = 1 ] && grep -Eq "nccl ranks +FAILED +2 ranks are on another host.*check --running" "$T/out" && ! grep -q "nccl rings" "$T/out"
result $? "hosts against the plan: failed, and nothing is compared" "$T/out"
{ cat "$T/same-2.21/0.log"; printf 'n0:1:2 [0] NCCL INFO Trees zz\n'; } >"$T/odd"
holds "a line that is not understood is counted, with its place" "$T/odd" \
    'n["log"]["not_understood"] == 1 and n["log"]["not_understood_at"][0]["line"] == n["log"]["lines"]'
says "... and named" "nccl lines +note +1 lines were not understood" "$T/odd"
: >"$T/empty"
expect 1 "an empty log" "empty: expected lines of NCCL .* found 0 lines" $L check "$P" --nccl-log "$T/empty"
gzip -c "$T/same-2.21/0.log" >"$T/0.gz"
expect 1 "a packed log" "gzip" $L check "$P" --nccl-log "$T/0.gz"
expect 2 "standard input twice" "standard input" $L check - --nccl-log -

# Hostile bytes: names that would draw on a terminal, absurd numbers, long lines.
hostile=$T/$(printf 'h\033[31m')
{
    cat "$T/same-2.21/0.log"
    printf '\033[31mevil:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 999999999 cudaDev 0 - Init COMPLETE\n'
    printf 'e:1:2 [0] NCCL INFO comm 0x1 rank 99999999999 nranks 4 - Init COMPLETE\n'
    printf 'e:1:2 [0] NCCL INFO Channel 63/0 : 999999999[0] -> -5[0] via P2P\n'
    printf 'e:1:2 [99999999999] NCCL INFO Channel 00 : 0\0 1\n'
    head -c 100000 /dev/zero | tr '\0' x
    printf '\n\377\376 NCCL INFO \033]0;x\007\n'
} >"$hostile"
says "hostile bytes" "nccl rings" "$hostile"
! grep -q "$(printf '\033')" "$T/both"
result $? "... never reach the terminal" "$T/both"
done_testing
