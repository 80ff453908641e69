#!/bin/bash
# check --nccl-log: logs of known rings on uneven nodes, in two versions' shapes, whole, cut,
# mixed, of two jobs, of others, and of nobody; what the rings cost by hand.
. tests/lib/tap.sh
[ -n "$(command -v python3)" ] || { echo "1..0 # SKIP python3 is not installed"; exit 0; }
L=$LINKWISE P=$T/plan.json
$L plan '1x4 h100-sxm5-80g intra:370 inter:48 + 1x4 h100-sxm5-80g intra:370 inter:40 + 1x2 h100-sxm5-80g intra:370 inter:20' \
    llama-3.2-1b --seq 2048 --global-batch 40 --tp 1 --pp 1 --dp 10 --threads 1 -o "$P" >/dev/null || exit 1
$L plan '4x4 h100-sxm5-80g intra:370 inter:48' llama-3.2-1b --seq 2048 --global-batch 32 --tp 2 --pp 2 --dp 4 \
    --threads 1 -o "$T/tp.json" >/dev/null || exit 1
logs() { python3 tests/lib/nccl_logs.py "$@" || echo "Bail out!  the generator failed"; }
says() { expect 0 "$1" "$2" $L check "${plan:-$P}" --nccl-log "$3"; }
# holds NAME LOG EXPRESSION: of the document n, its groups g by name
holds() {
    $L check "${plan:-$P}" --nccl-log "$2" --json >"$T/json" 2>"$T/err"
    python3 - "$T/json" "$3" <<'E' >"$T/why" 2>&1
import json, sys
d = json.load(open(sys.argv[1]))
n = d["nccl"]
g = {x["group"]: x for x in n["groups"]}
c = {x["check"]: x for x in d["checks"]}
w = g.get("dp", {}).get("worst")
print(json.dumps(n, indent=1))
assert eval(" ".join(sys.argv[2].split())), sys.argv[2]
E
    result $? "$1" "$T/why"
}

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

# One lane of 20 GB/s instead of two: the bytes take twice as long, their start the same.
$L plan '2x2 h100-sxm5-80g intra:370 inter:20 inter-us:0 intra-us:0' llama-3.2-1b --seq 2048 --global-batch 16 --tp 1 \
    --pp 1 --dp 4 --threads 1 -o "$T/small.json" >/dev/null
logs "$T/small.json" "$T/half" channels=1
logs "$T/small.json" "$T/full" channels=2
plan=$T/small.json holds "one lane of two takes twice the bytes' time" "$T/half" \
    '1.9 < w["nccl_s"] / w["priced_s"] <= 2 and w["priced_lanes"] == 2 and w["nccl_lanes"] == 1'
plan=$T/small.json holds "... two lanes the priced" "$T/full" 'abs(w["nccl_s"] / w["priced_s"] - 1) < 1e-9'

# Two groups at the priced cost: the one with more hops of its own is the worse, whichever is first.
$L plan '4x2 h100-sxm5-80g intra:370 inter:48' llama-3.2-1b --seq 2048 --global-batch 32 --tp 2 --pp 1 --dp 4 \
    --threads 1 -o "$T/even.json" >/dev/null
for first in 0 1; do
    orders=n0,n3,n2,n1/n0,n2,n1,n3
    [ $first = 0 ] || orders=n0,n2,n1,n3/n0,n3,n2,n1
    logs "$T/even.json" "$T/even$first" groups=dp channels=1 nodes=$orders
    plan=$T/even.json holds "four hops are worse than three" "$T/even$first" \
        'g["dp"]["differ"] == 2 and w["priced_s"] == w["nccl_s"] and w["first_rank"] == '$first'
         and w["hops"]["only_priced"] == w["hops"]["only_nccl"] == 4'
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
logs "$plan" "$T/back" groups=world,dp reverse=1
holds "ranks in another order" "$T/back" 'g["dp"]["reordered"] == 4 and c["nccl groups"]["verdict"] == "note" and d["ok"]'
logs "$plan" "$T/no-world" groups=tp,dp
holds "no communicator of all ranks: hosts and GPUs say who is who" "$T/no-world" \
    'g["tp"]["found"] == 8 and g["dp"]["found"] == 4 and n["ranks_known"] == 16'
