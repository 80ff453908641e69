#!/bin/bash
# Where output goes, and what reaches a terminal: devices, pipes and links stay what they are, an
# answer that cannot be written is a failure, names in files are printed without control
# characters.
. tests/lib/tap.sh
needs python3 python3
python_up
L="spawn $LINKWISE"
synth() { $L cluster synth calm --nodes 257 --gpus 1 --gpu-type h100-sxm5-80g --seed 1 -o "$1"; }
kind() { stat -c %F "$1"; }

# ---- what stands where the output goes ----
mkdir "$T/dev"
if mknod "$T/dev/null" c 1 3 2>/dev/null && : >"$T/dev/null" 2>/dev/null; then
    expect 2 "matrices beside a device are refused" "dev/null cannot take matrices of more than 256 endpoints: name a file" synth "$T/dev/null"
    [ "$(kind "$T/dev/null")" = "character special file" ] && [ "$(ls "$T/dev")" = null ]
    result $? "... which stays, alone"
else
    skip "matrices beside a device are refused" "no device can be made here"
fi
mkfifo "$T/dev/pipe"
expect 2 "... beside a pipe" "dev/pipe cannot take matrices" synth "$T/dev/pipe"
[ -p "$T/dev/pipe" ]
result $? "... which stays"
synth "$T/big.json" >/dev/null
(echo before; $L cluster synth calm --nodes 2 -o /dev/stdout; echo after) >"$T/log"
(echo before; $L cluster synth calm --nodes 2 -o -; echo after) | cmp -s - "$T/log"
result $? "/dev/stdout is what - is, also where it is a file"
cp "$T/big.0.npy" "$T/first.npy"
mkdir "$T/links"
ln -s ../big.json "$T/links/link.json"
expect 0 "a cluster with matrices through a link" "" \
    $L cluster synth calm --nodes 257 --gpus 1 --gpu-type h100-sxm5-80g --seed 2 -o "$T/links/link.json"
[ -L "$T/links/link.json" ] && [ "$(ls "$T/links")" = link.json ] && ! cmp -s "$T/big.0.npy" "$T/first.npy"
result $? "... which stays a link, with the new matrix beside its file"
$L cluster show "$T/big.json" >"$T/want"
$L cluster show "$T/links/link.json" | cmp -s - "$T/want"
result $? "... and reads as that file does"
for arguments in --help --version "plan --help" "cluster --help" "cluster show --usage" gpus; do
    $L $arguments >/dev/full 2>"$T/err"
    [ $? = 1 ] && grep -q "standard output: write error" "$T/err"
    result $? "an answer on a full disk: $arguments" "$T/err"
done

# ---- what reaches a terminal ----
python3 - "$T" <<'P'
import json, sys
evil = "a\u009b31mb\x1b[31mc\nd\x7f"
nodes = [{"name": "n%d" % i, "gpus": 2, "gpu_type": evil} for i in range(2)]
t = sys.argv[1]
def write(name, d): json.dump(d, open("%s/%s" % (t, name), "w"))
links = {"intra": {"bandwidth_gb_per_s": 300, "latency_us": 8}, "inter": {"bandwidth_gb_per_s": 40, "latency_us": 12}, "source": evil}
write("a.json", {"version": 1, "name": evil, "nodes": nodes, "links": links, "source": evil})
for n in nodes: n["gpu_type"] = "h100-sxm5-80g"
write("b.json", {"version": 1, "name": evil, "nodes": nodes, "links": links, "source": evil, evil: 1})
model = json.load(open("examples/models/llama-2-70b.json"))
model.update({"num_hidden_layers": 4, "name": evil, "_name_or_path": evil})
write("m" + evil.replace("\n", "") + ".json", model)
write("model.json", model)
profile = json.load(open("workload/profiles/megatron-core.json"))
profile.update({"name": evil, "source": evil})
write("profile.json", profile)
P
job="--seq 1024 --global-batch 8 --tp 2 --micro-batch 1 --profile $T/profile.json"
cat >"$T/clean.py" <<'P'
import sys
text = open(sys.argv[1], "rb").read().decode("utf-8")
sys.exit(not text or any(c < " " and c != "\n" or "\x7f" <= c < "\xa0" for c in text))
P
clean() { # NAME CODE COMMAND...: prints something, and no control character but the line feed
    local name=$1 code=$2
    shift 2
    spawn "$@" >"$T/both" 2>&1
    [ $? = "$code" ] && py "$T/clean.py" "$T/both"
    result $? "control characters in names: $name" "$T/both"
}
strange=$(ls "$T"/ma*.json)
for model in "$T/model.json" "$strange"; do
    clean plan 0 $LINKWISE plan "$T/b.json" "$model" $job -o "$T/plan.json"
    clean time 0 $LINKWISE time "$T/b.json" "$model" $job --pp 1
    clean mem 0 $LINKWISE mem "$model" --gpu h100-sxm5-80g $job
done
clean eval 0 $LINKWISE eval "$T/plan.json"
clean check 0 $LINKWISE check "$T/plan.json"
clean "cluster show" 0 $LINKWISE cluster show "$T/b.json"
clean "cluster check" 0 $LINKWISE cluster check "$T/b.json"
for to in slurm-topology prometheus csv graphviz; do
    clean "cluster export --to $to" 0 $LINKWISE cluster export --to $to "$T/b.json" -o -
done
clean compare 0 $LINKWISE compare "$T/b.json" "$T/b.json"
clean "a GPU type" 1 $LINKWISE cluster show "$T/a.json"
clean emit 0 $LINKWISE emit "$T/plan.json" -d "$T/launch"
clean "a file that is not there" 1 $LINKWISE plan "$(printf 'a\302\233b')" llama-2-7b --seq 1 --global-batch 1

# ---- what a plan names ----
(cd "$T" && cp profile.json own.json && $L plan b.json model.json ${job%--profile*} --profile own.json -o own-plan.json >/dev/null)
rm "$T/own.json"
expect 0 "a plan carries the profile that it was made with" "step " $L plan --from "$T/own-plan.json" -o "$T/again.json"
[ "$(json "$T/own-plan.json" "d['profile']['time']['residual']")" = "$(json "$T/again.json" "d['profile']['time']['residual']")" ]
result $? "... on to the next plan"
expect 0 "... and is checked with it" "step time +ok" $L check "$T/own-plan.json"
python3 - "$T" <<'P'
import json, sys
d = json.load(open(sys.argv[1] + "/plan.json"))
d["cluster"] = {"name": "x", "nodes": [], "file": "/dev/zero", "sha256": "0" * 64}
json.dump(d, open(sys.argv[1] + "/zero.json", "w"))
d["profile"] = {"version": 1}
json.dump(d, open(sys.argv[1] + "/bad.json", "w"))
P
expect 1 "a plan's cluster that is a device" "cluster .*: /dev/zero: expected a file, found a device or a pipe" $L check "$T/zero.json"
expect 1 "a plan's profile that is none" "bad.json: profile: .*name: expected a text" $L check "$T/bad.json" "$T/b.json"
expect 0 "fewer nodes than are asked for" "warning: 3 nodes are asked for, but only 2 can be used" \
    $L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --tp 8 --micro-batch 1 --only n0,n1 --nodes 3
done_testing
