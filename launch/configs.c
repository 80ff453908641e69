/* Frameworks' own files with the plan's configuration (jobs/): which ones, and how a job takes
 * them.  Each derives its groups from the ranks in the plan's order. */
#include "launch/launch_private.h"

/* Of the ranks' GPU types the one whose units do least: frameworks are told one thing for all. */
static const struct topology_gpu_type *least_type (const struct launch_input *in)
{
    const struct topology_gpu_type *least = launch_node_of (in, 0)->type;

    for (int i = 1; i < in->plan->n_ranks; i++) {
        const struct topology_gpu_type *t = launch_node_of (in, i)->type;

        if (t->fp4_flop_per_s < least->fp4_flop_per_s)
            least = t;
    }
    return least;
}

/* The file, the way to start, then what the file cannot hold. */
static enum status write_config (const struct launcher *l, const struct launch_input *in,
                                 struct launch_files *f, struct text *readme,
                                 struct error *err)
{
    const struct jobs_priced by = {in->profile, least_type (in)};
    struct text file = {0}, beside = {0};
    enum status st = l->config (in->plan, &by, &file, &beside, err);

    if (st == ST_OK) {
        *launch_file (f, l->paths[0], 0644) = file;
        if (l->more)
            l->more (in, f);
        text_add (readme, "%s%s%s", l->how, beside.len ? "\n" : "", text_str (&beside));
    } else {
        text_free (&file);
    }
    text_free (&beside);
    return st;
}

enum status launch_write (const struct launcher *l, const struct launch_input *in,
                          struct launch_files *f, struct text *readme, struct error *err)
{
    return l->config ? write_config (l, in, f, readme, err)
                     : l->write (in, f, readme, err);
}

const struct launcher launch_megatron = {
    .target = {"megatron", "Megatron-LM arguments of the plan"},
    .readme = "megatron/README",
    .paths = {"megatron/args"},
    .config = jobs_megatron_write,
    .how =
        "Megatron-LM: add the plan's arguments to those of your model, behind any "
        "launcher\nabove.  Ranks are in its default order: leave "
        "--use-tp-pp-dp-mapping out.\n\n"
        "    LAUNCHER ... ./exec.sh python3 pretrain_gpt.py $(cat megatron/args) ...\n",
};

const struct launcher launch_nemo = {
    .target = {"nemo", "NeMo: overrides of a Megatron Bridge recipe (YAML)"},
    .readme = "nemo/README",
    .paths = {"nemo/overrides.yaml"},
    .optional = true,
    .config = jobs_nemo_write,
    .how = "NeMo on Megatron Bridge: give the plan's overrides to a pretraining script "
           "of its\nrecipes, behind any launcher above.\n\n"
           "    LAUNCHER ... ./exec.sh python3 PRETRAIN.py --config-file "
           "nemo/overrides.yaml\n",
};

const struct launcher launch_torchtitan = {
    .target = {"torchtitan", "TorchTitan job file of the plan (TOML)"},
    .readme = "torchtitan/README",
    .paths = {"torchtitan/job.toml"},
    .optional = true,
    .config = jobs_torchtitan_write,
    .how = "TorchTitan: add your data, optimizer and checkpoints to the plan's file, and "
           "start it\nbehind any launcher above.\n\n"
           "    LAUNCHER ... ./exec.sh python3 -m torchtitan.train --job.config_file "
           "torchtitan/job.toml\n",
};

/* A pipeline whose split DeepSpeed would not make: a module that does, with the plan's. */
static void planned_pipeline (const struct launch_input *in, struct launch_files *f)
{
    const struct workload_plan *p = in->plan;
    struct text stages = {0};

    if (p->config.deg.pp == 1 || jobs_deepspeed_splits (p))
        return;
    for (int i = 0; i < p->config.deg.pp; i++)
        text_add (&stages, "%s%d", i > 0 ? ", " : "", p->layers_per_stage[i]);
    launch_script_filled ("pipeline.py", "STAGES = [", text_str (&stages),
                          launch_file (f, "deepspeed-config/pipeline.py", 0644));
    text_free (&stages);
}

const struct launcher launch_deepspeed_config = {
    .target = {"deepspeed-config", "DeepSpeed ds_config of the plan (JSON)"},
    .readme = "deepspeed-config/README",
    .paths = {"deepspeed-config/ds_config.json", "deepspeed-config/pipeline.py"},
    .optional = true,
    .config = jobs_deepspeed_write,
    .more = planned_pipeline,
    .how = "DeepSpeed: add your optimizer to the plan's file, and give it to "
           "deepspeed.initialize.\n\n"
           "    LAUNCHER ... ./exec.sh python3 train.py --deepspeed "
           "deepspeed-config/ds_config.json\n",
};
