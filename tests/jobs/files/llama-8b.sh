#!/bin/bash
#SBATCH --job-name=llama
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
OUT=${1:-"/data/out"}
GPUS_PER_NODE=8
NODES=${SLURM_NNODES:-2}
WORLD=$(($GPUS_PER_NODE * NODES))
TP=2
DTYPE="bf16"

MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096 --ffn-hidden-size 14336   # SwiGLU
    --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --swiglu --normalization RMSNorm --disable-bias-linear
    --untie-embeddings-and-output-weights
    --hidden-dropout 0.0 --attention-dropout 0.0
)
PRECISION=()
if [[ "$DTYPE" == "fp8" ]]; then
    PRECISION+=("--fp8-format hybrid" --fp8-param-gather)
else
    PRECISION+=(--bf16)
fi
TRAIN_ARGS="--micro-batch-size 1 --global-batch-size 128 \
 --lr 3e-4 --train-iters 100"

torchrun --nproc_per_node $GPUS_PER_NODE --nnodes "$NODES" pretrain_gpt.py \
    ${MODEL_ARGS[@]} $TRAIN_ARGS "${PRECISION[@]}" \
    --tensor-model-parallel-size $TP \
    --sequence-parallel \
    --use-distributed-optimizer --overlap-grad-reduce \
    --vocab-size 128256 \
    --optimizer-cpu-offload \
    --save "$OUT" --log-throughput
