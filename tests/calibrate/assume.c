/* What rows leave out: the usual readings, weighed. */
#include "tests/lib/runs.h"

#include <math.h>

#include "base/units.h"
#include "calibrate/calibrate_private.h"

static double seconds_of (const struct calibrate_runs *r, double *open)
{
    struct workload_profile p;
    struct topology_cluster *c;
    struct error err = {""};
    double step_s;

    p = runs_profile (r);
    ok (calibrate_cluster (&r->run[0], &p, &c, &err), &err);
    ok (calibrate_step (&r->run[0], c, &p, &step_s, open, &err), &err);
    topology_cluster_destroy (c);
    return step_s;
}

/* An emptied cell: the estimate lies between those of its readings, with a spread; a stated one
 * has little. */
TEST (between)
{
    static const char *const cell[][4] = {
        {"framework=x", "recompute=", "recompute=full", "recompute=selective"},
        {"framework=x", "micro_batch=", "micro_batch=1", "micro_batch=2"},
        {"gpu=H100-SXM5-80GB", "precision=", "precision=bf16", "precision=fp8"}};

    for (int i = 0; i < 3; i++) {
        const char *framework = i == 2 ? "framework=nemo" : "framework=x";
        double step_s[3], open[3], weight = 0.0;

        for (int k = 0; k < 3; k++) {
            struct calibrate_runs r =
                ONE (cell[i][0], framework, cell[i][k + 1], "sp=1", "zero=1", "vpp=1");

            step_s[k] = seconds_of (&r, &open[k]);
            for (int w = 0; k == 0 && w < r.run[0].n_ways; w++)
                weight += r.run[0].way[w].weight;
            calibrate_runs_release (&r);
        }
        assert_true (fabs (weight - 1.0) < 1e-12);
        assert_true (step_s[0] < fmax (step_s[1], step_s[2]) &&
                     step_s[0] > fmin (step_s[1], step_s[2]));
        assert_true (open[0] > 2.0 * open[1] && open[0] > 2.0 * open[2]);
    }
}

/* Layers that take no longer than their launches leave the host's speed open. */
TEST (launches)
{
    double open[2];

    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r = i == 0 ? ONE ("framework=x")
                                         : ONE ("framework=x", "hidden=512", "heads=8",
                                                "kv_heads=8", "ffn=2048", "seq=512");

        seconds_of (&r, &open[i]);
        calibrate_runs_release (&r);
    }
    assert_true (open[0] < 0.01 && open[1] > 0.2 && open[1] < 0.7);
}

/* Of a source that a profile names its ways are known, but no micro-batch that a row leaves out:
 * without a pipeline it is the rank's whole batch, most likely. */
TEST (named)
{
    struct calibrate_runs known = ONE ("source=AlephAlpha_WANT23", "recompute="),
                          open =
                              ONE ("source=OneFlow_DLPerf_Megatron", "recompute=full",
                                   "gpu=V100", "gpu_mem_gb=16", "hidden=1024", "heads=16",
                                   "ffn=4096", "seq=1024", "pp=1", "micro_batch=");

    assert_int_equal (known.run[0].n_ways, 0);
    assert_int_equal (open.run[0].n_ways, 2);
    assert_int_equal (open.run[0].config.micro_batch, 64 / 8);
    assert_int_equal (open.run[0].way[0].micro_batch, 1);
    assert_int_equal (open.run[0].way[0].recompute, open.run[0].way[1].recompute);
    calibrate_runs_release (&known);
    calibrate_runs_release (&open);
}

/* What does not fit with the framework's way recomputes all, most likely. */
TEST (does_not_fit)
{
    struct calibrate_runs small = ONE ("framework=x", "recompute="),
                          large = ONE ("framework=x", "recompute=", "micro_batch=16");

    assert_int_equal (small.run[0].config.recompute, RECOMPUTE_SELECTIVE);
    assert_int_equal (large.run[0].config.recompute, RECOMPUTE_FULL);
    calibrate_runs_release (&small);
    calibrate_runs_release (&large);
}

