# Source me after tap.sh: plans whose ranks are scattered over hosts.
#
#     placed DIR HOSTS GPUS [ORDER]   a cluster of hosts h1..hHOSTS in DIR/cluster.json, a plan on
#                                     all their GPUs in DIR/plan.json.  ORDER of the ranks:
#                                     interleaved (default: shuffled, none of two neighbours on
#                                     one host), nodes (whole hosts, shuffled), or unlike (of two
#                                     hosts one has 1 rank, amid the 2 GPUS - 1 of the other)
#     hosts_cluster HOSTS GPUS        such a cluster alone, printed; links of four speeds
#     same_as_map DIR REPORT          `rank host gpu` lines of REPORT are DIR/launch/map.txt
hosts_cluster() {
    awk -v hosts="$1" -v gpus="$2" 'BEGIN {
        split("20 19 18 9", speed)
        printf "{\"version\": 1, \"name\": \"hosts\", \"nodes\": ["
        for (i = 1; i <= hosts; i++) {
            numa = uuid = ""
            for (g = 0; g < gpus; g++) {
                numa = numa (g ? ", " : "") g % 2
                uuid = uuid (g ? ", " : "") sprintf("\"GPU-h%d-%d\"", i, g)
            }
            printf "%s{\"name\": \"h%d\", \"gpus\": %d, \"gpu_type\": \"a100-sxm4-80g\", \"gpu_numa\": [%s], \"gpu_uuid\": [%s]}",
                (i > 1) ? ",\n" : "", i, gpus, numa, uuid
        }
        printf "],\n\"links\": {\"intra\": {\"bandwidth_gb_per_s\": 200, \"latency_us\": 8}, \"inter\": {\"latency_us\": 12, \"bandwidth_gb_per_s\": ["
        for (i = 0; i < hosts; i++) {
            printf "%s[", i ? ", " : ""
            for (j = 0; j < hosts; j++)
                printf "%s%s", j ? ", " : "", i == j ? "null" : speed[(i * i + 5 * j * (i + 3)) % 11 % 4 + 1]
            printf "]"
        }
        print "]}}}"
    }'
}
placed() {
    local gpus=$3
    [ "${4:-}" != unlike ] || gpus=$((2 * $3 - 1))
    mkdir -p "$1"
    hosts_cluster "$2" "$gpus" >"$1/cluster.json"
    $LINKWISE plan "$1/cluster.json" llama-2-7b --seq 1024 --global-batch 192 --micro-batch 1 --schedule 1f1b --tp 2 --pp 2 \
        --dp $(($2 * $3 / 4)) -o "$1/plan.json" >"$1/plan.out" || return
    python3 - "$1/plan.json" "$2" "$3" "${4:-interleaved}" <<'P'
import json, random, sys
path, hosts, gpus, order = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(2)
names = ["h%d" % i for i in range(1, hosts + 1)]
random.shuffle(names)
if order == "nodes":
    place = [(h, g) for h in names for g in random.sample(range(gpus), gpus)]
elif order == "unlike":
    most = 2 * gpus - 1
    place = []
    for one, other in zip(names[::2], names[1::2]):
        around = [(other, g) for g in random.sample(range(most), most)]
        place += around[:1] + [(one, random.randrange(most))] + around[1:]
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

# no_driver: where.sh finds a library that is none where it looks for this machine's CUDA driver,
# which does not know the GPUs of these clusters.  Jobs with $T/no-driver/bin first in PATH have no
# python3 either that would start to ask it.
no_driver() {
    mkdir -p "$T/no-driver/bin"
    : >"$T/no-driver/libcuda.so.1"
    printf '#!/bin/sh\nexit 1\n' >"$T/no-driver/bin/python3"
    chmod +x "$T/no-driver/bin/python3"
    export LD_LIBRARY_PATH=$T/no-driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# What a rank reports: a program, and the three things that must hold of what it printed.
#     reporter FILE                   write the program
#     reported NAME DIR JOB           what `noted` noted in JOB: it ran, as map.txt says, and saw
#                                     what frameworks expect
#     sees FOLDER REPORT              the last of them, for the map of an emitted folder; lines in
#                                     any order
reporter() {
    cat >"$1" <<'R'
#!/bin/sh
read -r here </proc/sys/kernel/hostname
echo "$RANK $here $LINKWISE_GPU $CUDA_VISIBLE_DEVICES $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK $GROUP_WORLD_SIZE" \
    "$WORLD_SIZE $MASTER_ADDR ${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-$LOCAL_RANK}}}"
R
    chmod +x "$1"
}
reported() {
    [ "$(cat "$3.rc" 2>/dev/null)" = 0 ]
    result $? "$1: the job runs" "$3.err"
    same_as_map "$2" "$3.out"
    result $? "$1: every rank is on the planned host and GPU" "$3.out"
    sees "$2/launch" "$3.out"
    result $? "$1: it sees its node's GPUs in rank order, its own as device LOCAL_RANK, and torchrun's variables" "$3.out"
}
sees() {
    python3 - "$1/map.txt" "$2" <<'P'
import sys
at = [l.split() for l in open(sys.argv[1])]
hosts = list(dict.fromkeys(h for _, h, _ in at))
want = []
for rank, host, gpu in at:
    own = [g for _, h, g in at if h == host]
    local, node = own.index(gpu), hosts.index(host)
    want.append("%s %s %s %s %d %d %d %d %d %d %s %d\n" % (
        rank, host, gpu, ",".join("GPU-%s-%s" % (host, g) for g in own), local, len(own), node, node, len(hosts),
        len(at), at[0][1], local))
sys.exit(sorted(open(sys.argv[2])) != sorted(want))
P
}

# stopped NAME: a job in another order, $T/NAME, was refused by the wrapper.
stopped() {
    [ "$(cat "$T/$1.rc")" != 0 ] && grep -q "belongs on h[1-8], but runs on h[1-8]" "$T/$1.err"
    result $? "another order is refused by the wrapper" "$T/$1.err"
}

same_as_map() {
    sort -n "$2" | awk '{ print $1, $2, $3 }' | cmp -s - "$1/launch/map.txt"
}
