/* Frameworks' own files with the plan's configuration (jobs/): which ones, and how a job takes
 * them.  Each derives its groups from the ranks in the plan's order. */
#include "jobs/jobs.h"
#include "launch/launch_private.h"

static enum status write_megatron (const struct launch_input *in, struct launch_files *f,
                                   struct text *readme, struct error *err)
{
    struct text args = {0};

    TRY (jobs_megatron_write (in->plan, &args, err));
    *launch_file (f, "megatron/args", 0644) = args;
    text_add (readme,
              "Megatron-LM: add the plan's arguments to those of your model, behind any "
              "launcher\nabove.  Ranks are in its default order: leave "
              "--use-tp-pp-dp-mapping out.\n\n"
              "    LAUNCHER ... ./exec.sh python3 pretrain_gpt.py $(cat megatron/args) "
              "...\n");
    if (in->plan->job.precision == PREC_TF32)
        text_add (readme,
                  "\nThe plan's precision is TF32, which PyTorch takes when told: set\n"
                  "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1.\n");
    return ST_OK;
}

const struct launcher launch_megatron = {
    .target = {"megatron", "Megatron-LM arguments of the plan"},
    .readme = "megatron/README",
    .paths = {"megatron/args"},
    .write = write_megatron,
};

static enum status write_nemo (const struct launch_input *in, struct launch_files *f,
                               struct text *readme, struct error *err)
{
    struct text yaml = {0};

    TRY (jobs_nemo_write (in->plan, &yaml, err));
    *launch_file (f, "nemo/overrides.yaml", 0644) = yaml;
    text_add (
        readme,
        "NeMo on Megatron Bridge: give the plan's overrides to a pretraining script "
        "of its\nrecipes, behind any launcher above.\n\n"
        "    LAUNCHER ... ./exec.sh python3 PRETRAIN.py --config-file "
        "nemo/overrides.yaml\n");
    return ST_OK;
}

const struct launcher launch_nemo = {
    .target = {"nemo", "NeMo: overrides of a Megatron Bridge recipe (YAML)"},
    .readme = "nemo/README",
    .paths = {"nemo/overrides.yaml"},
    .optional = true,
    .write = write_nemo,
};

/* The file, the way to start, then what the file cannot hold. */
static enum status write_beside (enum status st, struct text *file, struct text *beside,
                                 const char *path, const char *how,
                                 struct launch_files *f, struct text *readme)
{
    if (st == ST_OK) {
        *launch_file (f, path, 0644) = *file;
        text_add (readme, "%s%s%s", how, beside->len ? "\n" : "", text_str (beside));
    } else {
        text_free (file);
    }
    text_free (beside);
    return st;
}

static enum status write_torchtitan (const struct launch_input *in,
                                     struct launch_files *f, struct text *readme,
                                     struct error *err)
{
    struct text toml = {0}, beside = {0};
    enum status st = jobs_torchtitan_write (in->plan, &toml, &beside, err);

    return write_beside (
        st, &toml, &beside, "torchtitan/job.toml",
        "TorchTitan: add your data, optimizer and checkpoints to the plan's file, and "
        "start it\nbehind any launcher above.\n\n"
        "    LAUNCHER ... ./exec.sh python3 -m torchtitan.train --job.config_file "
        "torchtitan/job.toml\n",
        f, readme);
}

const struct launcher launch_torchtitan = {
    .target = {"torchtitan", "TorchTitan job file of the plan (TOML)"},
    .readme = "torchtitan/README",
    .paths = {"torchtitan/job.toml"},
    .optional = true,
    .write = write_torchtitan,
};

static enum status write_deepspeed (const struct launch_input *in, struct launch_files *f,
                                    struct text *readme, struct error *err)
{
    struct text json = {0}, beside = {0};
    enum status st = jobs_deepspeed_write (in->plan, &json, &beside, err);

    return write_beside (
        st, &json, &beside, "deepspeed-config/ds_config.json",
        "DeepSpeed: add your optimizer to the plan's file, and give it to "
        "deepspeed.initialize or\nto Hugging Face's Trainer.\n\n"
        "    LAUNCHER ... ./exec.sh python3 train.py --deepspeed "
        "deepspeed-config/ds_config.json\n",
        f, readme);
}

const struct launcher launch_deepspeed_config = {
    .target = {"deepspeed-config", "DeepSpeed ds_config of the plan (JSON)"},
    .readme = "deepspeed-config/README",
    .paths = {"deepspeed-config/ds_config.json"},
    .optional = true,
    .write = write_deepspeed,
};