/* Layers are recomputed where they do not fit, not where they merely fill the memory. */
TEST (fills)
{
    struct calibrate_runs r = ONE ("framework=x", "recompute=none");
    struct workload_profile p;
    char gb[32];

    p = runs_profile (&r);
    p.unknown = false; /* as usual, not as lean as may be */
    for (int i = 0; i < 2; i++) {
        struct calibrate_runs as;

        snprintf (gb, sizeof gb, "gpu_mem_gb=%.3f",
                  calibrate_need (&r.run[0], &p, MEMEST_LINKWISE) / UNITS_GIB /
                      (i == 0 ? 0.95 : 1.05));
        as = ONE ("framework=x", "recompute=", gb);
        assert_int_equal (as.run[0].config.recompute,
                          i == 0 ? RECOMPUTE_SELECTIVE : RECOMPUTE_FULL);
        calibrate_runs_release (&as);
    }
    calibrate_runs_release (&r);
}

/* NeMo's recipes interleave stages, by two layers a chunk or what divides them; who says 1, or the
 * schedule, or denies chunks, does not, nor do others. */
TEST (chunks)
{
    static const struct {
        const char *cell[6];
        int vpp;
    } row[] = {{{"framework=nemo", "vpp="}, 8},
               {{"framework=nemo", "vpp=", "layers=30"}, 5},
               {{"framework=nemo", "vpp=", "layers=62", "pp=4"}, 8},
               {{"framework=nemo", "vpp=", "layers=28", "pp=4"}, 7},
               {{"framework=nemo", "vpp=", "pp=1"}, 1},
               {{"framework=nemo", "vpp=1"}, 1},
               {{"framework=nemo", "vpp=", "notes=schedule=1f1b"}, 1},
               {{"framework=nemo", "vpp=", "notes=no VPP"}, 1},
               {{"framework=nemo", "vpp=", "notes=VPP=1"}, 1},
               {{"framework=nemo", "vpp=", "notes=non-interleaved"}, 1},
               {{"framework=nemo", "vpp=", "notes=1F1B"}, 1},
               {{"framework=nemo", "vpp=", "notes=interleaved 1F1B"}, 8},
               {{"framework=megatron-lm", "vpp="}, 1}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const *c = row[i].cell;
        struct calibrate_runs r =
            ONE ("gpu=H100-SXM5-80GB", "precision=bf16", c[0], c[1], c[2], c[3]);
        const struct workload_config *is = &r.run[0].config;

        assert_int_equal (is->deg.vpp, row[i].vpp);
        assert_int_equal (is->schedule,
                          row[i].vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B);
        assert_int_equal (r.run[0].n_ways, row[i].vpp > 1 ? 2 : 0);
        calibrate_runs_release (&r);
    }
}

/* TorchTitan cuts a rank's batch into as many micro-batches as stages, or into sequences: also
 * where the batch stands as a micro-batch.  Who says a smaller one means it. */
TEST (local_batch)
{
    static const struct {
        const char *cell[2];
        int ways, micro_batch;
    } row[] = {{{"micro_batch="}, 2, 4},
               {{"micro_batch=16"}, 2, 4},
               {{"micro_batch=16", "framework=megatron-lm"}, 0, 16},
               {{"micro_batch=2"}, 0, 2}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *framework = row[i].cell[1] ? row[i].cell[1] : "framework=torchtitan";
        struct calibrate_runs r =
            ONE ("gpus=16", "gpu=H100-SXM5-80GB", "tp=1", "pp=4", "dp=4", "zero=3",
                 "recompute=full", "global_batch=64", row[i].cell[0], framework);

        assert_int_equal (r.run[0].n_ways, row[i].ways);
        assert_int_equal (r.run[0].config.micro_batch, row[i].micro_batch);
        calibrate_runs_release (&r);
    }
}

