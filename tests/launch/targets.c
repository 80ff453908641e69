/* The files of one target, or why there are none, on small plans: every rule of names, of blocks of
 * ranks and of folders, on both sides of where it changes. */
#include "tests/lib/targets.h"

/* ---- names of hosts ---- */

static const struct name {
    const struct launcher *l;
    const char *first, *second, *why; /* "" : taken */
} names[] = {
    {&launch_kubernetes, "node-1.rack", "9", ""},
    {&launch_kubernetes, "Node1", "b", "\"Node1\" is not a valid Kubernetes node name"},
    {&launch_kubernetes, "a", "b_", "\"b_\" is not a valid"},
    {&launch_kubernetes, "a-", "b", "\"a-\" is not a valid"},
    {&launch_kubernetes, "a.", "b", "\"a.\" is not a valid"},
    {&launch_kubernetes, "a..b", "b", "\"a..b\" is not a valid"},
    {&launch_kubernetes, "a.-b", "b", "\"a.-b\" is not a valid"},
    {&launch_kubernetes, "a-.b", "b", "\"a-.b\" is not a valid"},
    {&launch_openmpi, "a.rack", "ab.rack", ""},
    {&launch_openmpi, "10.0.0.1", "10.0.0.2", ""},
    {&launch_openmpi, "7a", "node-7", ""},
    {&launch_openmpi, "a.x", "a.y", "the hosts a.x and a.y are one to it"},
    {&launch_openmpi, "rank", "b", "cannot hold the host name \"rank\""},
    {&launch_openmpi, "a", "slots", "cannot hold the host name \"slots\""},
    {&launch_openmpi, "a", "user_name", "cannot hold the host name \"user_name\""},
    {&launch_openmpi, "007", "b", "cannot hold the host name \"007\""},
    {&launch_openmpi, "1a.b", "b", "cannot hold the host name \"1a.b\""},
};

TEST (takes_names)
{
    static const int gpu[] = {0, 1};
    struct made m;
    char *own[2];

    make (&m, "2x1 h100-sxm5-80g inter:48", 2, gpu);
    for (int i = 0; i < 2; i++)
        own[i] = m.cluster->node[i].name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        m.cluster->node[0].name = (char *) names[i].first;
        m.cluster->node[1].name = (char *) names[i].second;
        expect_says (names[i].l, &m, "", names[i].why, names[i].first);
    }
    for (int i = 0; i < 2; i++)
        m.cluster->node[i].name = own[i];
    topology_cluster_destroy (m.cluster);
}

/* Of three hosts two are one at Open MPI, in whichever order they come. */
TEST (takes_no_twins)
{
    static const char *const three[] = {"a.x", "ab", "a.y", "a.x", "ab"};
    static const int gpu[] = {0, 1, 2};
    struct made m;
    char *own[3];

    make (&m, "3x1 h100-sxm5-80g inter:48", 3, gpu);
    for (int i = 0; i < 3; i++)
        own[i] = m.cluster->node[i].name;
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 3; k++)
            m.cluster->node[k].name = (char *) three[i % 3 + (i < 3 ? k : 2 - k)];
        expect_says (&launch_openmpi, &m, "", "are one to it", "three");
    }
    for (int i = 0; i < 3; i++)
        m.cluster->node[i].name = own[i];
    topology_cluster_destroy (m.cluster);
}

/* ---- blocks of ranks ---- */

/* What every target stands on, as if it were one. */
static const struct launcher generic = {.readme = "README", .write = launch_generic};

#define SAME "2x2 h100-sxm5-80g intra:300 inter:48"
#define UNLIKE "1x2 h100-sxm5-80g intra:300 + 1x1 h100-sxm5-80g inter:48"

/* A job's nodes of one kind. */
#define COMPONENT(TYPE, EACH, NODES, NAMES, RANKS)                       \
    "# " TYPE ", " EACH                                                  \
    " ranks a node\n#SBATCH --job-name=linkwise\n#SBATCH --nodes=" NODES \
    "\n#SBATCH --nodelist=" NAMES "\n#SBATCH --ntasks=" RANKS            \
    "\n#SBATCH --ntasks-per-node=" EACH "\n#SBATCH --exclusive\n#SBATCH --gres=gpu:2\n"

