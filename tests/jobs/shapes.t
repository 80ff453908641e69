#!/bin/bash
# Shapes that job files and logs of public repositories have: options in YAML, batch scripts whose
# nodes are Slurm's, NCCL's lines and Megatron's timers in a log, engines of DeepSpeed.
. tests/lib/tap.sh
. tests/lib/jobs.sh

# ---- Megatron-LM's options as YAML, and experts with a capacity ----
row $F/args.yaml --gpus 128 --gpu h100
has tp=2 pp=8 ep=8 layers=56 kv_heads=8 precision=bf16 zero=1 framework=megatron-core
is "all(w in d['row']['notes'] for w in ('moe-token-dispatcher-type=alltoall', 'moe-expert-capacity-factor=2.0', 'moe-pad-expert-input-to-capacity=true'))"
is "d['unknown'] == [] and 'cuda-graph-impl=transformer_engine' in d['row']['notes']"
is "'overlap-grad-reduce=false' in d['row']['notes'] and 'fp8-param-gather' not in d['row']['notes']"
is "abs(sum(d['estimate']['breakdown_s'].values()) / d['estimate']['step_s'] - 1) < 1e-6" # parts are of the same job
cp "$T/doc.json" "$T/padded.json"
sed '/pad-expert/d' $F/args.yaml >"$T/ragged.yaml"
row "$T/ragged.yaml" --gpus 128 --gpu h100
is "'moe-pad-expert-input-to-capacity=false' in d['row']['notes']"
is "d['estimate']['breakdown_s']['ep'] < json.load(open('$T/padded.json'))['estimate']['breakdown_s']['ep']"
sed '/num-experts\|expert-model/d' $F/args.yaml >"$T/dense.yaml"
row "$T/dense.yaml" --gpus 128 --gpu h100
is "'moe-token' not in d['row']['notes'] and 'capacity' not in d['row']['notes']"
sed 's/--moe-token-dispatcher-type: alltoall/--moe-enable-deepep: true/; /capacity/d' $F/args.yaml >"$T/deepep.yaml"
row "$T/deepep.yaml" --gpus 128 --gpu h100
is "'moe-token-dispatcher-type=flex' in d['row']['notes']"

# ---- batch scripts: nodes and GPUs are Slurm's ----
batch() { # LINE...: a job with these lines of sbatch
    printf '#!/bin/bash\n'
    printf '#SBATCH %s\n' "$@"
    cat <<'S'
options=" --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
  --vocab-size 50257 --micro-batch-size 1 --global-batch-size 64 --bf16 \
  --num-key-value-heads 4 --deepspeed_config=ds.json --no-query-key-layer-scaling"
srun -l sh -c "python -u ${DIR}/pretrain_gpt.py --nnodes ${SLURM_NNODES:-1} ${options}"
S
}
batch "-N 4" --gres=gpu:h100:8 --ntasks-per-node=8 >"$T/batch.sh"
row "$T/batch.sh" --gpu h100
has gpus=32 gpus_per_node=8 kv_heads=4
is "d['unknown'] == []"
batch --nodes=2 "--gpus-per-node=a100:4" --gres=nvme:100 >"$T/batch.sh"
row "$T/batch.sh" --gpu a100
has gpus=8 gpus_per_node=4
batch "-N 2 -n 16 --gres=nvme:100 --gpus-per-node=8" >"$T/batch.sh" # all on one line
row "$T/batch.sh" --gpu a100
has gpus=16 gpus_per_node=8
is "d['unknown'] == []"
for gres in "nvme:100,gpu:8(S:0-1)" "gpu:h100:8,nvme:1"; do
    batch --nodes=2 "--gres=$gres" >"$T/batch.sh"
    row "$T/batch.sh" --gpu h100
    has gpus=16 gpus_per_node=8
done
batch "--nodes 2 -t 10:00 # two of them" --gpus-per-node=4 >"$T/batch.sh"
row "$T/batch.sh" --gpu h100
has gpus=8 gpus_per_node=4
batch --nodes=4 --gres=gpu >"$T/batch.sh"
row "$T/batch.sh" --gpu h100
has gpus=4 gpus_per_node=1
batch -G16 --gpus-per-node=8 >"$T/batch.sh"
row "$T/batch.sh" --gpu a100
has gpus=16 gpus_per_node=8