/* A batch follows from the step and its tokens a second. */
TEST (batch)
{
    struct calibrate_runs r =
        ONE ("global_batch=", "iter_time_s=8", "tokens_per_s_per_gpu=2047");

    assert_int_equal (r.run[0].job.global_batch, 64);
    calibrate_runs_release (&r);
}

/* Degrees that the others make certain, or as people split: a node's tensor parallelism first, but
 * with experts stages. */
TEST (degrees)
{
    static const struct {
        const char *cell[6];
        int tp, pp, dp; /* 0: refused */
    } row[] = {
        {{"pp=", "dp=4"}, 2, 2, 4},
        {{"pp=", "dp=8"}, 2, 1, 8},
        {{"pp=", "dp="}, 2, 1, 8},
        {{"pp=", "dp=3"}, 0, 0, 0},
        {{"tp=", "pp=", "dp=2"}, 8, 1, 2},
        {{"tp=", "pp=", "dp=1"}, 8, 2, 1},
        {{"tp=", "pp=", "dp=1", "notes=num-experts=8; moe-router-topk=2", "gpus=8"},
         1,
         8,
         1}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct calibrate_runs r = {0};
        struct error err = {""};
        struct text t = {0};

        text_add (&t, "%s\n", RUNS_HEADER);
        runs_row (&t, row[i].cell);
        if (row[i].tp > 0) {
            const struct workload_degrees *d;

            r = runs_of (text_str (&t));
            d = &r.run[0].config.deg;
            if (d->tp != row[i].tp || d->pp != row[i].pp || d->dp != row[i].dp)
                fail_msg ("row %zu: %d %d %d", i, d->tp, d->pp, d->dp);
        } else {
            assert_int_equal (runs_read (text_str (&t), &r, &err), ST_INVALID);
            assert_non_null (strstr (err.text, "pp unknown"));
        }
        calibrate_runs_release (&r);
        text_free (&t);
    }
}

/* What no GPU could hold has expert ranks, tensor parallelism or stages that nobody states; what is
 * stated stays, whether it fits or not. */