#define ONE_NODE(TYPE, EACH, NAME) COMPONENT (TYPE, EACH, "1", NAME, EACH)

static const struct block {
    const struct launcher *l;
    const char *cluster, *gpus, *path, *expected; /* a digit a rank */
} blocks[] = {
    {&launch_torchrun, SAME, "2301", "torchrun/agents.txt", "n1 0 2\nn0 1 2\n"},
    {&launch_torchrun, SAME, "0213", "torchrun/agents.txt", "n0 0 1\nn1 1 1\nn0 2 1\n"},
    {&launch_torchrun, UNLIKE, "012", "torchrun/agents.txt", "n0 0 2\nn1 1 1\n"},
    {&launch_torchrun, UNLIKE, "210", "torchrun/agents.txt", "n1 0 1\nn0 1 2\n"},
    {&launch_torchrun, UNLIKE, "021", "torchrun/agents.txt", "n0 0 1\nn1 1 1\nn0 2 1\n"},
    {&launch_torchrun, UNLIKE, "21", "torchrun/agents.txt", "n1 0 1\nn0 1 1\n"},
    {&launch_torchrun, SAME, "0231", "torchrun/agents.txt", "n0 0 1\nn1 1 2\nn0 2 1\n"},
    {&launch_deepspeed, SAME, "2301", "deepspeed/hostfile", "n1 slots=2\nn0 slots=2\n"},
    {&launch_deepspeed, SAME, "2301", "deepspeed/include", ""},
    {&launch_deepspeed, SAME, "0123", "deepspeed/rankfile", ""},
    {&launch_deepspeed, SAME, "31", "deepspeed/include", "n1:1@n0:1\n"},
    {&launch_deepspeed, UNLIKE, "01", "deepspeed/rankfile", ""},
    {&launch_deepspeed, UNLIKE, "21", "deepspeed/include", "n1:0@n0:1\n"},
    {&launch_deepspeed, SAME, "1023", "deepspeed/rankfile", ""},
    {&launch_deepspeed, SAME, "310", "deepspeed/include", "n1:1@n0:1,0\n"},
    {&launch_deepspeed, UNLIKE, "201", "deepspeed/hostfile", "n1 slots=1\nn0 slots=2\n"},
    {&launch_deepspeed, UNLIKE, "201", "deepspeed/include", ""},
    {&launch_deepspeed, UNLIKE, "021", "deepspeed/rankfile", "rank 1=n1 slot=*\n"},
    {&launch_deepspeed, SAME, "0213", "deepspeed/rankfile", "rank 1=n1 slot=*\n"},
    {&launch_openmpi, SAME, "310", "openmpi/hostfile", "n0 slots=2\nn1 slots=1\n"},
    {&launch_openmpi, SAME, "31", "openmpi5/rankfile",
     "rank 0=n1 slot=0\nrank 1=n0 slot=0\n"},
    {&launch_slurm, UNLIKE, "120", "slurm/multi-prog",
     "CUDA_VISIBLE_DEVICES=1,0 RANK=2 WORLD_SIZE=3 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
     "NODE_RANK=0 GROUP_RANK=0 GROUP_WORLD_SIZE=2 "},
    {&launch_slurm, UNLIKE, "120", "slurm/multi-prog",
     "CUDA_VISIBLE_DEVICES=0 RANK=1 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "
     "NODE_RANK=1 GROUP_RANK=1 GROUP_WORLD_SIZE=2 "},
    {&launch_mpich, SAME, "31", "mpich/machinefile", "n1:1\nn0:1\n"},
    {&launch_kubernetes, UNLIKE, "012", "", "n0 has 2 GPUs and n1 1"},
    {&launch_kubernetes, SAME, "012", "kubernetes/job.json", "\"completions\": 2"},
    {&launch_kubernetes, SAME, "012", "kubernetes/job.json", "\"nvidia.com/gpu\": \"2\""},
    {&launch_kubernetes, SAME, "012", "kubernetes/mpijob.json", "\"slotsPerWorker\": 2"},
    /* A pod that failed is not started again: the others would wait for its ranks. */
    {&launch_kubernetes, SAME, "02", "kubernetes/job.json", "\"backoffLimit\": 0"},
    {&launch_kubernetes, SAME, "02", "kubernetes/mpijob.json", "\"backoffLimit\": 0"},
    {&launch_kubernetes, SAME, "02", "kubernetes/job.json", "\"hostNetwork\": true"},
    {&launch_kubernetes, SAME, "02", "kubernetes/mpijob.json", "\"replicas\": 1,"},
    {&launch_kubernetes, SAME, "02", "kubernetes/mpijob.json", "\"replicas\": 2,"},
    {&generic, UNLIKE, "201", "map.txt", "0 n1 0\n1 n0 0\n2 n0 1\n"},
    {&generic, UNLIKE, "2", "hosts.txt", "n0 0 1\nn1 0\n"},
    {&generic, UNLIKE, "2", "README", "1 rank on 1 node,"},
    {&generic, UNLIKE, "2", "exec.sh", "\ngeneration=0123456789abcdef\n"},
    {&generic, UNLIKE, "2", "where.sh", "where.py"},
    {&generic, UNLIKE, "2", "gpu-uuid.txt", ""},
    {&launch_slurm, SAME, "012", "slurm/job.sbatch", "#SBATCH --gres=gpu:2\n"},
    {&launch_slurm, UNLIKE, "012", "slurm/job.sbatch", "#SBATCH --gpus=3\n"},
    {&launch_slurm, SAME, "0123", "slurm/het.sbatch", ""},
    {&launch_slurm, SAME " + 1x2 a100-sxm4-80g inter:48", "4210", "slurm/het.sbatch",
     "#!/bin/sh\n" ONE_NODE ("a100-sxm4-80g", "1", "n2") "#SBATCH hetjob\n" ONE_NODE (
         "h100-sxm5-80g", "1",
         "n1") "#SBATCH hetjob\n" ONE_NODE ("h100-sxm5-80g", "2",
                                            "n0") "components=0-2\n"},
    {&launch_slurm, SAME " + 1x2 a100-sxm4-80g inter:48", "402", "slurm/het.sbatch",
     COMPONENT ("h100-sxm5-80g", "1", "2", "n0,n1", "2") "components=0-1\n"},
};