# A command in a variable, with what a shell does to its output; Megatron-DeepSpeed's experts.
cat >"$T/experts.sh" <<'S'
options=" --expert-interval 2 --topk 2 --num-experts 16 --moe-expert-parallel-size 8 --moe-train-capacity-factor 1.5 \
  --moe-eval-capacity-factor 1.0 --moe-min-capacity 4 --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
  --seq-length 2048 --micro-batch-size 2 --global-batch-size 64 --fp16 --vocab-file v.json --merge-file m.txt"
run_cmd="deepspeed $(dirname $0)/pretrain_gpt.py ${options} --deepspeed --pipeline-model-parallel-size 2 &> out.log"
eval ${run_cmd}
S
row "$T/experts.sh" --gpus 16 --gpu a100
has pp=2 ep=8 vocab=50257 precision=fp16 framework=megatron-deepspeed
is "d['unknown'] == [] and all(w in d['row']['notes'] for w in ('moe-layer-freq=2', 'moe-router-topk=2', 'moe-expert-capacity-factor=1.5', 'moe-pad-expert-input-to-capacity=true'))"
# Experts in every second layer are so in the row, too.
echo '{"model_type":"llama4_text","hidden_size":512,"num_hidden_layers":4,"num_attention_heads":4,
    "vocab_size":1000,"intermediate_size_mlp":512,"intermediate_size":256,"num_local_experts":4,
    "num_experts_per_tok":1,"interleave_moe_layer_step":2}' >"$T/config.json"
row $F/ds_config.json "$T/config.json" --seq 2048 --gpus 8 --gpu a100
is "'moe-layer-freq=([0]*1+[1]*1)*2' in d['row']['notes']"
sed -i 's/"num_hidden_layers":4/"num_hidden_layers":6/; s/step":2/step":4/' "$T/config.json"
row $F/ds_config.json "$T/config.json" --seq 2048 --gpus 8 --gpu a100
is "'moe-layer-freq=[0]*3+([1]*1+[0]*3)*0+[1]*1+[0]*2' in d['row']['notes']"
# What stands in a variable of the environment is no number.
sed 's/--nnodes "$NODES"/--nnodes 2/; s/--nproc_per_node $GPUS_PER_NODE/--nproc_per_node=gpu/; s/^TP=2/for TP in 2 4; do/; /gpus-per-node/d' \
    $F/llama-8b.sh >"$T/swept.sh"
row "$T/swept.sh" --gpus 16 --gpu h100
has gpus=16 tp=1
grep -q 'gpus_per_node is no number ("gpu")' "$T/err" && grep -q 'tp is no number ("true"): it counts as not stated' "$T/err"
result $? "... and is named" "$T/err"
# NeMo's own default asks for no fp8, and says which format it would have.
sed 's/^model:/&\n  fp8: False\n  fp8_hybrid: True\n  use_flash_attention: True\n  fsdp_sharding_strategy: full/' $F/nemo.yaml >"$T/nemo.yaml"
row "$T/nemo.yaml" --gpu h100
has precision=bf16 attention=flash
is "[u['option'] for u in d['unknown']] == ['model.cpu_offloading']"
sed -i 's/fp8: False/fp8: True/' "$T/nemo.yaml"
row "$T/nemo.yaml" --gpu h100
has precision=fp8

