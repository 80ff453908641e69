#!/bin/bash
# A job's own files and log: each framework's options and lines are read, what ran is what the log
# says, bad files are refused with reasons, and the row is what validate and calibrate read.
. tests/lib/tap.sh
. tests/lib/jobs.sh

# ---- Megatron-LM ----
row $F/llama-8b.sh $F/llama-8b.log
has layers=32 hidden=4096 heads=32 kv_heads=8 ffn=14336 vocab=128256 seq=8192 gpus=16 \
    gpus_per_node=8 tp=2 dp=8 sp=1 zero=1 micro_batch=2 global_batch=128 precision=bf16 \
    recompute=none framework=megatron-core iter_time_s=8.7012 oom=0
is "d['measured']['lines'] == 3 and abs(d['measured']['peak_bytes'] - 48211.25 * 2**20) < 1e6"
is "abs(d['measured']['peak_reserved_bytes'] - 52224 * 2**20) < 1e6"
is "d['unknown'] == [] and 'offload=optimizer' in d['row']['notes'] and d['config']['offload'] == 'optimizer'"
is "d['model']['num_hidden_layers'] == 32 and not d['model']['tie_word_embeddings']"
grep -q 'llama-8b.sh:[0-9]* says micro_batch 1, .*llama-8b.log:[0-9]* says 2: what the log printed' "$T/err"
result $? "a contradiction names both places; the log holds" "$T/err"
! grep -q "step's time" "$T/err"
result $? "... and its times are enough" "$T/err"
row $F/llama-8b.sh --gpu h100
has micro_batch=1 iter_time_s= peak_mem_gb= oom=
is "d['measured']['step_s'] is None and d['estimate']['step_s'] > 0"

# Variables, defaults, sums, arrays, branches; what would have to be run is said.
cat >"$T/job.sh" <<'S'
#!/bin/bash
N=$((2 * (3 + 1)))
TP=${TP:-4}; PP=${2:-2}
ARGS=( --num-layers 24 --hidden-size 2048   # a comment
   --num-attention-heads 16 --seq-length "2048" --vocab-size 50257 )
ARGS+=(--micro-batch-size 2)
if [ "$TP" -eq 8 ]; then ARGS+=(--fp16); elif [[ $TP == 4 ]]; then ARGS+=(--bf16); else ARGS+=(--fp16); fi
touch "$(echo never)" `date`
torchrun --nproc-per-node=$N --nnodes=1 ${UNSET}train.py "${ARGS[@]}" \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP} --global-batch-size 32 \
  --recompute-granularity full --recompute-method block --recompute-num-layers 3 \
  --data-path $(touch HERE) --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16
S
(cd "$T" && $L import-job --no-plan --json job.sh --gpu a100 >doc.json 2>err)
result $? "reads a script with variables" "$T/err"
has gpus=8 tp=4 pp=2 precision=bf16 micro_batch=2 seq=2048 ffn=8192 recompute=full:3
is "'optimizer-bytes=6' in d['row']['notes'] and 'hidden-dropout=0.1' in d['row']['notes']"
[ ! -e "$T/HERE" ] && [ ! -e HERE ] && [ ! -e "$T/never" ]
result $? "nothing of a script is run"
grep -q "cannot be evaluated without running" "$T/err"
result $? "what cannot be evaluated is said" "$T/err"

# An assignment is one value, blanks or not, also behind +=; sums do not overflow.
cat >"$T/value.sh" <<'S'
SHAPE="--num-layers 24 --hidden-size 2048 --num-attention-heads 16"
ALL=$SHAPE
ALL+=" --seq-length 2048"
ALL+=
K=$((1099511627776*1048576))
K=$((K+K+K)) L=-99999999999999999999 M=$(($L))
python train.py $ALL --vocab-size 50257 --micro-batch-size 1 --global-batch-size 8
S
row "$T/value.sh" --gpus 8 --gpu h100
has layers=24 hidden=2048 seq=2048

# layout TEXT [OPTION...]: of nine layers on three stages.
layout() {
    echo "torchrun --nproc-per-node=3 --nnodes=1 train.py --num-layers 9 --hidden-size 2048 --num-attention-heads 16
        --seq-length 2048 --vocab-size 50257 --micro-batch-size 1 --global-batch-size 12 --bf16
        --pipeline-model-parallel-size 3 --pipeline-model-parallel-layout '$1' ${*:2}" |
        tr '\n' ' ' >"$T/layout.sh"
    row "$T/layout.sh" --gpu a100
}
layout "Et|t*3|tt*4L"
is "d['row']['notes'].endswith('; partition 0, 1, 4, 9') and d['row']['vpp'] == '1'"
! grep -q unlike "$T/err"
result $? "the split is known" "$T/err"
layout '[["embedding", "decoder"], ["decoder", "decoder", "decoder"], ["decoder", "decoder", "decoder", "decoder", "decoder", "loss"]]'
is "d['row']['notes'].endswith('; partition 0, 1, 4, 9')"
layout "Et|tt|t|t*2|t|ttL" # two chunks a stage
is "d['row']['notes'].endswith('; partition 0, 1, 3, 4, 6, 7, 9') and d['row']['vpp'] == '2'"
# The embedding and the loss as layers: 9 and 2 are no multiple of 3, 9 and 0 are.
plain() { sed "s/--pipeline-model-parallel-layout '[^']*'/$*/" "$T/layout.sh" >"$T/plain.sh"; }
plain --num-layers 10 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
row "$T/plain.sh" --gpu a100
is "d['row']['notes'].endswith('; partition 0, 3, 7, 10')"
plain --num-layers 11 --account-for-embedding-in-pipeline-split --num-layers-per-virtual-pipeline-stage 2
row "$T/plain.sh" --gpu a100
is "d['row']['notes'].endswith('; partition 0, 1, 3, 5, 7, 9, 11') and d['row']['vpp'] == '2'"
# What cannot be is refused with what was expected.
refused() { # PATTERN LAYOUT
    sed "s/-layout '[^']*'/-layout '$2'/" "$T/layout.sh" >"$T/refused.sh"
    expect 1 "refuses the layout $2" "refused.sh: line 1: pipeline-model-parallel-layout .*: $1" \
        $L import-job "$T/refused.sh" --gpu a100 --no-plan
}
refused "expected the model's 9 layers, found 8" "Ettt|ttt|tt"
refused "expected E, t, m and L" "Et|t|x|L"
refused "expected E, t, m and L" '[["embedding"], ["encoder"], ["loss"]]'
refused "expected as many chunks as the 3 stages have, found 4" "Et|tt|ttt|tttL"
refused "expected E, t, m and L" '[["decoder"], ["decoder"]'
refused "a stage without layers" "E|tttt|tttttL"
plain --account-for-loss-in-pipeline-split
expect 1 "refuses layers that do not divide with the loss" "account-for-loss-in-pipeline-split true: expected layers that fill 3 stages" \
    $LINKWISE import-job "$T/plain.sh" --gpu a100 --no-plan

