#!/bin/bash
# The batch script's own order, where no placement can be bound: on each host as many ranks as it
# has GPUs that are not drained, and only where names leave no doubt.  srun and scontrol are
# stand-ins here; tests/launch/slurm_unlike.t runs the real ones.
. tests/lib/tap.sh
needs python3 python3
nodes() { # NAME:GPUS...
    local list='' n
    for n in "$@"; do
        list="$list,{\"name\": \"${n%:*}\", \"gpus\": ${n#*:}, \"gpu_type\": \"a100-sxm4-80g\"}"
    done
    echo "{\"version\": 1, \"name\": \"lab\", \"nodes\": [${list#,}], \"links\": {
        \"intra\": {\"bandwidth_gb_per_s\": 200, \"latency_us\": 8}, \"inter\": {\"bandwidth_gb_per_s\": 20, \"latency_us\": 12}}}"
}
emitted() { # CLUSTER ONLY: a plan of six ranks in $T/launch
    rm -rf "$T/launch"
    $LINKWISE plan "$1" llama-2-7b --seq 1024 --global-batch 24 --tp 2 --pp 1 --dp 3 --only "$2" --json |
        $LINKWISE emit - --to slurm -d "$T/launch" >/dev/null
}
mkdir "$T/bin"
printf '#!/bin/sh\necho "$GIVEN" | tr , "\\n"\n' >"$T/bin/scontrol"
cat >"$T/bin/srun" <<'S'
#!/bin/bash
case "$* " in
*"exec.sh true "*) exit "${TRIAL:-0}" ;;
*"exec.sh $BWPROBE --plan "*) exec "$BWPROBE" ;;
esac
echo "$*"
mapfile -t hosts < <([ -z "${SLURM_HOSTFILE:-}" ] || cat "$SLURM_HOSTFILE")
declare -A turn tasks
for rank in "${!hosts[@]}"; do tasks[${hosts[rank]}]+=,$rank; done
for rank in "${!hosts[@]}"; do
    host=${hosts[rank]} own=${tasks[${hosts[rank]}]}
    SLURM_PROCID=$rank SLURM_LOCALID=$((turn[$host]++)) SLURM_NTASKS=6 SLURM_NODEID=0 SLURM_GTIDS=${own#,} LINKWISE_NODE=$host \
        "$LINKWISE_DIR/exec.sh" sh -c 'echo "$RANK $LINKWISE_HOST $LINKWISE_GPU"'
done
S
chmod +x "$T"/bin/*
batch() { # GIVEN [VARIABLE...]
    local given=$1
    shift
    env PATH="$T/bin:$PATH" OPTION='' GIVEN="$given" SLURM_JOB_NODELIST="$given" SLURM_JOB_ID=1 LINKWISE_DIR="$T/launch" "$@" \
        sh -c 'sh "$1" $OPTION ./program' sh "$T/launch/slurm/job.sbatch" >"$T/out" 2>"$T/err"
    code=$?
    { echo "exit $code"; cat "$T/out" "$T/err"; } >"$T/why"
}
placed() { # NAME LINES: what the ranks said, as "rank host gpu, ..."
    [ "$code" = 0 ] && [ "$(grep -E '^[0-9]+ ' "$T/out" | paste -sd,)" = "$2" ]
    result $? "$1" "$T/why"
}

# The file for srun without the wrapper says what the wrapper does, of MIG instances too.
nodes h1:4 h2:2 h3:4 h4:2 >"$T/unlike.json"
says='echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $LINKWISE_HOST $LINKWISE_GPU"'
for kind in index UUID MIG; do
    python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
for n in d["nodes"] if sys.argv[2] != "index" else []:
    n["gpu_uuid"] = ["%s-%s-%d" % (sys.argv[2] if n["name"] == "h2" else "GPU", n["name"], g) for g in range(n["gpus"])]
print(json.dumps(d))' "$T/unlike.json" $kind >"$T/kind.json"
    emitted "$T/kind.json" h1,h2
    # Of GPUs by other names a rank of each host shows the same.
    ranks="0 1 2 3 4 5"
    [ $kind = index ] || [ -n "$LINKWISE_LONG" ] || ranks=$(awk '!($2 in seen) { seen[$2]; print $1 }' "$T/launch/map.txt")
    for rank in $ranks; do
        RANK=$rank LINKWISE_ANY_HOST=1 "$T/launch/exec.sh" sh -c "$says" </dev/null
    done >"$T/wrapper"
    mapfile -t lines <"$T/launch/slurm/multi-prog"
    for rank in $ranks; do
        words=${lines[rank]#"$rank "}
        env -i PATH="$PATH" ${words% ./program} sh -c "$says" </dev/null
    done >"$T/why"
    cmp -s "$T/wrapper" "$T/why" && [ ${#lines[@]} = 6 ]
    result $? "multi-prog sets what the wrapper sets: $kind" "$T/why"
done
emitted "$T/unlike.json" h1,h2
batch h2,h3 LINKWISE=false
placed "a small node first takes as many ranks as it has GPUs" "0 h2 0,1 h2 1,2 h3 0,3 h3 1,4 h3 2,5 h3 3"
grep -q "starting the job in the scheduler's order" "$T/err"
result $? "... and the log says so" "$T/why"
batch h3,h2 LINKWISE=false
placed "in the scheduler's order" "0 h3 0,1 h3 1,2 h3 2,3 h3 3,4 h2 0,5 h2 1"
batch h2,h4 LINKWISE=false
[ "$code" = 1 ] && grep -q "the nodes given, h2,h4, have fewer GPUs than the job has ranks, 6" "$T/err" && [ ! -s "$T/out" ]
result $? "too few GPUs: the job does not start" "$T/why"
batch h2,new LINKWISE=false
placed "a node that the cluster file lacks takes as many as any of the plan's" "0 h2 0,1 h2 1,2 new 0,3 new 1,4 new 2,5 new 3"
$LINKWISE cluster drain "$T/unlike.json" h3:1 h2:0 -o "$T/drained.json" >/dev/null
emitted "$T/drained.json" h1,h3
batch h2,h3,h4 LINKWISE=false
placed "drained GPUs are left out" "0 h2 1,1 h3 0,2 h3 2,3 h3 3,4 h4 0,5 h4 1"

mv "$T/launch" "$T/lr=1 x" && ln -s "lr=1 x" "$T/launch"
(cd "$T" && batch h2,h3,h4 LINKWISE=false LINKWISE_DIR="lr=1 x"; echo $code >"$T/code")
code=$(cat "$T/code")
placed "from a folder whose name awk could misread" "0 h2 1,1 h3 0,2 h3 2,3 h3 3,4 h4 0,5 h4 1"

nodes h1:2 h2:2 h3:2 h4:2 >"$T/alike.json"
emitted "$T/alike.json" h[1-3]
batch h1,h2,h4 LINKWISE=false
grep -q -- "-n 6 --ntasks-per-node=2 -m block " "$T/out" && [ "$(wc -l <"$T/out")" = 1 ]
result $? "nodes alike are left to the scheduler" "$T/why"

# Where binding fails in any way the job starts all the same, in that order, and says so.
way() { # NAME PATTERN [VARIABLE...]: with what stands for linkwise on standard input, or the folder $T/NAME
    if [ -d "$T/$1" ]; then
        set -- "$1" "$2" LINKWISE_DIR="$T/$1"
    else
        { echo '#!/bin/sh'; cat; } >"$T/$1.sh"
        chmod +x "$T/$1.sh"
        set -- "$1" "$2" LINKWISE="$T/$1.sh" "${@:3}"
    fi
    batch h1,h2,h4 "${@:3}"
    [ "$code" = 0 ] && grep -q -- "-n 6 --ntasks-per-node=2 -m block " "$T/out" && [ "$(wc -l <"$T/out")" = 1 ] &&
        grep -Eq "$2.*starting the job in the scheduler's order instead" "$T/err"
    result $? "linkwise $1: the job starts in the scheduler's order, and says why" "$T/why"
}
way hangs "bind did not place" LINKWISE_TIMEOUT=1 <<<'sleep 60'
way crashes "bind did not place" <<<'kill -SEGV $$'
way missing "bind did not place" LINKWISE="$T/none" </dev/null
way empty "not one for these nodes" <<<'exit 0'
cp -r "$T/launch" "$T/old"
way stale "not one for these nodes" LAUNCH="$T/old" <<<'[ "$1" = bind ] || cp -r "$LAUNCH"/* "$6"'
cp -r "$T/launch" "$T/cut" && head -c 3000 "$T/launch/plan.json" >"$T/cut/plan.json"
way cut "bind did not place"
cp -r "$T/launch" "$T/unknown" && sed 's/"h\([1-8]\)"/"m\1"/g' "$T/launch/plan.json" >"$T/unknown/plan.json"
way unknown "bind did not place"
cp -r "$T/launch" "$T/blocked" && rm -rf "$T/blocked/bound-1" && : >"$T/blocked/bound-1"
way blocked "cannot be made"

# A preflight that cannot measure keeps nothing from starting.
batch h1,h2,h3 OPTION=--preflight=60 BWPROBE="$T/none"
[ "$code" = 0 ] && grep -q "preflight could not measure (exit code 127)" "$T/err" && grep -q "starting the job on the placement of $T/launch/map.txt" "$T/err" &&
    grep -q " -m arbitrary .*exec.sh ./program" "$T/out"
result $? "without bwprobe the job starts all the same, as planned" "$T/why"

# Only one of two hosts with the same short name is in the plan.
nodes n1.east:2 n1.west:2 n2.east:2 n3.east:2 >"$T/twins.json"
emitted "$T/twins.json" n1.east,n2.east,n3.east
batch n1.east,n2,n3
placed "short names that one host has stand for it" "$(sed 's/$/,/' "$T/launch/map.txt" | tr -d '\n' | sed 's/,$//')"
batch n1,n2,n3 TRIAL=1
! grep -q "placing as planned" "$T/err" && grep -q 'n1.*several\|"n1"' "$T/err"
result $? "a short name that another host of the cluster has too does not" "$T/why"
for case in "n1 may be several of .*/hosts.txt" "n1.west but runs on n1.west"; do
    host=${case%% *} says=${case#* }
    RANK=$(awk '$2 == "n1.east" { print $1; exit }' "$T/launch/map.txt") LINKWISE_NODE=$host "$T/launch/exec.sh" true >"$T/why" 2>&1
    [ $? = 1 ] && grep -q "$says" "$T/why"
    result $? "the wrapper on $host" "$T/why"
done
RANK=$(awk '$2 == "n2.east" { print $1; exit }' "$T/launch/map.txt") LINKWISE_NODE=n2 "$T/launch/exec.sh" true >"$T/why" 2>&1
result $? "the wrapper on n2" "$T/why"
LINKWISE_NODE=n1.west "$T/launch/exec.sh" --host >"$T/why" 2>&1
[ $? = 1 ] && grep -q "n1.west, is not in .*/map.txt" "$T/why"
result $? "a host of the cluster without ranks is none of the plan" "$T/why"
done_testing
