#!/bin/bash
# check --running: a job that runs where the plan says, and every way in which it may not, with
# the effect on the step; the collector reports the GPU that the driver shows the program.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs python3 python3
L="spawn $LINKWISE"
placed "$T" 4 2 nodes || exit 1
$L emit "$T/plan.json" --to env -d "$T/launch" >/dev/null
awk '{ print $1, $2, "GPU-" $2 "-" $3 }' "$T/launch/map.txt" >"$T/right"
# table NAME AWK: a table made from the right one
table() { awk "$2" "$T/right" >"$T/$1"; }

fails() { # NAME TABLE PATTERN: exit 1, the report on standard output
    $L check "$T/plan.json" --running "$T/$2" >"$T/out" 2>"$T/err"
    [ $? = 1 ] && grep -Eq "$3" "$T/out"
    result $? "$1" "$T/out"
}
expect 0 "as planned" "running GPUs +ok" $L check "$T/plan.json" --running "$T/right"
grep -q "+0.00 %" "$T/out" && ! grep -q "planned host" "$T/out"
result $? "... the step is the planned one" "$T/out"
{ printf '\xef\xbb\xbf# rank host gpu\n'; sort -R "$T/right"; } | $LINKWISE check "$T/plan.json" --running - >"$T/out" 2>&1
result $? "in any order, with a comment, through standard input" "$T/out"
table lower '{ print $1, $2 ".cluster.local", tolower($3) }'
expect 0 "full host names, UUIDs in small letters" "running hosts +ok" $L check "$T/plan.json" --running "$T/lower"
table index '{ sub(/.*-/, "", $3); print }'
expect 0 "GPUs by index" "running GPUs +ok" $L check "$T/plan.json" --running "$T/index"
table unknown '{ print $1, $2, "-" }'
expect 0 "GPUs not known" "running GPUs +note +8 ranks have an unknown GPU" $L check "$T/plan.json" --running "$T/unknown"
grep -q "+0.00 %" "$T/out"
result $? "... are taken for the planned ones" "$T/out"

# The machine's numbers count a drained GPU too.
$L cluster drain "$T/cluster.json" h2:0 -o "$T/drained.json" >/dev/null
$L plan "$T/drained.json" gpt2-xl --seq 1024 --global-batch 28 --tp 1 --pp 1 --dp 7 --micro-batch 1 -o "$T/drained-plan.json" >/dev/null
$L emit "$T/drained-plan.json" --to env -d "$T/drained" >/dev/null
expect 0 "GPUs by index beside a drained one" "running GPUs +ok" $L check "$T/drained-plan.json" --running "$T/drained/map.txt"
awk '$2 == "h2" { $3 = 0 } { print }' "$T/drained/map.txt" >"$T/on-drained"
$L check "$T/drained-plan.json" --running "$T/on-drained" >"$T/out" 2>&1
[ $? = 1 ] && grep -Eq "running GPUs +FAILED +1 ranks" "$T/out"
result $? "... and on the drained one" "$T/out"

awk '$2 == "h1" { $3 = "none" } { print }' "$T/right" >"$T/hidden"
fails "ranks that see no GPU of their own" hidden "running GPUs +FAILED +2 ranks see no device LOCAL_RANK"
grep -q "cannot be estimated: some ranks see no GPU of their own" "$T/out" && [ "$(grep -c ' none$' "$T/out")" = 2 ]
result $? "... are listed, and have no step" "$T/out"
sed 's/GPU-[^ ]*$/-/' "$T/hidden" >"$T/hidden-dashes"
fails "... where other GPUs are not known" hidden-dashes "running GPUs +FAILED +2 ranks see no device"

# Two ranks changed places between hosts: named, and priced as eval prices that placement.
python3 - "$T/plan.json" "$T/other.json" "$T/right" "$T/swapped" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
rows = [l.split() for l in open(sys.argv[3])]
a, b = d["ranks"][1], d["ranks"][6]
for k in "node", "gpu": a[k], b[k] = b[k], a[k]
rows[1][1:], rows[6][1:] = rows[6][1:], rows[1][1:]
json.dump(d, open(sys.argv[2], "w"))
open(sys.argv[4], "w").write("".join(" ".join(r) + "\n" for r in rows))
P
fails "two ranks exchanged between hosts" swapped "running hosts +FAILED +2 ranks are on another host"
awk -v r1="$(awk 'NR == 2 { print $2 }' "$T/swapped")" '$1 == 1 && $4 == r1 { n++ } $1 == 6 { n++ } END { exit n != 2 }' "$T/out"
result $? "... named rank by rank" "$T/out"
$L check "$T/plan.json" --running "$T/swapped" --json >"$T/json" 2>/dev/null
$L eval "$T/other.json" --json >"$T/eval"
$L eval "$T/plan.json" --json >"$T/plan.eval"
python3 - "$T/json" "$T/eval" "$T/plan.eval" <<'P' >"$T/why" 2>&1
import json, sys
c, e, p = (json.load(open(f)) for f in sys.argv[1:])
r = c["running"]
assert c["ok"] is False and r["ranks"] == r["reported"] == 8
assert [d["rank"] for d in r["differences"]] == [1, 6], r
assert abs(r["step_s"] / e["step_s"] - 1) < 1e-9 and abs(r["planned_step_s"] / p["step_s"] - 1) < 1e-9, (r, e, p)
assert r["step_s"] > r["planned_step_s"]
P
result $? "... and at the step that eval gives this placement" "$T/why"