# Two jobs in one log are two rows; the estimate is of the last.
{ cat $F/llama-8b.log; sed 's/\(micro_batch_size \.*\) 2/\1 1/; s/(ms): 8/(ms): 9/' $F/llama-8b.log; } >"$T/two.log"
$L import-job $F/llama-8b.sh "$T/two.log" --no-plan -o "$T/two.csv" >"$T/out" 2>"$T/err"
result $? "reads a log of two jobs" "$T/err"
grep -q 'another run begins in this log (number 2)' "$T/err" && grep -q 'measured 9.7' "$T/out" &&
    [ "$(wc -l <"$T/two.csv")" = 3 ]
result $? "two rows, and it is said" "$T/two.csv"

# A log that was cut before the first step.
head -14 $F/llama-8b.log >"$T/cut.log"
row $F/llama-8b.sh "$T/cut.log"
is "d['measured']['step_s'] is None and d['measured']['lines'] == 0"
grep -q "no line with a step's time, as of a log that was cut" "$T/err"
result $? "a cut log is said" "$T/err"
{ cat "$T/cut.log"; echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"; } >"$T/oom.log"
row $F/llama-8b.sh "$T/oom.log"
has oom=1

# ---- the others ----
row $F/titan-8b.toml $F/titan-8b.log
has model=llama-3-8b gpus=8 zero=3 dp=8 precision=fp8 recompute=selective micro_batch=2 \
    global_batch=16 seq=8192 gpu="NVIDIA H100" framework=torchtitan peak_mem_gb=57.02 mfu=0.4749
is "abs(d['measured']['step_s'] - 8192 * 16 / 8 / 8110) < 1e-4"
is "[u['option'] for u in d['unknown']] == ['parallelism.enable_cpu_fsdp']"
sed 's/= 8192/= 8_192/' $F/titan-8b.toml >"$T/joined.toml"
row "$T/joined.toml" $F/titan-8b.log
has seq=8192
sed 's/^TP=2/declare -ir TP=2/' $F/llama-8b.sh >"$T/declared.sh"
row "$T/declared.sh" --gpu h100
has tp=2
row $F/titan-8b.toml $F/titan-8b.log
! grep -q "no line with a step's time" "$T/err"
result $? "tokens a second are its time" "$T/err"
row $F/nanotron-1b.yaml $F/nanotron-1b.log
has layers=16 hidden=2048 kv_heads=32 vocab=131072 gpus=8 tp=2 dp=4 sp=1 zero=1 micro_batch=4 \
    global_batch=256 recompute=none framework=nanotron iter_time_s=3.91
is "d['model']['tie_word_embeddings']"
is "[(u['line'], u['option']) for u in d['unknown']] == [(40, 'parallelism.tensor_offload')]"
row $F/ds_config.json $F/mistral/config.json $F/ds.log --seq 4096 --gpu a100-sxm4-80g
has layers=32 ffn=14336 gpus=8 zero=3 micro_batch=2 global_batch=64 framework=deepspeed peak_mem_gb=54.25
is "abs(d['measured']['step_s'] - 64 / 7.35) < 0.01"
is "d['unknown'] == [] and 'offload' not in d['config']"
grep -q "offload_param on cpu without offload_optimizer: not estimated" "$T/err"
result $? "weights on the host without the optimizer are told" "$T/err"
sed 's/"offload_param": {"device"/"zero_hpz_partition_size": 8, "offload_optimizer": {"ratio": 0.4, "device"/' \
    $F/ds_config.json >"$T/parts.json"
row "$T/parts.json" $F/mistral/config.json $F/ds.log --seq 4096 --gpu a100-sxm4-80g
is "d['unknown'] == [] and d['config']['offload'] == 'optimizer'"
grep -q "ratio 0.4: estimated as if" "$T/err" && grep -q "takes 0.25 bytes a parameter" "$T/err"
result $? "a part of the optimizer's state on the host and a second copy of the weights are told" "$T/err"
sed -i 's/"ratio": 0.4/"ratio": 1/; s/_size": 8/_size": 1/' "$T/parts.json"
row "$T/parts.json" $F/mistral/config.json $F/ds.log --seq 4096 --gpu a100-sxm4-80g
is "d['unknown'] == []"
! grep -q "ratio\|hpz" "$T/err"
result $? "as they are by default nothing is said of them" "$T/err"
# What travels, and how much is there at once: DeepSpeed's own words, its defaults, Hugging Face's "auto".
zero() { # MEMBERS of zero_optimization, others
    printf '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "zero_optimization": {%s}%s}\n' "$1" "$2" >"$T/zero.json"
    row "$T/zero.json" $F/mistral/config.json --seq 4096 --gpus 8 --gpu a100-sxm4-80g
}
zero '"stage": 3, "stage3_max_live_parameters": 2e8, "reduce_bucket_size": "auto", "overlap_comm": false' ', "bf16": {"enabled": true}'
is "'overlap-comm=false; communication-data-type=bf16; live-parameters=200000000; reduced-parameters=16777216' in d['row']['notes'] and d['unknown'] == []"
zero '"stage": 2, "allgather_bucket_size": 2e8' ', "bf16": {"enabled": true}, "communication_data_type": "fp32"'
is "'overlap-comm=false; communication-data-type=fp32; bucket-gb=1.4' in d['row']['notes']"
zero '"stage": 1, "overlap_comm": true' ', "fp16": {"enabled": true}'
is "'communication-data-type=fp16' in d['row']['notes'] and 'bucket' not in d['row']['notes']"
zero '"stage": 1' ', "fp16": {"enabled": false}, "bf16": {"enabled": false}, "communication_data_type": "fp16"'
has precision=fp32
grep -q "communication_data_type fp16 of a job in fp32" "$T/err"
result $? "another type in fp32 is told" "$T/err"
# Hugging Face's Trainer: a script on FSDP, on DeepSpeed with its "auto", LLaMA-Factory's YAML.
trainer() { # OPTIONS...
    printf 'torchrun --nproc_per_node 8 train.py --model_name_or_path mistralai/Mistral-7B-v0.1 \\\n' >"$T/trainer.sh"
    printf -- '--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --model_max_length 2048 --learning_rate 2e-5 %s\n' "$*" >>"$T/trainer.sh"
}
trainer '--bf16 True --fsdp "full_shard auto_wrap" --gradient_checkpointing True'
row "$T/trainer.sh" --gpu a100-sxm4-80g
has layers=32 gpus=8 dp=8 zero=3 micro_batch=2 global_batch=128 precision=bf16-mixed recompute=full framework=transformers
is "'optim=adamw_torch_fused' in d['row']['notes'] and d['unknown'] == []"
grep -q "no optim is stated: adamw_torch_fused" "$T/err"
result $? "the optimizer that today's release takes is told" "$T/err"
printf '***** Running training *****\n  Gradient Accumulation steps = 8\n%s\n' "{'train_runtime': 9.1, 'train_samples_per_second': 32.0}" >"$T/trainer.log"
row "$T/trainer.sh" "$T/trainer.log" --gpu a100-sxm4-80g
has framework=transformers zero=3
is "d['measured']['step_s'] == 4 and 'communication' not in d['row']['notes']"
trainer '--bf16 --fsdp "shard_grad_op offload" --optim adamw_torch --use_peft --lora_r 8 --lora_dropout 0.05'
row "$T/trainer.sh" --gpu a100-sxm4-80g
has zero=2 recompute=none
is "'optim=adamw_torch;' in d['row']['notes'] and 'offload=all' in d['row']['notes'] and 'use-lora=true; lora-dropout=0.05' in d['row']['notes']"
! grep -q optim "$T/err"
result $? "... and one that is stated is not" "$T/err"
trainer '--bf16 True --deepspeed zero.json'
printf '{"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}' >"$T/zero.json"
row "$T/trainer.sh" "$T/zero.json" --gpu a100-sxm4-80g
has zero=3 micro_batch=2 precision=bf16 framework=deepspeed
is "'communication-data-type=bf16; reduced-parameters=16777216' in d['row']['notes'] and 'optim' not in d['row']['notes']"
printf 'model_name_or_path: mistralai/Mistral-7B-v0.1\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\ncutoff_len: 2048\nbf16: true\n' >"$T/factory.yaml"
row "$T/factory.yaml" --gpus 2 --gpu a100-sxm4-80g
has zero=0 seq=2048 global_batch=16 framework=transformers
is "'use-lora=true' in d['row']['notes'] and d['memory']['peak_bytes'] < 5 * 7.24e9" # adapters: no states of 16 bytes
# What Trainers and accelerate launch say in files of their own.
hf() { # FORMAT WORDS [OPTION...]: a YAML or JSON file of a Trainer with these besides
    local format=$1 words=$2
    shift 2
    if [ "$format" = json ]; then
        printf '{"model_name_or_path": "mistralai/Mistral-7B-v0.1", "per_device_train_batch_size": 2, "max_seq_length": 2048, "bf16": true, "optim": "adamw_torch", %s}\n' "$words"
    else
        printf 'model_name_or_path: mistralai/Mistral-7B-v0.1\nper_device_train_batch_size: 2\nmax_seq_length: 2048\noptim: adamw_torch\n%b' "$words"
    fi >"$T/hf.$format"
    row "$T/hf.$format" --gpus 16 --gpu a100-sxm4-80g "$@"
}
told() { # PATTERN: a warning
    grep -q -- "$1" "$T/err"
    result $? "tells: $1" "$T/err"
}
silent() { # PATTERN: no such warning
    ! grep -q -- "$1" "$T/err"
    result $? "does not tell: $1" "$T/err"
}
hf json '"fsdp": ["full_shard", "auto_wrap"]' # a list is words
has zero=3 framework=transformers
hf json '"fsdp": ["shard_grad_op"], "none": [], "other": [{"load": [1, 2]}]'
has zero=2
is "[(u['option'], u['value']) for u in d['unknown']] == [('other.0.load', '[1, 2]')]"
# accelerate config's file: both versions of FSDP, DeepSpeed's stage without its file.
accelerate() { # TYPE LINES
    hf yaml "distributed_type: $1\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 8\n$2"
}
accelerate FSDP 'fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n  fsdp_offload_params: true\n  fsdp_activation_checkpointing: true\n  fsdp_cpu_ram_efficient_loading: true\n'
has zero=3 recompute=full precision=bf16-mixed gpus=8 gpus_per_node=4 framework=transformers
is "'offload=all' in d['row']['notes'] and d['unknown'] == []"
accelerate FSDP 'fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n  fsdp_sharding_strategy: FULL_SHARD\n'
has zero=2 recompute=none
accelerate FSDP 'fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_reshard_after_forward: false\n  fsdp_offload_params: false\n'
has zero=3
is "'offload' not in d['row']['notes']"
accelerate FSDP 'fsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n'
has zero=3
is "'shard=4' in d['row']['notes']" # GPUs of a node
accelerate FSDP 'fsdp_config:\n  fsdp_sharding_strategy: NO_SHARD\n'
has zero=0
silent fsdp
accelerate DEEPSPEED 'deepspeed_config:\n  gradient_accumulation_steps: 4\n  offload_optimizer_device: cpu\n  offload_param_device: none\n  zero3_init_flag: true\n  zero_stage: 3\n'
has zero=3 global_batch=64 framework=deepspeed precision=bf16
is "'offload=optimizer' in d['row']['notes'] and d['unknown'] == []"
accelerate DEEPSPEED 'deepspeed_config:\n  zero_stage: 1\n'
has zero=1
accelerate DEEPSPEED
has zero=2
told "nothing says DeepSpeed's stage: ZeRO 2"
accelerate MULTI_GPU 'deepspeed_config: {}\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n'
has zero=0 framework=transformers # by the type of the job
silent distributed_type
accelerate MEGATRON_LM
told "distributed_type MEGATRON_LM is not understood"
printf 'accelerate launch --use_deepspeed --zero_stage 3 --num_processes 8 train.py --model_name_or_path mistralai/Mistral-7B-v0.1 --per_device_train_batch_size 2 --bf16 --max_seq_length 2048' >"$T/launch.sh"
row "$T/launch.sh" --gpu a100-sxm4-80g
has zero=3 framework=deepspeed
# What is not understood is no reason for DDP; "hybrid" needs the size of a node.
hf yaml 'fsdp: warp_shard\n'
has zero=3
told "fsdp warp_shard says no way of sharding"
hf yaml 'fsdp_config:\n  weights_of_tomorrow: 7\n'
has zero=3
is "[u['option'] for u in d['unknown']] == ['fsdp_config.weights_of_tomorrow']"
hf yaml 'fsdp: hybrid_shard\nbf16: true\n'
has zero=3
told "hybrid sharding, and nothing says the GPUs of a node"
# An empty word turns nothing on, as in a dump of all arguments.
for none in '""' null '[]' '"None"' false; do
    hf json "\"fsdp\": $none, \"deepspeed\": $none, \"fsdp_config\": {\"min_num_params\": 0, \"xla\": false}"
    has zero=0 framework=transformers
done
trainer '--bf16 True --fsdp "" --deepspeed "" --optim adamw_torch'
row "$T/trainer.sh" --gpu a100-sxm4-80g
has zero=0 framework=transformers
hf yaml 'bf16: ""\nfp16: ""\ngradient_checkpointing: "None"\nstrange_thing: "none"\nmixed_precision: fp8\n' --gpu h100
has precision=fp8 recompute=none
is "d['unknown'] == []"
hf yaml 'bf16: ""\nfp16: ""\n'
has precision=fp32
# DeepSpeed's file that is named and not given; its words in place.
hf yaml 'bf16: true\ndeepspeed: configs/zero1.json\n'
has zero=3 framework=deepspeed
told "deepspeed configs/zero1.json is not among the files: ZeRO 3 is assumed"
trainer '--bf16 True --deepspeed zero.json'
row "$T/trainer.sh" "$T/zero.json" --gpu a100-sxm4-80g
silent "not among the files"
hf json '"deepspeed": {"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true}}'
has zero=1 framework=deepspeed
is "'offload=optimizer' in d['row']['notes'] and d['unknown'] == []"
# Types of numbers by any of their words.
trainer '--torch_dtype bfloat16 --deepspeed zero.json'
row "$T/trainer.sh" "$T/zero.json" --gpu a100-sxm4-80g
has precision=bf16 zero=3
is "'communication-data-type=bf16' in d['row']['notes']"
trainer '--torch_dtype float8_e4m3fn --optim adamw_torch'
row "$T/trainer.sh" --gpu a100-sxm4-80g
has precision=fp32
told "dtype float8_e4m3fn is not known"
zero '"stage": 2' ', "bf16": {"enabled": true}, "communication_data_type": "FP32", "data_types": {"grad_accum_dtype": "fp16"}'
is "'communication-data-type=fp32' in d['row']['notes'] and 'grad-reduce-in-bf16=true' in d['row']['notes']"
zero '"stage": 2' ', "bf16": {"enabled": true}, "communication_data_type": "int7", "data_types": {"grad_accum_dtype": "torch.float32"}'
is "'communication-data-type=bf16' in d['row']['notes'] and 'grad-reduce-in-bf16=false' in d['row']['notes']"
told "communication_data_type int7 is not known"
# Axolotl's optimizer; what adapters leave frozen in few bits; optimizers that keep less.
axolotl() { # LINES
    printf 'base_model: mistralai/Mistral-7B-v0.1\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nsequence_len: 4096\nbf16: auto\noptimizer: adamw_torch_fused\n%b' "$1" >"$T/axolotl.yaml"
    row "$T/axolotl.yaml" --gpus 8 --gpu a100-sxm4-80g
}
axolotl 'adapter: lora\n'
silent "no optim is stated"
is "'optim=adamw_torch_fused' in d['row']['notes'] and 'frozen' not in d['row']['notes'] and d['unknown'] == []"
cp "$T/doc.json" "$T/lora.json"
axolotl 'adapter: qlora\nload_in_4bit: true\n'
is "'frozen-weights=nf4-dq' in d['row']['notes'] and d['unknown'] == []"
is "d['memory']['peak_bytes'] < json.load(open('$T/lora.json'))['memory']['peak_bytes'] - 7e9" # of 14.5e9
axolotl 'adapter: lora\nload_in_8bit: true\nload_in_4bit: false\n'
is "'frozen-weights=bnb.int8' in d['row']['notes']"
trainer '--bf16 --use_peft --load_in_4bit --optim paged_adamw_8bit'
row "$T/trainer.sh" --gpu a100-sxm4-80g
is "'frozen-weights=nf4' in d['row']['notes'] and 'nf4-dq' not in d['row']['notes']"
hf yaml 'finetuning_type: lora\nquantization_bit: 4\ndouble_quantization: false\n'
is "d['row']['notes'].count('nf4') == 1 and 'nf4-dq' not in d['row']['notes']"
hf yaml 'finetuning_type: lora\nquantization_bit: 3\n'
told "frozen weights of 3 bits"
optimizer() { # NAME [OPTION...]
    trainer "--bf16 --fsdp full_shard --optim $*"
    row "$T/trainer.sh" --gpu a100-sxm4-80g
}
optimizer adamw_torch_4bit
told "the optimizer is adamw_torch_4bit: the estimate has Adam's states in full"
cp "$T/doc.json" "$T/full.json"
optimizer paged_adamw_8bit # which a runs file knows
silent "Adam's states"
is "d['memory']['peak_bytes'] < json.load(open('$T/full.json'))['memory']['peak_bytes']"
optimizer adafactor
silent "Adam's states"
is "d['memory']['peak_bytes'] < json.load(open('$T/full.json'))['memory']['peak_bytes']"
optimizer ademamix
told "the optimizer is ademamix: the estimate has Adam's states"
trainer '--bf16 True --deepspeed zero.json --optim muon'
row "$T/trainer.sh" "$T/zero.json" --gpu a100-sxm4-80g
told "the optimizer is muon: the estimate has Adam's states"
# Limits that no row can say, and those that are none.
zero '"stage": 3, "stage3_max_live_parameters": 1e13, "reduce_bucket_size": 1e15' ', "bf16": {"enabled": true}'
is "'live-parameters=100000000000; reduced-parameters=100000000000' in d['row']['notes']"
zero '"stage": 3, "stage3_max_live_parameters": true, "reduce_bucket_size": -1' ', "bf16": {"enabled": true}'
is "'live-' not in d['row']['notes'] and 'reduced-' not in d['row']['notes']"
told "zero_optimization.stage3_max_live_parameters true: expected a number from 0"
told "zero_optimization.reduce_bucket_size -1: expected a number from 1"
zero '"stage": 2, "reduce_bucket_size": 1e18, "allgather_bucket_size": 1e18' ', "bf16": {"enabled": true}'
is "'bucket-gb=400' in d['row']['notes']"
# A value cannot begin other notes of the row.
optimizer '"adamw_torch; offload=all; shard=2"' '--use_peft --lora_dropout "0.1; zero=1"'
is "'offload' not in d['row']['notes'] and 'shard=' not in d['row']['notes'] and 'zero=' not in d['row']['notes']"
told "optim is \"adamw_torch; offload=all; shard=2\", with a ';'"
# YAML by its content, on standard input too; a script that writes such YAML stays one.
$L import-job --no-plan --json - --gpus 8 --gpu a100-sxm4-80g <"$T/axolotl.yaml" >"$T/doc.json" 2>"$T/err"
result $? "reads Axolotl's YAML from standard input" "$T/err"
has micro_batch=2 seq=4096
{ printf 'cat >x.yaml <<E\nmodel_name_or_path: other\nE\n'; cat "$T/trainer.sh"; } >"$T/heredoc.sh"
row "$T/heredoc.sh" "$T/zero.json" --gpu a100-sxm4-80g
has layers=32 gpus=8
# What attention runs by LLaMA-Factory's and Axolotl's words; how checkpointing is done is of no matter.
hf yaml 'flash_attn: fa2\n'
has attention=flash
hf yaml 'flash_attn: disabled\n'
has attention=eager
hf yaml 'flash_attention: true\ngradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false\n'
has attention=flash recompute=full
is "d['unknown'] == []"
# Whole files of such jobs.
row $F/trainer.sh $F/accelerate.yaml --gpu h100
has zero=3 recompute=full gpus=16 gpus_per_node=8 global_batch=128 framework=transformers
is "d['unknown'] == [] and 'frozen-weights=nf4' in d['row']['notes']"
row $F/trainer.json --gpus 8 --seq 2048 --gpu h100
has zero=2 precision=bf16 framework=deepspeed
is "d['unknown'] == [] and 'offload=optimizer; overlap-comm=false; communication-data-type=fp32; bucket-gb=0.433554432' in d['row']['notes']"
row $F/axolotl.yaml --gpus 8 --gpu h100
has zero=3 precision=bf16-mixed framework=transformers
is "d['unknown'] == [] and all(w in d['row']['notes'] for w in ('offload=all', 'optim=paged_adamw_8bit', 'frozen-weights=nf4-dq'))"
row $F/nemo.yaml $F/nemo.log --gpu h100
has layers=40 ffn=13824 seq=4096 gpus=32 tp=4 pp=4 dp=2 sp=1 zero=1 recompute=selective \
    precision=bf16 framework=nemo
is "d['measured']['lines'] == 2" # the last line has no end
is "[u['option'] for u in d['unknown']] == ['model.cpu_offloading']"
# What changes time or memory is never passed over in silence.
sed 's/^model:/&\n  peft:\n    peft_scheme: lora\n  enable_cuda_graph: true/' $F/nemo.yaml >"$T/nemo.yaml"
row "$T/nemo.yaml" $F/nemo.log --gpu h100
is "[u['option'] for u in d['unknown']] == ['model.peft.peft_scheme', 'model.cpu_offloading']"
sed 's/--optimizer-cpu-offload/& --hybrid-override-pattern M-M* --main-grads-dtype bf16/' $F/llama-8b.sh >"$T/hybrid.sh"
row "$T/hybrid.sh" $F/llama-8b.log
is "[u['option'] for u in d['unknown']] == ['hybrid-override-pattern']"
row $F/bridge.yaml --gpus 8 --gpu h100
has model=llama-3-8b cp=2 dp=4 zero=1 framework=megatron-bridge

# ---- shapes of other jobs ----
# A command in a variable, as of BigScience's scripts: nothing of it is lost.
cat >"$T/bloom.sh" <<'S'
#!/bin/bash
TP=4
GPT_ARGS=" \
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \

    --pad-vocab-size-to 50432 --micro-batch-size 1 --global-batch-size 64 --bf16 \
    --checkpoint-activations --embed-layernorm --optimizer sgd \
    "
export LAUNCHER="python -u -m torch.distributed.launch --nproc_per_node 8 --nnodes 2"
export CMD=" \
    `pwd`/pretrain_gpt.py \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \
    $GPT_ARGS \
    "
bash -c '$LAUNCHER --node_rank 0 $CMD' 2>&1 | tee log
S
row "$T/bloom.sh" --gpu a100
has tp=4 pp=2 dp=2 vocab=50432 recompute=full gpus=16
is "[u['option'] for u in d['unknown']] == ['embed-layernorm']"
grep -q "the optimizer is sgd: the estimate has Adam's states" "$T/err"
result $? "an optimizer that is not Adam is said" "$T/err"
# Experts' layers in quotes, a layout with groups, options of a program without .py.
moe() { # OPTION...: a small mixture of experts
    printf 'megatron pt --num_layers 8 --hidden_size 1024 --num_attention_heads 8 --ffn_hidden_size 4096 \\\n'
    printf ' --num_experts 8 --moe_ffn_hidden_size 512 --moe_router_topk 2 --max_length 2048 --bf16 true \\\n'
    printf ' --tokenizer_model unsloth/DeepSeek-V3 --micro_batch_size 1 --global_batch_size 32 %s\n' "$*"
}
moe "--moe-layer-freq \"'([0]*2+[1]*6)'\" --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(ttt|)*2tL'" >"$T/moe.sh"
row "$T/moe.sh" --gpus 8 --gpu h100
has vocab=129280 seq=2048 pp=4
is "'moe-layer-freq=([0]*2+[1]*6)' in d['row']['notes'] and 'partition 0, 1, 4, 7, 8' in d['row']['notes']"
moe "--moe_layer_freq '[0]*1+[1]*7'" >"$T/moe.sh"
row "$T/moe.sh" --gpus 8 --gpu h100
is "'moe-layer-freq=([0]*1+[1]*7)' in d['row']['notes']"
# Megatron Bridge's whole configuration, as it is saved: types, lists, a recipe of precision in parts.
cat >"$T/saved.yaml" <<'Y'
_target_: megatron.bridge.training.config.ConfigContainer
ddp:
  use_distributed_optimizer: true
  param_name_patterns_for_fp32_local_accumulation: []
mixed_precision:
  _target_: megatron.bridge.training.mixed_precision.MixedPrecisionConfig
  bf16: true
  fp8: hybrid
  params_dtype:
    _call_: false
    _target_: torch.bfloat16
model:
  activation_func:
    _call_: false
    _target_: torch.nn.functional.silu
  bf16: true
  cpu_offloading: false
  cpu_offloading_activations: true
  cuda_graph_impl: none
  ffn_hidden_size: 4096
  fp8: null
  gated_linear_unit: true
  hidden_size: 1024
  moe_ffn_hidden_size: 512
  moe_layer_freq:
  - 0
  - 1
  - 1
  - 1
  moe_router_topk: 2
  mtp_num_layers: 1
  normalization: RMSNorm
  num_attention_heads: 8
  num_layers: 4
  num_moe_experts: 8
  num_layers_in_first_pipeline_stage: 1
  pipeline_model_parallel_size: 2
  recompute_granularity: selective
  recompute_modules:
  - mlp
  - core_attn
  seq_length: 2048
  vocab_size: 32000
optimizer:
  exp_avg_dtype:
    _call_: false
    _target_: torch.bfloat16
  exp_avg_sq_dtype:
    _call_: false
    _target_: torch.bfloat16
  use_precision_aware_optimizer: true
train:
  global_batch_size: 32
  micro_batch_size: 1
Y
row "$T/saved.yaml" --gpus 8 --gpu h100
has precision=fp8 zero=1 "recompute=mlp core_attn" pp=2
is "all(w in d['row']['notes'] for w in ('moe-layer-freq=([0]*1+[1]*3)', 'optimizer-bytes=6', 'decoder-first-pipeline-num-layers=1'))"
is "d['unknown'] == [] and 'mtp-num-layers=1' in d['row']['notes']"
sed 's/mtp_num_layers: 1/mtp_num_layers: 99/' "$T/saved.yaml" >"$T/many.yaml"
row "$T/many.yaml" --gpus 8 --gpu h100
grep -q 'mtp-num-layers 99: expected 0 to [0-9]*; none is counted' "$T/err"
result $? "modules of multi-token prediction beyond reason"
sed '/^mixed_precision:/,/^model:/{/^model:/!d}; /bf16: true/d' "$T/saved.yaml" >"$T/silent.yaml"
row "$T/silent.yaml" --gpus 8 --gpu h100
has precision=bf16
sed 's/dtype: bfloat16/dtype: float8/' $F/nanotron-1b.yaml >"$T/fp8.yaml"
row "$T/fp8.yaml" --gpu h100
has precision=fp8
printf '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 1},
"bf16": {"enabled": false}, "fp16": {"enabled": false}, "tensor_parallel": {"autotp_size": 2},
"expert_parallel": {"enabled": true, "autoep_size": 4}}' >"$T/ep.json"
$LINKWISE plan "4x8 h100-sxm5-80g intra:370 inter:48" mixtral-8x7b --seq 2048 --global-batch 32 --pp 4 --json 2>/dev/null |
    model_of >"$T/config.json"