holds "rank 0's log alone" "$T/tp-2.21/0.log" \
    'n["processes"] == 1 and g["all ranks"]["partly_known"] == 1 and g["all ranks"]["compared"] == 1
     and g["dp"]["found"] == 1 and c["nccl ranks"]["verdict"] == "note"'
for late in '' 1; do
    logs "$plan" "$T/split$late" groups=world,tp,dp,pp split=1 late=$late
    holds "split from the first${late:+, connected late}: told apart by parent, split and color" "$T/split$late" \
        'g["tp"]["found"] == 8 == g["tp"]["compared"] and g["dp"]["found"] == 4 and g["pp"]["found"] == 8
         and n["others"] == n["ambiguous"] == 0'
done
$L plan '4x2 h100-sxm5-80g intra:370 inter:48' llama-3.2-1b --seq 2048 --global-batch 32 --tp 1 --pp 4 --dp 2 \
    --schedule 1f1b --threads 1 -o "$T/pp.json" >/dev/null
logs "$T/pp.json" "$T/pp" groups=world,pp,pair,ends
plan=$T/pp.json holds "neighbouring stages, and the first and the last" "$T/pp" \
    'g["pp pair"]["found"] == g["pp pair"]["planned"] == 6 and g["embedding"]["found"] == g["embedding"]["planned"] == 2
     and g["pp"]["found"] == 2 and n["others"] == n["ambiguous"] == 0'
logs "$T/pp.json" "$T/pp-old" groups=world,pair shape=2.4
plan=$T/pp.json holds "... without ids: those from the first stage may be either" "$T/pp-old" \
    'g["pp pair"]["found"] == 4 and n["ambiguous"] == 4'
logs "$T/pp.json" "$T/dp-old" groups=world,dp shape=2.4
plan=$T/pp.json holds "... the last stage begins no pair" "$T/dp-old" 'g["dp"]["found"] == 4 and n["ambiguous"] == 0'
expect 0 "several files" "2 files: 2 processes" $L check "$plan" --nccl-log "$T/tp-2.21/0.log" --nccl-log "$T/tp-2.21/5.log"
expect 0 "a pattern" "7 files: 7 processes" $L check "$plan" --nccl-log "$T/tp-2.21/1?.log" --nccl-log "$T/tp-2.21/9.log"
expect 0 "standard input" "1 files: 1 processes" sh -c "$L check $plan --nccl-log - <$T/tp-2.21/3.log"
plan=

# Transports.
logs "$P" "$T/slow" between=NET/Socket/0 inside=SHM/direct/direct
says "sockets between nodes" "nccl sockets +note .* n0 to n1" "$T/slow"
prints "nccl memory +note .*inside by shared memory, not P2P: n0, n1, n2"
logs "$P" "$T/no-gdr" between=NET/IBext_v8/3
says "no GPUDirect" "nccl GPUDirect +note +no GPUDirect on: n0, n1, n2" "$T/no-gdr"

# Connections of the first collective are of the one communicator in which the process has that rank.
logs "$P" "$T/late" groups=dp late=1 between=NET/Socket/0
says "sockets, connected late" "nccl sockets +note .* n0 to n1" "$T/late"
logs "$P" "$T/unplaced" groups=world,dp late=1 channels=1
holds "... once there are two with these ranks none is told" "$T/unplaced" 'n["log"]["unplaced"] == 13'

# A ring longer than NCCL's line needs the ranks' own lines.
$L plan '8x8 h100-sxm5-80g intra:370 inter:48' llama-3.2-1b --seq 2048 --global-batch 64 --tp 1 --pp 1 --dp 64 --threads 1 \
    -o "$T/64.json" >/dev/null
logs "$T/64.json" "$T/long" channels=8
logs "$T/64.json" "$T/cut" channels=8 graph=0 groups=world
plan=$T/64.json holds "64 ranks, by each one's neighbours" "$T/long" 'w["channels"] == 8 and w["hops"]["both"] == 8'
plan=$T/64.json holds "... by their connections" "$T/cut" 'w["channels"] == 8 and w["hops"]["both"] == 8'
plan=$T/64.json says "... rank 0 alone cannot tell" "nccl rings +note +no tensor- or data-parallel group's ring could be read" "$T/cut/0.log"