table one_gpu '{ print $1, $2, "GPU-" $2 "-0" }'
fails "all on GPU 0: two ranks share one" one_gpu "running GPUs +FAILED +ranks [0-7] and [0-7] are on the same GPU, GPU-h[1-4]-0"
grep -q "cannot be estimated: two ranks share a GPU" "$T/out"
result $? "... which has no step"
table exchanged '{ split($3, u, "-"); print $1, $2, "GPU-" $2 "-" 1 - u[3] }'
fails "the other GPU of the host" exchanged "running GPUs +FAILED +8 ranks are on the planned host, but not on the planned GPU"
table foreign '{ print $1, $2, NR == 3 ? "GPU-new" : $3 }'
fails "a GPU that the cluster file does not have" foreign "cannot be estimated: the job uses GPUs that are not in the cluster file"
table stranger '{ print $1, NR == 3 ? "h9" : $2, $3 }'
fails "a host that the cluster file does not have" stranger "running hosts +FAILED +1 ranks .*h9 is not in the cluster file"
table short 'NR != 5'
fails "a rank that did not report" short "running ranks +FAILED +7 of 8 ranks reported"
grep -q "(no report)" "$T/out"
result $? "... is listed" "$T/out"
table crowded '{ print $1, "h1", "-" }'
fails "more ranks than GPUs" crowded "a host runs more ranks than it has GPUs"

# ---- bad tables ----
bad() { # NAME TEXT PATTERN
    printf '%b' "$2" >"$T/bad"
    expect 1 "$1" "bad: line 1: $3" $L check "$T/plan.json" --running "$T/bad"
}
bad "two words" '0 h1\n' 'expected `rank host gpu`, found "0 h1"'
bad "four words" '0 h1 GPU-1 x\n' 'expected `rank host gpu`'
bad "a rank beyond the plan" '8 h1 GPU-1\n' 'expected a rank from 0 to 7, found "8"'
bad "a rank that is no number" '1x h1 GPU-1\n' 'expected a rank from 0 to 7, found "1x"'
bad "a huge rank" '99999999999999999999 h1 GPU-1\n' 'expected a rank from 0 to 7'
bad "no host name" '0 h;1 GPU-1\n' "expected a host's name, found"
bad "no UUID" '0 h1 \e[31m\n' 'expected a GPU.s UUID or index, or -, found "\?\[31m"'
bad "a long word" "0 $(head -c 5000 /dev/zero | tr '\0' a) GPU-1\n" "expected a host's name"
printf '0 h1 -\n0 h2 -\n' >"$T/twice"
expect 1 "a rank twice" "twice: line 2: rank 0 appears twice" $L check "$T/plan.json" --running "$T/twice"
expect 1 "no table" "none: No such file" $L check "$T/plan.json" --running "$T/none"
expect 2 "two standard inputs" "only one input" $L check - --running -
: >"$T/empty"
fails "an empty table" empty "running ranks +FAILED +0 of 8"

# ---- the collector ----
cat >"$T/cuda.c" <<'C'
/* A driver with the devices of CUDA_VISIBLE_DEVICES, UUIDs like GPU-00000003-.... */
#include <stdlib.h>
#include <string.h>
int cuInit (unsigned flags);
int cuDeviceGet (int *device, int ordinal);
int cuDeviceGetUuid_v2 (unsigned char *uuid, int device);
int cuDeviceGetName (char *name, int len, int device);
/* Entry number i of the list; as the driver does, none from the first that it does not know on. */
static const char *entry (int i)
{
    const char *s = getenv ("CUDA_VISIBLE_DEVICES");
    while (s && i >= 0 && strncmp (s, "GPU-dead", 8) != 0) {
        if (i-- == 0)
            return s;
        s = strchr (s, ',');
        s = s ? s + 1 : NULL;
    }
    return NULL;
}
int cuInit (unsigned flags) { (void) flags; return entry (0) ? 0 : 100; }
int cuDeviceGet (int *device, int ordinal) { *device = ordinal; return entry (ordinal) ? 0 : 101; }
int cuDeviceGetUuid_v2 (unsigned char *uuid, int device)
{
    const char *s = entry (device);
    memset (uuid, 0, 16);
    uuid[3] = (unsigned char) (strncmp (s, "GPU-", 4) == 0 ? strtol (s + 4, NULL, 16) : atoi (s));
    return 0;
}
int cuDeviceGetName (char *name, int len, int device) { (void) device; strncpy (name, "H100", (size_t) len); return 0; }
C
mkdir "$T/lib"
${CC:-cc} -shared -fPIC -o "$T/lib/libcuda.so.1" "$T/cuda.c" 2>"$T/why"
result $? "a driver to ask" "$T/why"
placed "$T" 2 2 nodes || exit 1
python3 - "$T/plan.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
for i, n in enumerate(d["cluster"]["nodes"]):
    n["gpu_uuid"] = ["GPU-%08x-0000-0000-0000-000000000000" % (2 * i + g) for g in range(2)]