row "$T/ep.json" "$T/config.json" --seq 2048 --gpus 8 --gpu h100
has ep=4 tp=2 precision=fp32 framework=deepspeed
# Beside Ulysses another member says in which type gradients travel; fp32 if none does.
ulysses() { # MEMBER...: with them; what travels
    printf '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "sequence_parallel_size": 4,
"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "communication_data_type": "bf16"%s}' "$1" >"$T/sp.json"
    row "$T/sp.json" "$T/config.json" --seq 2048 --gpus 8 --gpu h100
    is "'communication-data-type $2' in d['row']['notes'].replace('=', ' ')"
}
ulysses '' fp32
ulysses ', "seq_parallel_communication_data_type": "bf16"' bf16
# TorchTitan's stages: so many layers in each part, embedding and head counted as layers; and by name.
titan() { # LINE...: of [parallelism]
    printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 8\nseq_len = 4096\n[optimizer]\nname = "AdamW"\n'
    printf '[parallelism]\npipeline_parallel_degree = 4\n'
    printf '%s\n' "$@"
}
titan 'pipeline_parallel_layers_per_stage = 9' >"$T/stages.toml"
row "$T/stages.toml" --gpus 8 --gpu h100
is "'partition 0, 8, 17, 25, 32' in d['row']['notes']"
titan 'pipeline_parallel_layers_per_stage = 4' 'pipeline_parallel_first_stage_less_layers = 0' \
    'pipeline_parallel_last_stage_less_layers = 0' 'pipeline_parallel_schedule = "Interleaved1F1B"' 'fsdp_reshard_after_forward = "never"' >"$T/stages.toml"
