#!/bin/bash
# The mistakes that a newcomer makes first: each says what to type, and what is nearly right is
# suggested or taken with a word.
. tests/lib/tap.sh
L="spawn $LINKWISE"
echo "Access to model meta-llama/Llama-3-8B is restricted." >"$T/gated.json"
echo '{"error":"Unauthorized"}' >"$T/refused.json"

echo "nodes: 4" >"$T/c.yaml"
echo '{"version":1,"nodes":[{"name":"a","gpus":2,"gpu_type":"h100-sxm5-80g"}],"link":{}}' >"$T/typo.json"
printf 'Model,GPU Type,Num GPUs,TP,PP,Step Time\nllama-2-7b,A100,8,1,1,3.2\n' >"$T/some.csv"

$L plan "4x8 h100" llama-3-8b -o "$T/plan.json" >/dev/null 2>&1

# typed COMMAND: its words are cut as the shell does
typed() { eval "spawn $LINKWISE $1"; }
# CODE | COMMAND | what it must say
while IFS='|' read -r code command hint; do
    expect "${code// /}" "${command# }" "${hint# }" typed "$command"
done <<TABLE
2 | plan                                            | as in: linkwise plan "4x8 h100" llama-3-8b
2 | mem llama-3-8b                                  | as in: linkwise mem llama-3-8b --gpu h100
2 | plna                                            | did you mean plan\?
2 | cluster shwo                                    | did you mean show\?
2 | plan "4x8 h100" llama-3-8b --micro-batches 2    | did you mean --micro-batch\?
2 | plan "4x8 h100" llama-3-8b --batch 64           | did you mean --global-batch\?
2 | plan "4x8 h100" llama-3-8b --tensor-model-parallel-size 2 | did you mean --tp\?
2 | plan "4x8 h100" llama-3-8b --seq-length 4096    | did you mean --seq\?
2 | plan "4x8 h100" llama-3-8b --zero-stage 1       | did you mean --zero\?
2 | plan "4x8 h100" llama-3-8b --mbs=2              | did you mean --micro-batch\?
2 | plan "4x8 h100" llama-3-8b --num-nodes 2        | did you mean --nodes\?
2 | plan "4x8 h100" llama-3-8b --schedule 1F1B      | did you mean 1f1b\?
2 | plan "4x8 h100" llama-3-8b --precision bfloat16 | did you mean bf16\?
2 | plan "4x8 h100" llama-3-8b --precision half     | did you mean fp16\?
2 | plan "4x8 h100" llama-3-8b --precision torch.float32 | did you mean fp32\?
2 | plan "4x8 h100" llama-3-8b --recompute selectiv | did you mean selective\?
2 | plan "4x8 h100" llama-3-8b --nodes 5            | has 4: ask for that many or fewer
2 | plan llama-2-7b                                 | as in: linkwise plan "4x8 h100" llama-2-7b
2 | plan "4x8 h100" llama-3-8b --sequence 4096      | did you mean --seq\?
2 | plan "4x8 h100" llama-3-8b --num-gpus 16        | did you mean --nodes\?; fewer GPUs are fewer nodes, .* as "2x8 h100"
2 | plan "4x8 h100" llama-3-8b --world-size 16      | did you mean --nodes\?; fewer GPUs are fewer nodes
2 | mem llama-3-8b --gpu h100 --gpus 8              | how many GPUs is what --dp, .* as in --dp 8
2 | plan llama-3-8b --gpu h100                      | the GPU's type stands in the cluster, as in "4x8 h100"
2 | plan "4x8 h100" llama-3-8b --hidden-size 4096   | model's sizes stand in its config.json, which is MODEL
2 | plan --cluster "4x8 h100" --model llama-3-8b    | '--cluster'; it is an argument without a name: linkwise plan .*CLUSTER MODEL
2 | mem --model llama-3-8b --gpu h100               | '--model'; it is an argument without a name: linkwise mem
2 | plan "4x8 h100" llama-3-8b --num-layers 32      | model's sizes stand in its config.json
1 | cluster show "4x8 h100 ib:400"                  | unknown field "ib" .intra, inter, node, intra-us, inter-us.$
1 | cluster show "4x8 h100 inter=50"                | expected NAME:VALUE, as inter:50, found "inter=50"$
0 | cluster show "4X8 h100"                         | 4 nodes, 32 GPUs
2 | plan 4x8 llama-3-8b --gpu-type h100             | the GPU's type stands in the cluster, as in "4x8 h100"
2 | plan "4x8 h100" llama-3-8b --m 4                | more than one option begins so, --micro-batch, .*--memory
2 | plan "4x8 h100" llama-3-8b -tp 8                | invalid option -- 't'; did you mean --tp\?
2 | plan "4x8 h100" llama-3-8b --tp 8,4             | found "8,4"$
2 | plan "4x8 h100" llama-3-8b -n 4                 | invalid option -- 'n' .*plan --help. lists them
2 | cluster synth                                   | as in: linkwise cluster synth busy -o busy.json
2 | cluster synth "2x4 h100" -o $T/no.json          | one line is written by .linkwise cluster merge
2 | emit $T/plan.json                               | as in: linkwise emit plan.json -d job
2 | report                                          | as in: linkwise report plan.json -o plan.html
2 | bind $T/plan.json                               | as in: linkwise bind plan.json --only
2 | import-job                                      | as in: linkwise import-job pretrain.sh train.log
0 | -h                                              | Usage: linkwise COMMAND
0 | help plan                                       | Usage: linkwise plan
0 | help cluster show                               | Usage: linkwise cluster show
2 | help plna                                       | unknown command "plna"; did you mean plan\?
2 | mem llama-3-8b --gpu h100 --seq 8k              | found "8k"; did you mean 8192\?
2 | mem llama-3-8b --gpu h100 --seq 4,096           | found "4,096"; did you mean 4096\?
2 | mem llama-3-8b h100                             | found "h100" too: a GPU type goes with --gpu
2 | mem llama-3-8b --gpu h100 --memory-limit 0.9    | memory-limit: expected a number above 1, at most 100
1 | cluster check $T/typo.json                      | link: unknown key, ignored
1 | validate $T/some.csv                            | header lacks seq; it has model, gpu, gpus, tp, pp, iter_time_s \(docs/runs.md
2 | cluster synth clam -o $T/no.json                | expected calm, busy, failing or mixed; did you mean calm\?
2 | cluster synth calm --gpu-type h10 -o $T/no.json | gpu-type: unknown GPU type "h10"; did you mean h100-sxm5-80g\?
0 | cluster synth calm --gpu-type h100 -o $T/c.json | h100: taken as h100-sxm5-80g
1 | plan nocluster.json llama-2-7b                  | No such file .*; CLUSTER is a JSON file, .* or one line
1 | plan $T/c.yaml llama-2-7b                       | CLUSTER is a JSON file, .* or one line, as "4x8 h100"
2 | mem llama-3-8b --gpu "rtx 5090 d"               | unknown GPU type "rtx 5090 d"; that GPU is not built in
2 | mem llama-3-8b --gpu k80                        | unknown GPU type "k80" .*linkwise gpus
0 | mem gpt2-xl --gpu "NVIDIA H100 80GB HBM3"       | taken as h100-sxm5-80g
0 | mem gpt2-xl --gpu rtx4090                       | taken as rtx-4090
0 | mem mixtral-8x7b --gpu h100 --ep 8              | tp 1, pp 1, dp 8, ep 8
0 | mem llama-3-8b --gpu h100 --pp 4 --vpp 2      | pp 4, .* interleaved, vpp 2
0 | mem mixtral-8x7b --gpu h100 --tp 4 --etp 2 --ep 8 | tp 4, pp 1, dp 4, ep 8, etp 2
1 | plan 8xH100 llama-3-8b                          | NODESxGPUS TYPE, here "1x8 H100"
1 | plan 4x8h100 llama-3-8b                         | NODESxGPUS TYPE, here "4x8 h100"
1 | plan "2x p4d.24xlarge" llama-3-8b               | here "2x8 p4d.24xlarge"
1 | plan "2 4090" llama-3-8b                        | NODESxGPUS TYPE, here "1x2 4090"
1 | plan "4x8 h100 node:400G" llama-3-8b            | node: expected GB/s, .* .400 Gbit/s are 50 GB/s.
0 | cluster show "4x8 h100 inter:400"               | 8.3 times .* of 400 Gbit/s inter:50 is right
2 | plan "4x8 h100" llama-3-8b --framework nemo     | did you mean --profile\?
1 | plan "4x8 h100, 2x8 a100" llama-3-8b            | joins unlike nodes, as in "4x8 h100 . 2x8 a100"
2 | plan 4x8 h100 llama-3-8b                        | quote the cluster: "4x8 h100"
2 | cluster show 4x8 h100                           | quote the cluster: "4x8 h100"
2 | --hlep                                          | did you mean --help\?
2 | --verison                                       | did you mean --version\?
2 | emit $T/plan.json --to env,slrum -d $T/launch   | did you mean slurm\?
1 | plan $T/plan.json gpt2-xl                       | this is a plan: .linkwise plan --from
1 | plan "4x8 h100" $T/plan.json                    | this is a plan: .linkwise plan --from
1 | plan "4x8 h100" .                               | MODEL is a Hugging Face config.json, its folder
1 | plan . gpt2-xl                                  | found a folder; CLUSTER is a JSON file, .* or one line, as "4x8 h100"
1 | compare "2x8 h100" gpt2-xl                      | CLUSTER comes first, then MODEL, and this is a model
1 | cluster show $T/plan.json                       | CLUSTER is expected, and this is a plan
1 | check examples/clusters/h100-17.json            | PLAN is a file that .linkwise plan .*this is a cluster
1 | eval "4x8 h100"                                 | PLAN is a file .*this is a cluster
1 | explain gpt2-xl                                 | PLAN is a file .*this is a model
1 | plan "4x8 h10o" llama-3-8b                      | did you mean h100-sxm5-80g\?
1 | plan h100 llama-3-8b                            | as in "4x8 h100"
1 | plan "4 x 8 h100" llama-3-8b                    | here "4x8 h100"
1 | plan llama-3-8b "4x8 h100"                      | CLUSTER comes first, then MODEL, and this is a model
1 | plan examples/models/llama-2-70b.json "4x8 h100" | CLUSTER comes first
1 | plan "4x8 h100" examples/clusters/h100-17.json  | CLUSTER comes first, then MODEL, and this is a cluster
1 | plan "4x8 h100" llama-3-8                       | near it: llama-3-8b
1 | plan "4x8 h100" ./Llama-3-8B                    | did you mean the preset llama-3-8b
1 | plan "4x8 h100" my-model.json                   | name a preset .*linkwise models
1 | plan "4x8 h100" google/gemma-99b                | hf download google/gemma-99b .*gated one after .hf auth login
1 | plan "4x8 h100" $T/gated.json                   | hf auth login
1 | plan "4x8 h100" $T/refused.json                 | hf auth login
1 | plan "4x8 h100" llama-3-8b --tp 8 --dp 8        | needs 64 GPUs, 32 can be used: lower a degree
1 | plan "4x8 h100" llama-3-8b --dp 3               | dp 3 does not divide 512 .*\(1, 2, 4,.* would\)
1 | plan "4x8 h100" llama-3-8b --profile megatroncore | did you mean megatron-core\?
3 | plan "1x8 a10" llama-3-70b                      | it would fit on 128 such GPUs, or on GPUs with
3 | plan "1x2 l4" llama-3.2-1b --seq 65536          | it would fit with --seq [0-9]+
3 | plan "1x1 h100" gpt2-xl --memory-limit 20 --offload none        | it would fit with --memory-limit [0-9]+
0 | plan "4x8 h100" meta-llama/Llama-3-8B           | taken as the preset llama-3-8b
0 | plan "4x8 h100" llama-3-8b                      | ^links    nominal inside and between nodes: not measured
0 | plan "1x8 h100" llama-3-8b                      | ^links    nominal inside the node: not measured
0 | plan "4x8 h100" llama-3-8b                      | h100: taken as h100-sxm5-80g
0 | plan "4x8 h100" llama-3-8b                      | no --seq: 8192 tokens, as llama-3-8b is usually trained
0 | plan "4x8 h100" llama-2-70b                     | no --global-batch: 1024 sequences, 4.2 million tokens a step
0 | plan "4x8 h100" llama-2-70b --seq 2048          | no --global-batch: 2048 sequences, 4.2 million
0 | time "4x8 h100" deepseek-v3 --tp 8              | no --global-batch: 15360 sequences, 62.9 million
0 | mem gpt2-xl --gpu h100                          | no --seq: 1024 tokens
TABLE

# What is given stays as it is, without a word.
expect 0 "a job that is whole" "512 sequences of 4096" \
    $L plan -v "2x8 h100-sxm5-80g intra:370 inter:48" llama-3-8b --seq 4096 --global-batch 512
! grep -E "no --|nominal" "$T/both"
result $? "... says nothing of usual or nominal things" "$T/both"

# A config.json names the longest sequence.
sed 's/"max_position_embeddings": 4096/"max_position_embeddings": 2048/' \
    examples/models/llama-2-70b.json >"$T/short.json"
expect 0 "no longer than the config allows" "no --seq: 2048 tokens, as short" \
    $L mem "$T/short.json" --gpu h100 --tp 8

# The plan file is marked, and checks.
grep -q '"nominal_links": *\["intra", *"inter"\]' <(tr -d '\n' <"$T/plan.json" | tr -s ' ' | sed 's/\[ /[/; s/ \]/]/g') &&
    [ "$(grep -c '"nominal": true' "$T/plan.json")" -ge 2 ]
result $? "plans on nominal links are marked"
expect 0 "... and can be checked" "links        ok" $L check "$T/plan.json"

# So is everything that rests on them.
while IFS='|' read -r command says; do
    expect 0 "${command% *}: a word" "${says# }" typed "$command 2>/dev/null"
done <<TABLE
cluster show "4x8 h100"                 | ^links inside and between nodes are nominal
cluster show "4x8 h100 intra:370"       | ^links between nodes are nominal
cluster show "1x8 h100"                 | ^links inside the node are nominal
compare "2x8 h100" examples/clusters/h100-17.json | ^nominal: not measured +inside and between nodes +-$
time "4x8 h100" llama-3-8b --tp 8       | ^links    nominal inside and between nodes: not
eval $T/plan.json                       | ^links    nominal inside and between nodes: not
TABLE
for command in "cluster show examples/clusters/h100-17.json" \
    "compare examples/clusters/h100-17.json examples/clusters/h100-17.json"; do
    $L $command >"$T/out" 2>&1 && ! grep -q nominal "$T/out"
    result $? "${command%% *} of measured links: none" "$T/out"
done
$L compare --json "2x8 h100 intra:370" examples/clusters/h100-17.json >"$T/two.json" 2>"$T/err"
[ "$(grep -o '"nominal_links": *\[[^]]*\]' <(tr -d '\n' <"$T/two.json") | tr -d ' ' | cut -d: -f2 | paste -sd' ')" = '["inter"] []' ]
result $? "and in JSON" "$T/err"
done_testing