TEST (too_large)
{
    static const struct {
        const char *cells; /* framework, model, gpus, tp, pp, ep, zero */
        int tp, pp, ep;
        bool wider, fits;
    } t[] = {{"megatron-lm,Qwen3-30B-A3B,16,1,1,,1", 1, 1, 8, false, true},
             {"megatron-lm,GPT-OSS-120B,64,1,4,,1", 1, 4, 8, false, true},
             {"megatron-lm,DeepSeek-V3,1024,1,16,,1", 1, 16, 8, false, true},
             {"megatron-lm,Qwen3-30B-A3B,16,1,1,1,1", 1, 1, 1, false, false},
             {"fsdp,Qwen3-30B-A3B,16,1,1,,3", 1, 1, 1, false, true},
             {"megatron-lm,llama-3-70b,64,,,,1", 8, 1, 1, true, true},
             {"megatron-lm,llama-3-405b,512,,,,1", 8, 8, 1, true, true},
             {"megatron-lm,llama-3-405b,512,8,,,1", 8, 8, 1, true, true},
             {"megatron-lm,llama-3-70b,64,1,1,1,1", 1, 1, 1, false, false},
             {"fsdp,llama-3-70b,1536,,,,3", 1, 1, 1, false, true}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r;
        struct text text = {0};
        struct workload_profile p;
        const struct workload_degrees *d;

        text_add (&text,
                  "framework,model,gpus,tp,pp,ep,zero,gpu,seq,micro_batch,global_batch,"
                  "precision\n"
                  "%s,H100,4096,1,1536,bf16\n",
                  t[i].cells);
        r = runs_of (text_str (&text));
        p = runs_profile (&r);
        d = &r.run[0].config.deg;
        if (d->tp != t[i].tp || d->pp != t[i].pp || d->ep != t[i].ep)
            fail_msg ("%s: tp %d pp %d ep %d", t[i].cells, d->tp, d->pp, d->ep);
        assert_true ((r.run[0].assumed > 0) == t[i].wider);
        assert_true ((calibrate_need (&r.run[0], &p, MEMEST_LINKWISE) <=
                      r.run[0].gpu_bytes) == t[i].fits);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* Where experts may have been spread further, both readings count. */
TEST (experts_spread)
{
    struct calibrate_runs r;
    double weight[65] = {0};

    r = runs_of ("framework,model,gpus,pp,gpu,seq,micro_batch,global_batch,precision,"
                 "recompute\n"
                 "megatron-lm,GPT-OSS-120B,64,1,B300,4096,1,512,bf16,none\n");
    for (int i = 0; i < r.run[0].n_ways; i++)
        weight[r.run[0].way[i].ep] += r.run[0].way[i].weight;
    CLOSE (weight[8], 0.7, 1e-12);
    CLOSE (weight[64], 0.3, 1e-12);
    calibrate_runs_release (&r);
}

/* ZeRO 3 by default is not what runs beside what cannot have it. */
TEST (sharding)
{
    struct calibrate_runs piped = ONE ("framework=deepspeed", "zero="),
                          split = ONE ("framework=deepspeed", "zero=", "pp=1"),
                          whole = ONE ("framework=deepspeed", "zero=", "pp=1", "tp=1"),
                          alone = ONE ("framework=deepspeed", "zero=", "pp=1", "tp=1",
                                       "dp=1", "gpus=1");

    assert_int_equal (piped.run[0].config.zero, 1);
    assert_int_equal (split.run[0].config.zero, 2);
    assert_int_equal (whole.run[0].config.zero, 3);
    assert_int_equal (alone.run[0].config.zero, 0); /* nobody to share with */
    calibrate_runs_release (&alone);
    calibrate_runs_release (&piped);
    calibrate_runs_release (&split);
    calibrate_runs_release (&whole);
}

/* Recipes that hide tensor-parallel communication split sequences, and some frameworks always. */
TEST (sequences)
{
    struct calibrate_runs recipe = ONE ("framework=nemo", "gpu=H100-SXM5-80GB", "sp="),
                          said = ONE ("framework=nemo", "gpu=H100-SXM5-80GB", "sp=0"),
                          nanotron = ONE ("framework=nanotron", "sp="),
                          other = ONE ("framework=x", "sp=");

    assert_true (recipe.run[0].config.sequence_parallel);
    assert_true (nanotron.run[0].config.sequence_parallel);
    calibrate_runs_release (&nanotron);
    assert_false (said.run[0].config.sequence_parallel);
    assert_false (other.run[0].config.sequence_parallel);
    calibrate_runs_release (&recipe);
    calibrate_runs_release (&said);
    calibrate_runs_release (&other);
}

/* Logits of which an eighth exists at once are less than those of which an eighth is cast. */
TEST (losses)
{
    static const char *const notes[] = {"notes=plain", "notes=chunked cross-entropy",
                                        "notes=Liger kernels"};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double peak[3];

    for (int i = 0; i < 3; i++) {
        struct calibrate_runs r = ONE (notes[i], "pp=1", "layers=4", "vocab=128000");

        peak[i] = calibrate_peak (&r.run[0], &p);
        calibrate_runs_release (&r);
    }
    assert_true (peak[2] < peak[1] && peak[1] < peak[0]);
}

/* A paged optimizer inside backward leaves the weights alone, and its moments in the host's memory;
 * what is offloaded is not estimated. */
TEST (states)
{
    struct calibrate_runs paged = ONE ("notes=paged 8-bit AdamW fused in backward"),
                          small = ONE ("notes=8-bit AdamW", "framework=trl"), r;
    struct error err = {""};
    struct text t = {0};

    CLOSE (paged.run[0].state_bytes, 2.0, 0);
    CLOSE (paged.run[0].job.paged_bytes, 2.0, 0);
    CLOSE (small.run[0].job.paged_bytes, 0.0, 0);
    assert_false (paged.run[0].chunked_loss || paged.run[0].fused_loss);
    CLOSE (small.run[0].state_bytes, 6.0, 0);
    calibrate_runs_release (&paged);
    calibrate_runs_release (&small);
    text_add (&t, "%s\n", RUNS_HEADER);
    ROW (&t, "notes=ZeRO-3 and CPU offload");
    assert_int_equal (runs_read (text_str (&t), &r, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "offloading"));
    text_free (&t);
}

/* A ZeRO stage that nobody states is one with which the GPUs hold the model, where there is one. */
TEST (stage_found)
{
    static const struct {
        const char *zero, *gpus, *layers;
        int found;
    } t[] = {{"zero=", "gpus=16", "layers=32", 1}, /* the default's */
             {"zero=", "gpus=64", "layers=80", 2},
             {"zero=", "gpus=64", "layers=240", 3},
             {"zero=1", "gpus=64", "layers=80", 1}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r =
            ONE ("framework=my Megatron-LM", "tp=1", "pp=1", t[i].zero, t[i].gpus,
                 t[i].layers, "recompute=full");

        assert_int_equal (r.run[0].config.zero, t[i].found);
        calibrate_runs_release (&r);
    }
    /* None that the framework has not. */
    struct calibrate_runs r = ONE ("framework=nanotron", "tp=1", "pp=1",
                                   "zero=", "gpus=64", "layers=80", "recompute=full");

    assert_true (r.run[0].config.zero <= 1);
    calibrate_runs_release (&r);
    /* Who says over how many ranks it shards has one. */
    r = ONE ("framework=torchtitan", "tp=1", "pp=1", "zero=", "gpus=16", "notes=shard=8");
    assert_int_equal (r.run[0].config.zero, 3);
    assert_int_equal (r.run[0].config.shard, 8);
    calibrate_runs_release (&r);
}

/* Adapters are on whole weights where these fit, unless a stage or what shards is named. */
TEST (adapters_on_whole_weights)
{
    static const struct {
        const char *framework, *notes, *layers;
        int zero;
    } t[] = {{"framework=trl", "notes=LoRA", "layers=32", 0},
             {"framework=llama-factory", "notes=LoRA", "layers=32", 0},
             {"framework=trl", "notes=LoRA", "layers=100", 3},
             {"framework=trl", "notes=QLoRA", "layers=64", 0},
             {"framework=trl (FSDP)", "notes=LoRA", "layers=32", 3},
             {"framework=deepspeed", "notes=LoRA", "layers=32", 3},
             {"framework=torchtune", "notes=LoRA", "layers=32", 3},
             {"framework=trl", "notes=", "layers=32", 3}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r =
            ONE (t[i].framework, t[i].notes, t[i].layers, "tp=1", "pp=1", "zero=");

        if (r.run[0].config.zero != t[i].zero)
            fail_msg ("%s %s %s: stage %d", t[i].framework, t[i].notes, t[i].layers,
                      r.run[0].config.zero);
        calibrate_runs_release (&r);
    }
}

/* What is recomputed goes by the stage that was found. */
TEST (recomputed_by_stage)
{
    struct calibrate_runs r = ONE ("framework=internevo", "tp=1", "pp=1",
                                   "zero=", "gpus=64", "layers=100", "recompute=");
    struct workload_profile p = profile_of ("internevo");

    p.n_sources = 0;
    p.zero_stages = 1u << 3;
    p.recompute_sharded = RECOMPUTE_FULL;
    calibrate_assume (&r.run[0], &p);
    assert_int_equal (r.run[0].config.zero, 3);
    assert_int_equal (r.run[0].config.recompute, RECOMPUTE_FULL);
    p.recompute_sharded = RECOMPUTE_NONE;
    calibrate_assume (&r.run[0], &p);
    assert_int_equal (r.run[0].config.recompute, RECOMPUTE_NONE);
    calibrate_runs_release (&r);
}

/* FSDP's users sum gradients whole (no_sync) unless that leaves no memory, or as they say. */
TEST (summed_whole)
{
    static const struct {
        const char *gpus, *notes;
        bool whole;
    } t[] = {
        {"gpus=16", "notes=", true},
        {"gpus=16", "notes=no-sync=false", false},
        {"gpus=256", "notes=", false}, /* as said, 70B in 16 bits are more than a GPU */
        {"gpus=256", "notes=no-sync=true", true}};
    struct workload_profile p = profile_of ("fsdp");

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r =
            ONE ("framework=fsdp", "zero=3", "tp=1", "pp=1", "global_batch=512",
                 "recompute=full", "attention=flash", t[i].gpus, t[i].notes,
                 i < 2 ? "layers=32" : "layers=320");
        struct workload_profile own;

        own = calibrate_profile_as_said (&r.run[0], &p);
        assert_int_equal (own.whole_gradients, t[i].whole);
        calibrate_runs_release (&r);
    }
}

/* Some layers (fms-fsdp's selective): one at least, and as many as memory asks for. */
TEST (some_layers)
{
    struct workload_profile p = profile_of ("fsdp");
    int layers[2];

    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r =
            ONE ("framework=fsdp", "zero=3", "tp=1", "pp=1", "gpus=96", "micro_batch=2",
                 "global_batch=192", "seq=4096", "recompute=selective", "attention=flash",
                 i ? "layers=80" : "layers=8");
        struct calibrate_run *run = &r.run[0];

        calibrate_assume (run, &p);
        assert_int_equal (run->config.recompute, RECOMPUTE_FULL);
        layers[i] = run->config.recompute_layers;
        run->layers_open = false; /* else leaner ways would make it fit */
        assert_true (calibrate_need (run, &p, MEMEST_LINKWISE) <= .9 * run->gpu_bytes);
        run->config.recompute_layers--;
        assert_true (i == 0 ||
                     calibrate_need (run, &p, MEMEST_LINKWISE) > .9 * run->gpu_bytes);
        calibrate_runs_release (&r);
    }
    assert_int_equal (layers[0], 1);
    assert_in_range (layers[1], 2, 79);
}