row "$T/stages.toml" --gpus 8 --gpu h100
has vpp=2 zero=2

# ---- what is written is read again ----
$L import-job $F/llama-8b.sh $F/llama-8b.log --no-plan -o "$T/runs.csv" >/dev/null 2>"$T/err"
result $? "writes a runs file" "$T/err"
$L import-job $F/titan-8b.toml $F/titan-8b.log --no-plan --append "$T/runs.csv" >/dev/null 2>"$T/err"
result $? "adds to it" "$T/err"
expect 0 "validate reads it" "2 rows, 2 used, 0 skipped" $L validate "$T/runs.csv"
$L import-job --no-plan --json $F/llama-8b.sh $F/llama-8b.log >"$T/doc.json" 2>/dev/null
$L validate "$T/runs.csv" --per-row - >"$T/per-row.csv"
in_python "validate estimates what import-job does" && {
    python3 - "$T" >"$T/why" 2>&1 <<'P'
import csv, json, sys
row = next(csv.DictReader(open(sys.argv[1] + "/per-row.csv")))
d = json.load(open(sys.argv[1] + "/doc.json"))
assert abs(float(row["est_iter_time_s"]) / d["estimate"]["step_s"] - 1) < 1e-3, row
assert abs(float(row["est_peak_mem_gb"]) * 2**30 / d["memory"]["peak_bytes"] - 1) < 1e-3, row
P
    result $? "validate estimates what import-job does" "$T/why"
}
expect 0 "calibrate fits a log's runs" "rows|used" $L calibrate "$T/two.csv" -o "$T/fitted.json"
expect 1 "--append refuses another header" "the header is not that" \
    $L import-job $F/bridge.yaml --gpus 8 --gpu h100 --no-plan --append $F/../../../examples/runs/bloom.csv