TEST (takes_blocks)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct block *b = &blocks[i];
        int gpu[RANKS], n = (int) strlen (b->gpus);
        struct made m;
        char what[32];

        for (int r = 0; r < n; r++)
            gpu[r] = b->gpus[r] - '0';
        make (&m, b->cluster, n, gpu);
        snprintf (what, sizeof what, "block %zu", i);
        expect_says (b->l, &m, b->path, b->expected, what);
        topology_cluster_destroy (m.cluster);
    }
}

/* A node without ranks is in no list of hosts. */
TEST (leaves_out_idle_nodes)
{
    static const struct {
        const struct launcher *l;
        const char *path, *all;
    } t[] = {{&launch_openmpi, "openmpi/hostfile", "n1 slots=2\n"},
             {&launch_deepspeed, "deepspeed/hostfile", "n1 slots=2\n"},
             {&launch_mpich, "mpich/machinefile", "n1:1\nn1:1\n"}};
    struct text said = {0};
    struct made m;

    make (&m, SAME, 2, (const int[]){2, 3});
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        says (t[i].l, &m, t[i].path, &said);
        assert_string_equal (text_str (&said), t[i].all);
    }
    text_free (&said);
    topology_cluster_destroy (m.cluster);
}

/* Which groups are of several types; GPUs by UUID and their NUMA nodes, where these are known. */
TEST (tells_types_and_gpus)
{
    static const int gpu[] = {0, 1, 4, 2, 5, 6, 3, 7};
    static char *uuid[] = {"GPU-0", "GPU-1", "MIG-2", "GPU-3"};
    int numa[] = {0, 1, -1, 1};
    struct made m;

    make (&m, "1x4 h100-sxm5-80g intra:300 + 1x4 a100-sxm4-80g intra:300 inter:48", 8,
          gpu);
    m.plan.config = config_of (1, 1, 8, 1);
    expect_says (&generic, &m, "README", "Each tp, cp and ep group is of one.", "types");
    m.plan.config = config_of (2, 1, 4, 1);
    m.plan.config.deg.ep = 2;
    expect_says (
        &generic, &m, "README",
        "tp groups of more than one: 2 of 4,\nfirst that of rank 2.  ep groups of "
        "more than one: 2 of 4,\nfirst that of rank 0.\n",
        "types");
    m.cluster->node[0].gpu_uuid = uuid;
    m.cluster->node[0].gpu_numa = numa;
    expect_says (&generic, &m, "gpu-uuid.txt",
                 "n0 0 GPU-0\nn0 1 GPU-1\nn0 2 MIG-2\nn0 3 GPU-3\n", "UUIDs");
    expect_says (&generic, &m, "gpu-numa.txt", "n0 0 0\nn0 1 1\nn0 3 1\n", "NUMA nodes");
    /* With an instance of a GPU among them each process is shown its own alone. */
    expect_says (&launch_slurm, &m, "slurm/multi-prog",
                 "=MIG-2 RANK=3 WORLD_SIZE=8 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 ", "MIG");
    uuid[2] = "GPU-2";
    expect_says (&launch_slurm, &m, "slurm/multi-prog",
                 "=GPU-0,GPU-1,GPU-2,GPU-3 RANK=3 WORLD_SIZE=8 LOCAL_RANK=2 ", "UUIDs");
    for (int i = 0; i < 3; i++) {
        static const size_t letters[] = {127, 128, 0};
        char text[129] = "";

        memset (text, 'a', letters[i]);
        uuid[2] = text;
        expect_says (&generic, &m, "gpu-numa.txt",
                     i == 0 ? "n0 0 0\n" : "node n0: gpu_uuid[2]: expected letters",
                     "UUID");
    }
    uuid[2] = "GPU 2";
    expect_says (&generic, &m, "gpu-numa.txt", "gpu_uuid[2]: expected letters", "UUID");
    m.cluster->node[0].gpu_uuid = NULL;
    m.cluster->node[0].gpu_numa = NULL;
    topology_cluster_destroy (m.cluster);
}