# What is not whole.
head -c 2500 "$T/same-2.21/0.log" >"$T/head"
says "a log that ends in the middle" "nccl gaps +note +1 communicators never completed" "$T/head"
logs "$P" "$T/two" files=1
logs "$P" "$T/two" files=1 job=2 nodes=n0,n2,n1
says "two jobs in one log" "nccl jobs +note +the logs hold 2 jobs" "$T/two/all.log"
holds "... both are compared" "$T/two/all.log" 'g["dp"]["found"] == 4 and g["dp"]["differ"] == 2
    and n["log"]["versions"] == ["2.21.5"]'
logs "$P" "$T/moved" moved=1
$L check "$P" --nccl-log "$T/moved" >"$T/out" 2>&1
[ $? = 1 ] && grep -Eq "nccl ranks +FAILED +2 ranks are on another host.*check --running" "$T/out" && ! grep -q "nccl rings" "$T/out"
result $? "hosts against the plan: failed, and nothing is compared" "$T/out"
sed 's/n[0-2]:/x&/; s/nranks 10/nranks 12/' "$T/same-2.21/3.log" >"$T/strange"
$L check "$P" --nccl-log "$T/strange" >"$T/out" 2>&1
[ $? = 1 ] && grep -Eq "nccl ranks +FAILED +none of 1 processes is a rank of the plan.*xn0" "$T/out"
result $? "a job of others" "$T/out"
sed 's/2\.21\.5/3.1.0/' "$T/same-2.21/0.log" >"$T/new"
says "a version that is not known" "nccl log +note .*3\.1\.0 \(2\.4 to 2\.28 are known\)" "$T/new"
{ cat "$T/same-2.21/0.log"; printf 'n0:1:2 [0] NCCL INFO Channel xx : nonsense\nn0:1:2 [0] NCCL INFO Trees zz\nn0:1:2 [0] NCCL INFO Channel 64/0 : 0[0] -> 1[1] via P2P\n'
  printf 'n0:1:2 [0] NCCL INFO Channel 00/02 : 0 1 n0:1:3 [1] NCCL INFO Channel 01/02 : 1 0\n'; } >"$T/odd"
holds "lines that are not understood are counted, with their place" "$T/odd" \
    'n["log"]["not_understood"] == 4 and n["log"]["not_understood_at"][0]["line"] == n["log"]["lines"] - 3'
{ cat "$T/same-2.21/0.log"; echo 'n0:1:2 [0] NCCL INFO Trees zz'; } >"$T/one"
says "... a single one, too" "nccl lines +note +1 lines were not understood" "$T/one"
: >"$T/empty"
expect 1 "an empty log" "empty: expected lines of NCCL .* found 0 lines" $L check "$P" --nccl-log "$T/empty"
expect 1 "a log of something else" "expected lines of NCCL" $L check "$P" --nccl-log tests/lib/tap.sh
head -2 "$T/same-2.21/0.log" >"$T/bare"
expect 1 "no communicator in it" "expected a communicator" $L check "$P" --nccl-log "$T/bare"
gzip -c "$T/same-2.21/0.log" >"$T/0.gz"
expect 1 "a packed log" "gzip" $L check "$P" --nccl-log "$T/0.gz"
expect 1 "a device without an end" "/dev/zero: binary data" timeout 60 $L check "$P" --nccl-log /dev/zero
cp -r "$T/same-2.21" "$T/piped" && mkfifo "$T/piped/pipe"
timeout 60 $L check "$P" --nccl-log "$T/piped" >"$T/out" 2>&1
[ $? != 124 ]
result $? "a pipe among the logs is not waited for" "$T/out"
expect 1 "no such file" "No such file" $L check "$P" --nccl-log "$T/none"
mkdir -p "$T/bare-folder"
expect 1 "an empty folder" "bare-folder: expected logs, found an empty folder" \
    $L check "$P" --nccl-log "$T/bare-folder"
expect 1 "no such pattern" "No such file" $L check "$P" --nccl-log "$T/none*"
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
