# Source me after tap.sh: plans whose ranks are scattered over hosts.
#
#     placed DIR HOSTS GPUS [ORDER]   a cluster of hosts h1..hHOSTS in DIR/cluster.json, a plan on
#                                     all their GPUs in DIR/plan.json.  ORDER of the ranks:
#                                     interleaved (default: shuffled, none of two neighbours on
#                                     one host), or nodes (whole hosts, shuffled)
#     same_as_map DIR REPORT          `rank host gpu` lines of REPORT are DIR/launch/map.txt
placed() {
    mkdir -p "$1"
    python3 - "$2" "$3" >"$1/cluster.json" <<'P' || return
import json, random, sys
hosts, gpus = map(int, sys.argv[1:])
random.seed(1)
names = ["h%d" % i for i in range(1, hosts + 1)]
links = [[None if a == b else random.choice([20, 19, 18, 9]) for b in names] for a in names]
print(json.dumps({"version": 1, "name": "hosts", "nodes": [
    {"name": h, "gpus": gpus, "gpu_type": "a100-sxm4-80g", "gpu_numa": [g % 2 for g in range(gpus)],
     "gpu_uuid": ["GPU-%s-%d" % (h, g) for g in range(gpus)]} for h in names],
    "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 8},
              "inter": {"bandwidth_gb_per_s": links, "latency_us": 12}}}))
P
    $LINKWISE plan "$1/cluster.json" llama-2-7b --seq 1024 --global-batch 192 --micro-batch 1 --tp 2 --pp 2 \
        --dp $(($2 * $3 / 4)) -o "$1/plan.json" >"$1/plan.out" || return
    python3 - "$1/plan.json" "$2" "$3" "${4:-interleaved}" <<'P'
import json, random, sys
path, hosts, gpus, order = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(2)
names = ["h%d" % i for i in range(1, hosts + 1)]
random.shuffle(names)
if order == "nodes":
    place = [(h, g) for h in names for g in random.sample(range(gpus), gpus)]
else:
    rounds = [random.sample(range(gpus), gpus) for h in names]
    place = []
    for k in range(gpus):
        turn = random.sample(range(hosts), hosts)
        while place and names[turn[0]] == place[-1][0]:
            random.shuffle(turn)
        place += [(names[i], rounds[i][k]) for i in turn]
plan = json.load(open(path))
for r in plan["ranks"]:
    r["node"], r["gpu"] = place[r["rank"]]
json.dump(plan, open(path, "w"))
P
}

# What a rank reports: a program, and the three things that must hold of what it printed.
#     reporter FILE                   write the program
#     reported NAME DIR JOB           what `noted` noted in JOB: it ran, as map.txt says, and saw
#                                     its GPU
reporter() {
    printf '#!/bin/sh\n%s\n' \
        'echo "$RANK $(hostname) $LINKWISE_GPU $CUDA_VISIBLE_DEVICES $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR"' >"$1"
    chmod +x "$1"
}
reported() {
    local n first
    n=$(wc -l <"$2/launch/map.txt")
    first=$(awk 'NR == 1 { print $2 }' "$2/launch/map.txt")
    [ "$(cat "$3.rc" 2>/dev/null)" = 0 ]
    result $? "$1: the job runs" "$3.err"
    same_as_map "$2" "$3.out"
    result $? "$1: every rank is on the planned host and GPU" "$3.out"
    awk -v m="$first" -v n="$n" '$4 != "GPU-" $2 "-" $3 || $5 != 0 || $6 != n || $7 != m { bad = 1 } END { exit bad || NR != n }' "$3.out"
    result $? "$1: it sees the GPU's UUID, local rank 0, the world and rank 0's host" "$3.out"
}

# stopped NAME: a job in another order, $T/NAME, was refused by the wrapper.
stopped() {
    [ "$(cat "$T/$1.rc")" != 0 ] && grep -q "belongs on h[1-8], but runs on h[1-8]" "$T/$1.err"
    result $? "another order is refused by the wrapper" "$T/$1.err"
}

same_as_map() {
    sort -n "$2" | awk '{ print $1, $2, $3 }' | cmp -s - "$1/launch/map.txt"
}
