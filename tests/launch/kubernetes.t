#!/bin/bash
# The Kubernetes manifests are valid, and what their pods run puts every rank on its planned
# node whichever pod landed where: the Job's command on every host, the MPIJob's launcher with a
# real mpirun and workers that are named otherwise than the nodes they are on.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_python jsonschema python3-jsonschema
needs openmpi-bin mpirun.openmpi

placed "$T" 4 2 || exit 1
expect 0 "emit" "8 ranks written" $LINKWISE emit "$T/plan.json" --to kubernetes -d "$T/launch"
for f in configmap job mpijob; do
    $PY - tests/launch/data/kubernetes.schema.json "$T/launch/kubernetes/$f.json" >"$T/why" 2>&1 <<'P'
import json, sys, jsonschema
schema, doc = (json.load(open(f)) for f in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
kind = dict(schema, **{"$ref": "#/$defs/" + doc["kind"]})
del kind["oneOf"]
jsonschema.validate(doc, kind)
P
    result $? "$f.json is valid" "$T/why"
done

# What the mounts hold, and the commands, one word a line.
$PY - "$T" <<'P'
import json, os, sys
top = sys.argv[1]
read = lambda f: json.load(open(top + "/launch/kubernetes/" + f))
data, job, mpi = read("configmap.json")["data"], read("job.json"), read("mpijob.json")
spec = job["spec"]["template"]["spec"]
volume = spec["volumes"][0]["configMap"]
assert volume["name"] == "linkwise" and {i["key"] for i in volume["items"]} == set(data)
for item in volume["items"]:
    path = top + "/mount/" + item["path"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(data[item["key"]])
    os.chmod(path, volume["defaultMode"])
nodes = sorted(t["matchFields"][0]["values"][0] for t in
               spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"])
assert nodes == ["h1", "h2", "h3", "h4"] and job["spec"]["completions"] == 4
assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
specs = mpi["spec"]["mpiReplicaSpecs"]
assert specs["Worker"]["replicas"] == 4 and mpi["spec"]["slotsPerWorker"] == 2
for name, container in ("job", spec["containers"][0]), ("launcher", specs["Launcher"]["template"]["spec"]["containers"][0]), \
        ("worker", specs["Worker"]["template"]["spec"]["containers"][0]):
    open(top + "/" + name + ".command", "w").write("\n".join(container["command"]).replace("/linkwise/", top + "/mount/") + "\n")
P
result $? "one pod for each node of the plan, with all its GPUs"

cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
T=$1
# A /tmp of its own, with $T where it was: pods have files of their own.
mount --bind "$T" /mnt && mount -t tmpfs tmpfs /tmp && mkdir -p "$T" && mount --bind /mnt "$T"
hosts_up w0 w1 w2 w3
printf '#!/bin/sh\necho "$RANK ${LINKWISE_NODE:-$(cat "$LINKWISE_NODE_FILE")} $LINKWISE_GPU $(hostname) $MASTER_ADDR"\n' >"$T/program"
chmod +x "$T/program"
# The scheduler's choice: worker -> node.
printf 'w0 h3\nw1 h1\nw2 h4\nw3 h2\n' >"$T/choice"
command() { sed "s|^PROGRAM$|$T/program|" "$T/$1.command"; }
mapfile -t job < <(command job)
while read -r pod node; do
    LINKWISE_NODE=$node "$HOSTS_RSH" "$pod" "${job[@]}" </dev/null
done <"$T/choice" >"$T/job.out" 2>"$T/job.err"
LINKWISE_NODE=h9 "$HOSTS_RSH" w0 "${job[@]}" >"$T/stranger.out" 2>&1
echo $? >"$T/stranger.rc"

# Each worker sees its own /tmp/linkwise-node.
touch /tmp/linkwise-node
mapfile -t worker < <(command worker)
cat >"$T/pod" <<R
#!/bin/bash
while [ "\${1#-}" != "\$1" ]; do shift; done
pod=\$1
shift
exec "$HOSTS_RSH" "\$pod" "unshare --mount sh -c 'mount --bind $T/node-\$pod /tmp/linkwise-node && exec sh -c \"\\\$0\"' \$(printf %q "\$*")"
R
chmod +x "$T/pod"
while read -r pod node; do
    : >"$T/node-$pod"
    LINKWISE_NODE=$node "$T/pod" "$pod" "$(printf %s "${worker[2]}" | sed 's|exec .*|true|')" </dev/null
    echo "$pod slots=2" >>"$T/mpi.hosts"
done <"$T/choice" >"$T/workers.out" 2>&1
mapfile -t launcher < <(command launcher)
export OMPI_MCA_orte_default_hostfile=$T/mpi.hosts OMPI_MCA_plm_rsh_agent=$T/pod LINKWISE_RSH=$T/pod
export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"${launcher[@]}" >"$T/mpi.out" 2>"$T/mpi.err"
echo $? >"$T/mpi.rc"
echo h9 >"$T/node-w2"
"${launcher[@]}" >"$T/lost.out" 2>&1
echo $? >"$T/lost.rc"
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

same_as_map "$T" "$T/job.out"
result $? "Job: every rank is on the planned node and GPU" "$T/job.err"
[ "$(cat "$T/stranger.rc")" != 0 ] && grep -q "h9, is not in" "$T/stranger.out"
result $? "Job: a pod on another node says so" "$T/stranger.out"
[ "$(cat "$T/mpi.rc")" = 0 ] && same_as_map "$T" "$T/mpi.out"
result $? "MPIJob: every rank is on the planned node and GPU, by way of the workers" "$T/mpi.err"
[ "$(awk '{ print $2, $4 }' "$T/mpi.out" | sort -u)" = "$(awk '{ print $2, $1 }' "$T/choice" | sort)" ] &&
    [ "$(awk '{ print $5 }' "$T/mpi.out" | sort -u)" = "$(awk 'NR == FNR { w[$2] = $1; next } $1 == 0 { print w[$2] }' "$T/choice" "$T/launch/map.txt")" ]
result $? "... rank 0's worker is the master" "$T/mpi.out"
[ "$(cat "$T/lost.rc")" != 0 ] && grep -q "no worker runs on node h4" "$T/lost.out"
result $? "MPIJob: a node without a worker is an error" "$T/lost.out"
done_testing