expect 2 "--output or --append" "leave out one of the two" $L import-job $F/bridge.yaml -o a --append b

# ---- emit and back ----
back() { # NAME MODEL OPTION...: a plan's Megatron arguments give its configuration again
    local name=$1 model=$2
    shift 2
    $L plan "4x8 h100-sxm5-80g intra:370 inter:48" "$model" --seq 4096 --global-batch 64 "$@" \
        -o "$T/plan.json" >/dev/null 2>&1 &&
        $L emit "$T/plan.json" --to megatron -d "$T/emit" >/dev/null
    model_of <"$T/plan.json" >"$T/config.json"
    $L import-job "$T/emit/megatron/args" "$T/config.json" --seq 4096 --no-plan --json \
        --cluster "4x8 h100-sxm5-80g intra:370 inter:48" >"$T/doc.json" 2>"$T/err"
    in_python "emit and back: $name" || return 0
    python3 - "$T" >"$T/why" 2>&1 <<'P'
import json, sys
plan, d = (json.load(open(sys.argv[1] + f)) for f in ("/plan.json", "/doc.json"))
own = d["config"]
for key in ("degrees", "micro_batch", "zero", "sequence_parallel", "recompute", "offload", "schedule"):
    assert plan.get(key) == own.get(key), (key, plan.get(key), own.get(key))
small = plan.get("optimizer_bytes")
assert not small or "optimizer-bytes=%d" % small in d["row"]["notes"], d["row"]["notes"]
assert d["row"]["global_batch"] == "64" and d["unknown"] == [], d["unknown"]
assert plan["model"] == d["model"]
assert abs(d["estimate"]["step_s"] / plan["estimate"]["default_order_step_s"] - 1) < 0.5
P
    result $? "emit and back: $name" "$T/why"
}
back "tensor and pipeline parallelism" llama-2-13b --tp 4 --pp 2 --dp 4
back "an interleaved pipeline" llama-2-70b --tp 8 --pp 4 --vpp 2 --recompute full:2
back "experts, modules, a small optimizer" mixtral-8x7b --ep 8 --recompute moe_act,layernorm --optimizer-bytes 6 --zero 1
back "the optimizer on the host" llama-2-13b --tp 4 --pp 2 --dp 4 --offload optimizer
back "layers that do not divide" llama-3.2-3b --tp 2 --pp 8
own() { # TARGET FILE OPTION...: the file holds model and sequence, too
    local target=$1 file=$2
    shift 2
    $L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-3-8b --seq 4096 --global-batch 64 "$@" -o "$T/plan.json" >/dev/null 2>&1 &&
        $L emit "$T/plan.json" --to "$target" -d "$T/emit" >/dev/null
    row "$T/emit/$target/$file" --gpus 32 --gpu h100
    in_python "emit and back: $target" || return 0
    python3 - "$T" >"$T/why" 2>&1 <<'P'
import json, sys
plan, d = (json.load(open(sys.argv[1] + f)) for f in ("/plan.json", "/doc.json"))
for key in ("degrees", "micro_batch", "zero", "sequence_parallel", "recompute", "schedule"):
    assert plan.get(key) == d["config"].get(key), (key, plan.get(key), d["config"].get(key))
for key in ("num_hidden_layers", "hidden_size", "num_key_value_heads", "intermediate_size", "vocab_size"):
    assert plan["model"][key] == d["model"][key], key
assert d["row"]["global_batch"] == "64" and d["row"]["seq"] == "4096" and d["unknown"] == [], d
P
    result $? "emit and back: $target" "$T/why"
}
own nemo overrides.yaml --tp 2 --pp 4 --recompute full
own torchtitan job.toml --profile torchtitan --zero 3 --tp 2 --pp 2 --schedule interleaved --vpp 2