/* GPUs without bf16 have no kernel of flash attention's but PyTorch's memory-efficient one, which
 * families since Llama take. */
TEST (kernels_of_old)
{
    static const char *const framework[] = {"framework=fsdp",
                                            "framework=megatron-deepspeed",
                                            "framework=nemo", "framework=fsdp"};

    for (int i = 0; i < 4; i++) {
        struct calibrate_runs r = ONE (framework[i], "gpu=V100", "gpu_mem_gb=32",
                                       "precision=fp16", i == 3 ? "model=gpt2-x" : "");

        runs_profile (&r); /* it says what the row leaves open */
        assert_int_equal (r.run[0].job.attention,
                          i == 0 ? ATTENTION_FLASH : ATTENTION_FUSED);
        calibrate_runs_release (&r);
    }
}

/* A framework may recompute only where it shards the weights. */
TEST (recomputed_where_sharded)
{
    static const char *const zero[] = {"zero=0", "zero=3"};

    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r =
            ONE ("source=LitGPT_resource_tables", "recompute=", "pp=1",
                 "precision=bf16-true", zero[i]);

        assert_int_equal (r.run[0].config.recompute,
                          i == 0 ? RECOMPUTE_SELECTIVE : RECOMPUTE_FULL);
        calibrate_runs_release (&r);
    }
}

