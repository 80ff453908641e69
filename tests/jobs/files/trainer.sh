#!/bin/bash
accelerate launch --config_file accelerate.yaml train.py \
    --model_name_or_path mistralai/Mistral-7B-v0.1 --max_seq_length 2048 \
    --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True --fsdp "" \
    --gradient_checkpointing_kwargs '{"use_reentrant": false}' --optim adamw_torch \
    --use_peft --load_in_4bit --lora_dropout 0.05