# ---- the best change and plan ----
$L import-job $F/bridge.yaml --gpus 8 --gpu h100 --json >"$T/doc.json" 2>"$T/err"
result $? "looks for a change and a plan" "$T/err"
is "d['best_plan'] is None or (d['best_plan']['step_s'] < d['estimate']['step_s'] and d['best_plan']['degrees']['dp'] >= 1)"
sed 's/recompute_granularity: null/recompute_granularity: full/; s/context_parallel_size: 2/context_parallel_size: 1/' $F/bridge.yaml >"$T/slow.yaml"
expect 0 "a plan faster than full recomputation" "saves [0-9.]+ %" $L import-job "$T/slow.yaml" --gpus 8 --gpu h100
prints "^change +[a-z]" "^plan +tp" "^read " "^memory "

# ---- bad input ----
: >"$T/empty"
expect 1 "an empty file" "empty file; looked for: a command line or script of Megatron-LM" $L import-job "$T/empty"
expect 1 "a foreign file" "looked for: a command line or script of Megatron-LM" $L import-job README.md
expect 1 "a plan is no job" "looked for" $L import-job examples/clusters/h100-17.json
head -c 4096 /dev/zero >"$T/zeros"
expect 1 "bytes that are no text" "zeros: " $L import-job "$T/zeros"
expect 1 "what is missing is named" "nothing says the number of GPUs .--gpus N.; the GPU type" $L import-job $F/bridge.yaml
expect 1 "no model" "nothing says the model" $L import-job $F/ds_config.json --seq 1 --gpus 1 --gpu a100
expect 1 "a missing file" "nowhere.sh" $L import-job "$T/nowhere.sh"
printf 'a: &a [1]\nmodel:\n  num_layers: *a\n' >"$T/alias.yaml"
expect 1 "an alias" "alias.yaml: line 3: an alias" $L import-job "$T/alias.yaml"
printf '[model]\nname = {a = 1}\n' >"$T/brace.toml"
expect 1 "TOML that is not read" "brace.toml: line 2: tables in braces" $L import-job "$T/brace.toml"
{ echo 'A=--bf16'; for _ in $(seq 40); do echo 'A="$A $A"'; done; } >"$T/bomb.sh"
expect 1 "a variable that doubles" "too long|without an option" $L import-job "$T/bomb.sh"
expect 0 "files of two frameworks" "llama-8b.sh is of Megatron-LM, .*titan-8b.log of TorchTitan: are they" \
    $L import-job $F/llama-8b.sh $F/titan-8b.log --no-plan