json.dump(d, open(sys.argv[1], "w"))
P
$L emit "$T/plan.json" --to env -d "$T/launch" >/dev/null
export LINKWISE_NUMA=0 # tests/launch/wrapper.t has it
collect() { # COMMAND...: the report of every rank; with $on, of those on it, beside good ones of the others
    [ -z "${on:-}" ] || grep -v "^[0-9]* $on " "$T/good"
    while read -r rank host gpu; do
        [ "${on:-$host}" != "$host" ] || RANK=$rank LINKWISE_NODE=$host LD_LIBRARY_PATH=$T/lib "$@" </dev/null
    done <"$T/launch/map.txt"
}
collect "$T/launch/exec.sh" "$T/launch/where.sh" >"$T/reports" 2>&1
awk 'NR == FNR { u[$1 " " $2] = $3; next } { print $1, $2, u[$2 " " $3] }' "$T/launch/gpu-uuid.txt" "$T/launch/map.txt" | cmp -s - "$T/reports"
result $? "where.sh prints the driver's UUID of every rank" "$T/reports"
expect 0 "... which is what the plan says" "running GPUs +ok" $L check "$T/plan.json" --running "$T/reports"
cp "$T/reports" "$T/good"
on=h1 collect env CUDA_VISIBLE_DEVICES=0,1 "$T/launch/where.sh" >"$T/reports" 2>&1
fails "without the wrapper all ranks of a host are on its first GPU" reports "are on the same GPU"
LINKWISE_VISIBLE=one collect "$T/launch/exec.sh" "$T/launch/where.sh" >"$T/reports" 2>&1
expect 0 "LINKWISE_VISIBLE=one: the same GPUs" "running GPUs +ok" $L check "$T/plan.json" --running "$T/reports"
on=h1 collect "$T/launch/exec.sh" env LOCAL_RANK=0 "$T/launch/where.sh" >"$T/reports" 2>&1
fails "a program that takes device 0 on every rank" reports "are on the same GPU"
on=h1 collect "$T/launch/exec.sh" sh -c 'CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES#*,},${CUDA_VISIBLE_DEVICES%,*} exec "$@"' sh "$T/launch/where.sh" >"$T/reports" 2>&1
fails "the node's list in another order" reports "2 ranks are on the planned host, but not on the planned GPU"
# An entry that the driver does not know hides those after it.
on=h1 collect "$T/launch/exec.sh" sh -c 'CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*},GPU-dead,$CUDA_VISIBLE_DEVICES exec "$@"' sh "$T/launch/where.sh" >"$T/reports" 2>&1
fails "a mask that hides the second GPU of a host" reports "1 ranks see no device LOCAL_RANK"
LINKWISE_RUNNING=$T/running collect "$T/launch/exec.sh" "$T/launch/where.sh" sh -c 'echo "$1 $RANK"' sh "a  b" >"$T/out"
cat "$T"/running/* | $LINKWISE check "$T/plan.json" --running - >/dev/null && [ "$(sort -u "$T/out" | wc -l)" = 4 ] && grep -q "^a  b 3$" "$T/out"
result $? "where.sh PROGRAM reports to a folder and becomes the program" "$T/out"
mkdir "$T/bin"
printf '#!/bin/sh\nprintf "0, GPU-zero\\n1, GPU-one\\n10, GPU-ten\\n"\n' >"$T/bin/nvidia-smi"
chmod +x "$T/bin/nvidia-smi"
no_driver
[ "$(RANK=0 LINKWISE_NODE=h1 CUDA_VISIBLE_DEVICES=1,0 PATH=$T/bin:$PATH "$T/launch/where.sh")" = "0 h1 GPU-one" ] &&
    [ "$(RANK=0 LOCAL_RANK=1 LINKWISE_NODE=h1 CUDA_VISIBLE_DEVICES=1,0 PATH=$T/bin:$PATH "$T/launch/where.sh")" = "0 h1 GPU-zero" ]
result $? "without the driver's library, nvidia-smi tells the UUID of an index"
[ "$(RANK=0 LINKWISE_NODE=h1 CUDA_VISIBLE_DEVICES=1,0 "$T/launch/where.sh")" = "0 h1 1" ] &&
    [ "$(RANK=0 LOCAL_RANK=1 LINKWISE_NODE=h1 CUDA_VISIBLE_DEVICES=1,0 "$T/launch/where.sh")" = "0 h1 0" ] &&
    [ "$(RANK=0 LOCAL_RANK=2 LINKWISE_NODE=h1 CUDA_VISIBLE_DEVICES=1,0 "$T/launch/where.sh")" = "0 h1 -" ] &&
    [ "$(RANK=0 LINKWISE_NODE=h1 "$T/launch/where.sh")" = "0 h1 -" ]
result $? "without that, the index, or -"
done_testing
