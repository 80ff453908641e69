#!/bin/bash
# Six hosts made of network namespaces, every directed link of another speed, three of the
# hosts behind a shared trunk, one link dead; one host loses its power during the run.  Under a
# real mpirun bwprobe finds every rate within 3 %, sees the trunk's contention, names the dead
# link and the lost host, and ends; --resume measures what was missing.
. tests/lib/tap.sh
needs_hosts
needs openmpi-bin mpirun.openmpi

cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4 h5 h6
on h4 hostname h4.lab.example # which is called h4
hosts_trunk 185 h4 h5 h6
for i in 1 2 3 4 5 6; do
    links=()
    for j in 1 2 3 4 5 6; do
        [ $i = $j ] || links+=(h$j $((110 + (5 * i + 68 * j) % 74)))
    done
    hosts_shape h$i "${links[@]}"
done
hosts_cut h2 h5
# Other tests run beside this one: a rank that waits for a processor loses what its link gives.
cat >"$1/rank.sh" <<'R'
nice -n -18 "$@"
echo $? >"$OUT/rc.$OMPI_COMM_WORLD_RANK"
R
probe() { # HOSTS OPTION...
    for h in $1; do echo "$h slots=1"; done >"$OUT/hosts"
    set -- "$(echo $1 | wc -w)" "${@:2}"
    mpirun.openmpi --allow-run-as-root --enable-recovery --mca plm_rsh_agent "$HOSTS_RSH" \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca orte_base_help_aggregate 0 -x OUT -x ASAN_OPTIONS -np "$1" \
        --hostfile "$OUT/hosts" sh "$OUT/rank.sh" "$BWPROBE" --transport socket --passes 4 \
        --pause 0 --measure 0.05 --timeout 2 --budget 100 --seed 7 \
        --interface 10.77.0.0/24 -o "$OUT/links.json" "${@:2}"
}
export OUT=$1 ASAN_OPTIONS=detect_leaks=0
start=$(date +%s.%N)
probe "h1 h2 h3 h4 h5 h6" >"$1/report" 2>"$1/err" &
mpirun=$!
# In the middle of the last pass: every pair has three values or more, whose median one disturbed
# moment does not move.
for ((i = 0; i < 1000; i++)); do
    [ "$(grep -cE '^\[[0-9]+,[0-9]+,0,3,' "$1/links.json.part" 2>/dev/null)" -ge 6 ] && break
    pause 1
done
hosts_kill h6
# All ranks must end by themselves; mpirun does not where a host is lost.
for ((i = 0; i < 300; i++)); do
    [ "$(cat "$1"/rc.* 2>/dev/null | wc -l)" -ge 5 ] && break
    pause 1
done
echo "$start $(date +%s.%N)" | awk '{ print $2 - $1 }' >"$1/seconds"
ls "$1"/rc.* >"$1/left"
cp "$1/links.json" "$1/first.json"
kill -9 $mpirun
cat "$1/rc.0" >"$1/first.rc"
for pid in $(pgrep orted; pgrep mpirun); do kill -9 "$pid"; done
# The link is mended.
tc -n h2 filter del dev eth0 parent 1: prio 1
probe "h1 h2 h3 h4 h5" --resume >"$1/report2" 2>"$1/err2"
cat "$1/rc.0" >"$1/second.rc"
S
SANDBOX_LIMIT=240 in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1
cat "$T/err" "$T/report" >"$T/all" 2>/dev/null

[ "$(cat "$T/first.rc" 2>/dev/null)" = 1 ] && [ "$(wc -l <"$T/left")" = 5 ] &&
    awk '{ exit !($1 < 120) }' "$T/seconds"
result $? "every rank that survives ends by itself, with exit code 1" "$T/all"

# check NAME PYTHON: d is the links file, rate (i, j) what TCP gets of the shaped rate
check() {
    python3 - "$T/${3:-first.json}" >"$T/why" 2>&1 <<P
import json, sys, statistics
d = json.load (open (sys.argv[1]))
name = [e["node"] for e in d["measured"]["endpoints"]]
def rate (i, j):
    return (110 + (5 * i + 68 * j) % 74) * 1448 / 1514 / 8000
pairs = {(int (name[p["src"]][1:]), int (name[p["dst"]][1:])): p for p in d["measured"]["pairs"]}
def iso (i, j):
    return pairs[i, j]["isolated_gb_per_s"]["median"]
# A busy machine may disturb four; two directions of a pair differ by 14 % at least.
def shaped (links):
    off = sorted ((abs (iso (*k) / rate (*k) - 1), k) for k in links)
    assert off[-5][0] <= 0.03 and off[-1][0] <= 0.1, off[-5:]
$2
P
    result $? "$1" "$T/why"
}
check "directed rates are within 3 % of what the shaper lets through, all but four" '
assert len (pairs) == 30
shaped (k for k in pairs if k not in [(2, 5), (5, 2)])'
check "the matrix of links.inter holds them, source in the row" '
m = d["links"]["inter"]["bandwidth_gb_per_s"]
for (i, j) in pairs:
    x = m[name.index ("h%d" % i)][name.index ("h%d" % j)]
    assert x is None if (i, j) in [(2, 5), (5, 2)] else x == iso (i, j), (i, j, x)'
check "pairs that share the trunk are slower together, the others are not" '
part = lambda cross: sorted (p["concurrent_gb_per_s"]["median"] / iso (*k)
    for k, p in pairs.items () if "concurrent_gb_per_s" in p and "isolated_gb_per_s" in p
    and ((k[0] < 4) != (k[1] < 4)) == cross)
shared, own = part (True), part (False)
print (shared, own)
assert statistics.median (shared) < 0.8 and shared[0] < 0.5 and statistics.median (own) > 0.95'
check "the dead link is named, and is told from its ends" '
for k in [(2, 5), (5, 2)]:
    assert "time-out" in pairs[k]["failed"], pairs[k]
    assert "the link" in pairs[k]["verdict"], pairs[k]
assert [k for k in pairs if "failed" in pairs[k]] in ([(2, 5), (5, 2)], [(5, 2), (2, 5)])'
grep -q "^h2/0 -> h5/0 .*failed" "$T/report" && grep -Eq "^ +h2/0 .*X" "$T/report"
result $? "the report names it and its map shows it" "$T/report"
check "the lost host is named, and the file says faults" '
assert d["measured"]["status"] == "faults"
assert any ("h6/0" in f for f in d["measured"]["faults"]), d["measured"]["faults"]
assert [e["survived"] for e in d["measured"]["endpoints"]].count (False) == 1'
grep -q "if mpirun keeps waiting" "$T/err"
result $? "rank 0 says that mpirun may stay" "$T/err"
[ "$(cat "$T/second.rc" 2>/dev/null)" = 0 ] && grep -q "values of the earlier run" "$T/err2"
result $? "--resume ends with exit code 0" "$T/err2"
check "and the mended link is measured too" '
assert d["measured"]["status"] == "complete" and len (pairs) == 20, (d["measured"]["status"], len (pairs))
shaped (pairs)' links.json
[ ! -e "$T/links.json.part" ]
result $? "nothing is left to resume"
sed 's/^/# /' "$T/why"; echo "# first run $(cat "$T/seconds") s"
done_testing