! $LINKWISE import-job $F/llama-8b.sh $F/ds.log --gpu h100 --no-plan 2>&1 | grep "of one job"
result $? "... but Megatron-LM runs on DeepSpeed"
sed "s/^pipeline_parallel_degree.*/pipeline_parallel_degree = 8\npipeline_parallel_layers_per_stage = 8\npipeline_parallel_first_stage_less_layers = 30/" \
    $F/titan-8b.toml >"$T/less.toml"
expect 0 "a first stage of less than no layers" "make no 8 stages" \
    $L import-job "$T/less.toml" --gpus 8 --gpu h100 --no-plan
{ printf 'A="--bf16%*s"\n' 60000 ''; printf 'B=('; printf '"$A" %.0s' $(seq 1000); echo ')'; } >"$T/bomb.sh"
expect 1 "an array of long values" "too many" $L import-job "$T/bomb.sh"
moe "--pipeline-model-parallel-layout '$(printf '(t*0)*4096%.0s' $(seq 200))(t*9999999999)'" >"$T/layout.sh"
expect 1 "a layout that repeats nothing" "expected E, t, m and L" $L import-job "$T/layout.sh" --gpus 8 --gpu h100 --no-plan
printf -- '--num-layers 2 --x-\033[31m evil\033]0;t\007\n' >"$T/escape"
expect 1 "control characters are not printed" "nothing says" $L import-job "$T/escape"
! grep -q "$(printf '\033')" "$T/both"
result $? "... nor anywhere" "$T/both"
sed 's/global-batch-size 128/global-batch-size 127/' $F/llama-8b.sh >"$T/odd.sh"
expect 1 "a batch that does not divide" "do not divide" $L import-job "$T/odd.sh" --gpu h100
expect 2 "no file" "FILE is required" $L import-job
done_testing