/* ---- a ConfigMap holds 1 MiB, the limit of Kubernetes, and what is a byte more is refused ---- */

/* What the manifests take beside a map of so many bytes, in the count that a refusal says. */
static enum status emitted (const struct launch_input *in, size_t map, size_t *needs)
{
    struct launch_files f = {.generation = "0123456789abcdef"};
    struct text readme = {0}, *t = launch_file (&f, "map.txt", 0644);
    struct error err = {""};
    enum status st;
    const char *said;

    for (size_t i = 0; i < map; i++)
        text_add_mem (t, "x", 1);
    st = launch_kubernetes.write (in, &f, &readme, &err);
    said = strstr (err.text, "ConfigMap of ");
    if (said)
        *needs = strtoul (said + strlen ("ConfigMap of "), NULL, 10);
    if (st == ST_OK) {
        json_t *doc = NULL, *value;
        const char *key;

        *needs = 0;
        for (int i = 0; i < f.n; i++)
            if (strcmp (f.file[i].path, "kubernetes/configmap.json") == 0)
                doc = json_loads (text_str (&f.file[i].text), 0, NULL);
        assert_non_null (doc);
        json_object_foreach (json_object_get (doc, "data"), key, value) *needs +=
            json_string_length (value);
        json_decref (doc);
    }
    for (int i = 0; i < f.n; i++)
        text_free (&f.file[i].text);
    text_free (&readme);
    return st;
}

TEST (holds_a_mebibyte)
{
    struct topology_cluster *c = cluster_of ("1x2 h100-sxm5-80g intra:400");
    struct workload_plan plan = {.n_ranks = 2};
    const int gpu[] = {0, 1}, on_node[] = {2};
    struct launch_input in = {.plan = &plan,
                              .cluster = c,
                              .gpu = gpu,
                              .ranks_on_node = on_node,
                              .nodes = 1,
                              .most_ranks = 2,
                              .linkwise = "linkwise"};
    size_t rest, needs = 0, all = 1 << 20;

    assert_int_equal (emitted (&in, 0, &rest), ST_OK);
    assert_true (rest > 0 && rest < all);
    assert_int_equal (emitted (&in, all - rest, &needs), ST_OK);
    assert_int_equal (needs, all);
    assert_int_equal (emitted (&in, all - rest + 1, &needs), ST_NOFIT);
    assert_int_equal (needs, all + 1);
    topology_cluster_destroy (c);
}