# ---- NCCL's lines, Megatron's timers ----
nccl() { # RANKS NODES
    local ranks=$1 nodes=$2 local=$(($1 / $2))
    for ((r = 0; r < ranks; r++)); do
        echo "$r: n$((r / local)):300:31$r [$((r % local))] NCCL INFO comm 0x55$r rank $r nRanks $ranks nNodes $nodes localRanks $local localRank $((r % local)) MNNVL 0"
        echo "$r: n$((r / local)):300:31$r [$((r % local))] NCCL INFO ncclCommInitRank comm 0x66$r rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init COMPLETE"
    done
}
timers() { # BETWEEN...: three steps, each with timers
    for i in 1 2 3; do
        echo "15:  [2025-02-03 10:00:0$i] iteration $i/ 100 | elapsed time per iteration (ms): 870$i.0 | throughput per GPU (TFLOP/s/GPU): 402.0 | global batch size: 128 |"
        printf '15: (min, max) time across ranks (ms):\n'
        printf '15:     forward-backward ..........................: (8020.32, 812%d.50)\n' $i
        printf '15:     all-grads-sync ............................: (120.45, 180.50)\n'
        printf '15:     optimizer-inner-step ......................: (14.05, 15.11)\n'
        printf '15:     optimizer .................................: (20.05, 21.50)\n'
    done
}
grep -v '#SBATCH\|nproc_per_node' $F/llama-8b.sh >"$T/open.sh"
printf 'torchrun pretrain_gpt.py ${MODEL_ARGS[@]} $TRAIN_ARGS --vocab-size 128256 --tensor-model-parallel-size 2 --bf16\n' >>"$T/open.sh"
{ nccl 16 2; timers; } >"$T/run.log"
row "$T/open.sh" "$T/run.log" --gpu h100
has gpus=16 gpus_per_node=8 dp=8
grep -q "the GPUs are not stated: 16, as NCCL's largest communicator has" "$T/err"
result $? "NCCL's ranks are taken with a word" "$T/err"
is "d['measured']['step_s'] == 8.7025 and d['measured']['forward_backward_s'] == 8.123"
is "d['measured']['gradients_s'] == 0.1805 and d['measured']['optimizer_s'] == 0.0215"
! grep -q "optimizer is" "$T/err"
result $? "a timer is no argument" "$T/err"
expect 0 "timers are printed beside the estimate" "forward and backward +8.1230 +[0-9.]+" \
    $L import-job "$T/open.sh" "$T/run.log" --gpu h100 --no-plan
sed 's/(\([0-9.]*\), /(/; s/(\([0-9.]*\))$/\1/' "$T/run.log" >"$T/most.log" # with timing-log-option max
row "$T/open.sh" "$T/most.log" --gpu h100
is "d['measured']['gradients_s'] == 0.1805"
sed 's/\(gpus-per-node\)=8/\1=8/; s/nodes=2/nodes=4/' $F/llama-8b.sh >"$T/four.sh"
row "$T/four.sh" $F/llama-8b.log
has gpus=16
grep -q "4 nodes of 8 GPUs are stated and 16 GPUs" "$T/err"
result $? "nodes that contradict the log's world are said" "$T/err"
{ nccl 32 4; timers; } >"$T/more.log"
row $F/llama-8b.sh "$T/more.log" --gpu h100
has gpus=16
grep -q "NCCL has a communicator of 32 ranks, the files say 16 GPUs" "$T/err"
result $? "NCCL's ranks that contradict the files are said" "$T/err"
printf 'Loading weights ...: 50%%\n' >"$T/loading.log"
expect 1 "dots that are no timer's" "without an option that is known" $L import-job "$T/loading.log" --gpu h100
nccl 16 2 >"$T/nccl.log"
expect 1 "NCCL's lines alone" "nothing says the model" $L import-job "$T/nccl.log"

# ---- several runs in one log: what a program prints as it starts is of the run that follows ----
again() { # WORLD STEP: a run's first lines and two steps
    echo "using world size: $1, data-parallel size: 4, context-parallel size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: 1"
    for i in 0 1; do echo " iteration $(($2 + i))/ 100 | elapsed time per iteration (ms): 8700.0 | global batch size: 128 |"; done
}
{ again 16 1; again 8 3; } >"$T/resumed.log" # the second goes on from a checkpoint
$L import-job "$T/open.sh" "$T/resumed.log" --gpu h100 --no-plan -o "$T/two.csv" >/dev/null 2>"$T/err"
result $? "two runs" "$T/err"
grep -q "another run begins in this log (number 2)" "$T/err" && [ "$(awk -F, 'NR == 1 { while ($++at != "gpus") if (at > NF) exit } NR > 1 { print $at }' "$T/two.csv" | paste -sd,)" = 16,8 ]
result $? "each run has its own GPUs" "$T/two.csv"
for start in "[INFO] [config.py:984:print] DeepSpeedEngine configuration:" "[INFO|trainer.py:2128] >> ***** Running training *****"; do
    for world in 8 16; do
        echo "$start"
        echo "[INFO] [config.py:988:print]   world_size ................... $world"
        echo "[INFO] [timer.py:215:stop] epoch=0/micro_step=40/global_step=$world, RunningAvgSamplesPerSec=7.1, CurrSamplesPerSec=7.0"
    done >"$T/engines.log"
    row $F/ds_config.json $F/mistral/config.json "$T/engines.log" --seq 4096 --gpu a100
    is "d['rows'] == 2 and d['row']['gpus'] == '16'"