/* A driver sees what the allocator keeps of the backward pass beside a step's flat buffer, as far
 * as the GPU has room; PyTorch's allocated bytes and what has to fit are without. */
TEST (driver_sees_the_cache)
{
    struct workload_profile p = profile_of ("megatron-deepspeed"), apart;

    for (int i = 0; i < 3; i++) {
        struct calibrate_runs r =
            ONE ("precision=fp16", "layers=4", "vocab=128000", "zero=0");
        struct calibrate_run *run = &r.run[0];
        double need, seen;

        apart = p;
        apart.flat_step = false;
        p.measured_allocated = apart.measured_allocated = i == 1;
        need = calibrate_need (run, &p, MEMEST_LINKWISE);
        if (i == 2)
            run->gpu_bytes = need + 1e8;
        seen = calibrate_peak (run, &p) - calibrate_peak (run, &apart);
        CLOSE (need, calibrate_need (run, &apart, MEMEST_LINKWISE), 1e-12);
        if (i == 0)
            assert_true (seen > 1e9);
        else
            CLOSE (1 + seen, i == 1 ? 1 : 1 + 1e8, 1e-6);
        calibrate_runs_release (&r);
    }
}

/* GPUs that no switch joins: two have the link between them, more of a board several. */
TEST (mesh)
{
    static const struct {
        const char *gpu, *node, *tp;
        double share; /* of all */
    } known[] = {{"gpu=V100-SXM2-32GB", "gpus_per_node=8", "tp=2", .15},
                 {"gpu=V100-SXM2-32GB", "gpus_per_node=4", "tp=2", 1 / 3.0},
                 {"gpu=MI300X", "gpus_per_node=8", "tp=2", 1 / 7.0},
                 {"gpu=MI300X", "gpus_per_node=8", "tp=8", 1},
                 {"gpu=MI300X", "gpus_per_node=8", "tp=1", 1},
                 {"gpu=H100-SXM5-80GB", "gpus_per_node=4", "tp=2", 1 / 3.0},
                 {"gpu=H100-SXM5-80GB", "gpus_per_node=8", "tp=2", 1},
                 {"gpu=MI100", "gpus_per_node=8", "tp=2", 1},
                 {"gpu=MI100", "gpus_per_node=4", "tp=4", 3},
                 {"gpu=MI100", "gpus_per_node=8", "tp=8", 0.6},
                 {"gpu=GH200", "gpus_per_node=4", "tp=2", 1},
                 {"gpu=GH200", "gpus_per_node=4", "tp=4", 3}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE (known[i].gpu, known[i].node, known[i].tp,
                                       "gpus=16", "pp=1", "inter_node_gbps=100");
        struct workload_profile p;
        struct topology_cluster *c;
        struct error err = {""};
        struct topology_usual usual;

        p = runs_profile (&r);
        ok (calibrate_cluster (&r.run[0], &p, &c, &err), &err);
        usual = topology_usual_links (c->node[0].type->name);
        CLOSE (topology_link (c, 0, 1).bytes_per_s,
               known[i].share * usual.intra_gb_per_s * UNITS_GB, 1e-5);
        topology_cluster_destroy (c);
        calibrate_runs_release (&r);
    }
}

/* What today's recipes hide, published runs on GPUs without fp8 did not; who forces a profile gets
 * it as it is. */
TEST (dated)
{
    static const char *const gpu[] = {"gpu=A100-SXM4-80GB", "gpu=H100-SXM5-80GB"};
    struct workload_profile nemo = profile_of ("nemo"), p;
    struct error err = {""};

    assert_true (nemo.time.tp_comm_overlap);
    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r = ONE ("framework=nemo", gpu[i]);

        p = runs_profile (&r);
        assert_int_equal (p.time.tp_comm_overlap, i == 1);
        assert_true (r.run[0].config.sequence_parallel);
        ok (calibrate_profiles (&r, &nemo, &p, &err), &err);
        assert_true (p.time.tp_comm_overlap);
        calibrate_runs_release (&r);
    }
}