/* ---- one folder ---- */

/* Does dir/NAME hold that text, and is it there at all? */
static bool holds (const char *dir, const char *name, const char *text)
{
    struct text path = {0};
    char *all = NULL;
    size_t len;
    bool found;

    text_add (&path, "%s/%s", dir, name);
    found = file_read (text_str (&path), &all, &len, NULL) == ST_OK && strstr (all, text);
    text_free (&path);
    free (all);
    return found;
}

/* What of a plan on `gpu` goes to dir; another GPU order is another plan. */
static enum status emit (const char *dir, const char *to, const int *gpu,
                         struct error *err)
{
    struct made m;
    int layers[] = {2, 2};
    json_t *doc = json_pack ("{s:{s:s}}", "cluster", "name", "test");
    struct launch_request r = {.gpu = gpu, .doc = doc, .linkwise = "linkwise", .to = to};
    enum status st;

    make (&m, SAME, 4, gpu);
    m.plan.model = small_model (4);
    m.plan.job = (struct workload_job){.seq = 8, .global_batch = 8};
    m.plan.config = config_of (1, 2, 2, 1);
    m.plan.config.schedule = SCHEDULE_GPIPE;
    m.plan.layers_per_stage = layers;
    r.plan = &m.plan;
    r.profile = &m.profile;
    r.cluster = m.cluster;
    st = launch_emit (&r, dir, NULL, err);
    topology_cluster_destroy (m.cluster);
    json_decref (doc);
    return st;
}

TEST (keeps_what_is_of_the_plan)
{
    static const int gpu[] = {0, 1, 2, 3}, other[] = {0, 2, 1, 3};
    static const char earlier[] = "For mpich, from an earlier run: mpich/README.";
    char dir[FOLDER_PATH], path[FOLDER_PATH + 32];
    char *text = NULL;
    size_t len;
    struct error err = {""};

    snprintf (dir, sizeof dir, "%s", in_folder ("launch"));
    ok (emit (dir, "mpich", gpu, &err), &err);
    assert_true (holds (dir, "mpich/machinefile", "n0:1\nn0:1\nn1:1\nn1:1\n"));
    assert_true (holds (dir, "README", "4 ranks on 2 nodes, tp 1 x cp 1 x dp 2 x pp 2"));
    assert_false (holds (dir, "README", "earlier run"));
    /* The seal is sixteen digits and a newline. */
    snprintf (path, sizeof path, "%s/" LAUNCH_SEAL, dir);
    ok (file_read (path, &text, &len, &err), &err);
    assert_int_equal (len, 17);
    assert_int_equal (strspn (text, "0123456789abcdef"), 16);
    free (text);

    ok (emit (dir, "openmpi,env", gpu, &err), &err);
    assert_true (holds (dir, "README", earlier));
    assert_false (holds (dir, "README", "For slurm"));
    assert_true (holds (dir, "mpich/machinefile", "n0"));
    ok (emit (dir, "env", other, &err), &err);
    assert_false (holds (dir, "README", "earlier run"));
    assert_false (holds (dir, "mpich/machinefile", ""));

    assert_int_equal (emit (dir, "env,megatron", gpu, &err), ST_NOFIT);
    assert_non_null (strstr (err.text, "megatron: Megatron-LM has no gpipe"));
    ok (emit (dir, "all", gpu, &err), &err);
    assert_true (holds (dir, "README", "Not for megatron: Megatron-LM has no gpipe"));
    assert_true (holds (dir, "slurm/hostfile", "n1"));
    assert_int_equal (emit (dir, "all,megatron", gpu, &err), ST_NOFIT);
    assert_int_equal (emit (dir, "megatron,all", gpu, &err), ST_NOFIT);
    assert_int_equal (emit (dir, "mpi", gpu, &err), ST_USAGE);
    assert_non_null (strstr (err.text, "\"mpi\" (openmpi, mpich, slurm, torchrun, env, "
                                       "deepspeed, kubernetes, megatron, nemo, "
                                       "torchtitan, deepspeed-config, all)"));
    assert_int_equal (emit (dir, "", gpu, &err), ST_USAGE);
}