done

# ---- DeepSpeed's engines ----
{
    echo '[2024-05-01 10:00:00,000] [INFO] [config.py:988:print]   world_size ................... 8'
    for i in 10 20 30; do echo "steps: $i loss: 8.1012 iter time (s): 0.98$((i / 10)) samples/sec: 65.2"; done
} >"$T/pipe.log"
row $F/ds_config.json $F/mistral/config.json "$T/pipe.log" --seq 4096 --gpu a100
has gpus=8 iter_time_s=0.9825 framework=deepspeed
# Hugging Face's Trainer says the whole batch and its parts: the GPUs follow.
cat >"$T/trainer.log" <<'S'
[INFO|trainer.py:2128] 2025-01-01 00:00:00,000 >> ***** Running training *****
[INFO|trainer.py:2131] 2025-01-01 00:00:00,000 >>   Instantaneous batch size per device = 4
[INFO|trainer.py:2134] 2025-01-01 00:00:00,000 >>   Total train batch size (w. parallel, distributed & accumulation) = 128
[INFO|trainer.py:2135] 2025-01-01 00:00:00,000 >>   Gradient Accumulation steps = 2
{'train_runtime': 5000.1, 'train_samples_per_second': 25.6, 'train_steps_per_second': 0.2, 'epoch': 3.0}
S
sed 's/"\(train[a-z_]*\|gradient_acc[a-z_]*\)": *[0-9]*/"\1": "auto"/' $F/ds_config.json >"$T/auto.json"
row "$T/auto.json" $F/mistral/config.json "$T/trainer.log" --seq 4096 --gpu a100
has gpus=16 dp=16 micro_batch=4 iter_time_s=5
# MiCS, TorchTitan's replicas of shards and Megatron's instances are hybrid sharding.
sed 's/"overlap_comm": true/&, "mics_shard_size": 4/' $F/ds_config.json >"$T/mics.json"
row "$T/mics.json" $F/mistral/config.json "$T/trainer.log" --seq 4096 --gpu a100 --gpus 8
is "'shard=4' in d['row']['notes'] and d['config']['shard'] == 4"
sed 's/^data_parallel_replicate_degree.*/data_parallel_replicate_degree = 4/' $F/titan-8b.toml >"$T/hsdp.toml"
row "$T/hsdp.toml" --gpus 32 --gpu h100
is "'num-distributed-optimizer-instances=4' in d['row']['notes'] and d['config']['shard'] == 8 and d['config']['zero'] == 3"
sed 's/--use-distributed-optimizer/& --num-distributed-optimizer-instances 2/' $F/llama-8b.sh >"$T/instances.sh"
row "$T/instances.sh" $F/llama-8b.log
is "d['config']['shard'] * 2 == d['config']['degrees']['dp'] and d['config']['zero'] == 1"
# TorchTitan's batch does not say how many micro-batches a rank has.
sed 's/^seq_len/global_batch_size = 128\n&/' $F/titan-8b.toml >"$T/global.toml"
expect 1 "no GPUs from half a batch" "nothing says the number of GPUs" $L import-job "$T/global.toml" --gpu h100 --no-plan
# Every second layer is recomputed whole.
sed 's/^selective_ac_option.*/selective_ac_option = "2"/' $F/titan-8b.toml >"$T/second.toml"
row "$T/second.toml" --gpus 8 --gpu h100
has recompute=full:16
# Its validation is no step.
sed '$a [rank0]:[titan] 2025-06-01 11:14:59,000 - root - INFO - validate step: 30  loss: 8.1  memory: 57.02GiB(72.09%)  tps: 30,110' \
    $F/titan-8b.log >"$T/validated.log"
row $F/titan-8b.toml "$T/validated.log"
is "abs(d['measured']['step_s'] - 8192 * 16 / 8 / 8110) < 1e-4"
done_testing
