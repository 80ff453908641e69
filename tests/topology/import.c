/* Descriptions of machines and networks: small ones of each format, faults, and the
 * published ones where they are beside the checkout. */
#include "tests/lib/fixture.h"

#include <unistd.h>

#include "base/file.h"
#include "topology/machine/machine.h"

/* The value at a path as in "nodes.0.gpu_numa", on one line; "nothing" where there is
 * none.  To be freed. */
static char *value_at (json_t *doc, const char *path)
{
    char word[64];

    while (doc && *path) {
        size_t n = strcspn (path, ".");

        snprintf (word, sizeof word, "%.*s", (int) n, path);
        path += path[n] ? n + 1 : n;
        doc = json_is_array (doc) ? json_array_get (doc, (size_t) atoi (word))
                                  : json_object_get (doc, word);
    }
    return doc ? json_dumps (doc, JSON_ENCODE_ANY | JSON_COMPACT) : strdup ("nothing");
}

static void expect_values (const char *name, json_t *doc, const char *const (*want)[2])
{
    for (; (*want)[0]; want++) {
        char *found = value_at (doc, (*want)[0]);

        if (strcmp (found, (*want)[1]) != 0)
            fail_msg ("%s: %s is %s, expected %s", name, (*want)[0], found, (*want)[1]);
        free (found);
    }
}

/* What every import has to be: a cluster file in which things may be open. */
static void expect_readable (const char *name, json_t *doc)
{
    struct topology_cluster *c = NULL;
    struct notes notes = {0};
    struct error err = {""};

    if (topology_cluster_from_json_partial (doc, name, NULL, &c, &notes, &err) != ST_OK)
        fail_msg ("%s: not a cluster file: %s", name, err.text);
    if (notes.n > 0)
        fail_msg ("%s: %s", name, notes.line[0]);
    topology_cluster_destroy (c);
}

static bool noted (const struct notes *n, const char *what)
{
    for (int i = 0; i < n->n; i++)
        if (strstr (n->line[i], what))
            return true;
    return false;
}

struct good {
    const char *name, *format, *text;
    const char *note; /* part of one; NULL: no note may come */
    const char *want[12][2];
};

#define HWLOC(INSIDE)                                                               \
    "<?xml version='1.0'?><!DOCTYPE topology SYSTEM 'hwloc2.dtd'><topology "        \
    "version='2.0'>"                                                                \
    "<object type='Machine' os_index='0' cpuset='0xff' nodeset='0x3' gp_index='1'>" \
    "<info name='HostName' value='gpu7.example.org'/>" INSIDE "</object>"
#define PACKAGE(GP, CPUS, NODE, INSIDE)                                         \
    "<object type='Package' cpuset='" CPUS "' nodeset='" NODE "' gp_index='" GP \
    "'>" INSIDE "</object>"
#define NUMA(I, CPUS)                                                                 \
    "<object type='NUMANode' os_index='" I "' cpuset='" CPUS "' nodeset='0x0000000" I \
    "'/>"
#define BRIDGE(GP, TYPE, INSIDE) \
    "<object type='Bridge' gp_index='" GP "' bridge_type='" TYPE "'>" INSIDE "</object>"
#define OS_DEVICE(GP, NAME, TYPE, INSIDE)                                      \
    "<object type='OSDev' gp_index='" GP "' name='" NAME "' osdev_type='" TYPE \
    "'>" INSIDE "</object>"
#define PCI_GPU(GP, ADDRESS, INSIDE)                                   \
    "<object type='PCIDev' gp_index='" GP "' pci_busid='" ADDRESS "' " \
    "pci_type='0302 [10de:20b2] [10de:1463] a1'>" INSIDE "</object>"
#define PCI_NIC(GP, ADDRESS, INSIDE)                                   \
    "<object type='PCIDev' gp_index='" GP "' pci_busid='" ADDRESS "' " \
    "pci_type='0207 [15b3:1013] [15b3:0013] 00'>" INSIDE "</object>"
#define PORT(GP)                                             \
    "<object type='PCIDev' subtype='NVSwitch' gp_index='" GP \
    "' pci_busid='0000:c0:00.0' "                            \
    "pci_type='0680 [10de:1af1] [10de:1af1] a1'/>"

/* Two packages; a GPU and an InfiniBand NIC behind one PCIe switch under the first, another
 * GPU under the second; both on NVSwitches with 2 and 3 ports. */
#define SWITCHED                                           \
    BRIDGE ("5", "1-1", PCI_GPU ("6", "0000:07:00.0", "")) \
    BRIDGE ("7", "1-1",                                    \
            PCI_NIC ("8", "0000:08:00.0",                  \
                     OS_DEVICE ("9", "ib0", "2", "")       \
                         OS_DEVICE ("10", "mlx5_0", "3", "")))
#define SECOND_GPU                          \
    PCI_GPU ("14", "0000:87:00.0",          \
             OS_DEVICE ("15", "cuda1", "5", \
                        "<info name='GPUModel' value='NVIDIA A100-SXM4-80GB'/>"))
#define TWO_PACKAGES                                                              \
    HWLOC (PACKAGE ("2", "0x0f", "0x1",                                           \
                    "<info name='CPUModel' value='Test CPU'/>" NUMA ("0", "0x0f") \
                        BRIDGE ("3", "0-1", BRIDGE ("4", "1-1", SWITCHED)))       \
               PACKAGE ("12", "0xf0", "0x2",                                      \
                        NUMA ("1", "0xf0")                                        \
                            BRIDGE ("13", "0-1", SECOND_GPU PORT ("16") PORT ("17"))))

static const struct good goods[] = {
    {.name = "hwloc without GPUs",
     .format = "hwloc",
     .text = HWLOC (NUMA ("0", "0xff")) "</topology>",
     .note = "no GPUs found",
     .want = {{"nodes.0.name", "\"gpu7\""},
              {"nodes.0.gpus", "0"},
              {"nodes.0.gpu_type", "null"},
              {"nodes.0.numa", "[{\"id\":0,\"cpus\":\"0-7\"}]"},
              {"links", "null"}}},
    {.name = "hwloc with GPUs behind NVSwitches",
     .format = "hwloc",
     .text = TWO_PACKAGES
     "<distances2hetero nbobjs=\"4\" kind=\"25\" name=\"NVLinkBandwidth\">"
     "<indexes length=\"1\">PCIDev:6 OSDev:15 </indexes>"
     "<indexes length=\"1\">PCIDev:16 PCIDev:17 </indexes>"
     "<u64values length=\"1\">1000000 0 25000 25000 0 1000000 25000 50000 </u64values>"
     "<u64values length=\"1\">25000 25000 1000000 0 25000 50000 0 1000000 </u64values>"
     "</distances2hetero></topology>",
     .note = NULL,
     .want = {{"nodes.0.gpus", "2"},
              {"nodes.0.packages", "2"},
              {"nodes.0.cpu_model", "\"Test CPU\""},
              {"nodes.0.gpu_type", "\"a100-sxm4-80g\""},
              {"nodes.0.gpu_numa", "[0,1]"},
              {"nodes.0.gpu_cpus", "[\"0-3\",\"4-7\"]"},
              {"nodes.0.gpu_pci", "[\"0000:07:00.0\",\"0000:87:00.0\"]"},
              {"nodes.0.gpu_nic", "[\"mlx5_0\",\"mlx5_0\"]"},
              {"nodes.0.gpu_path", "[[\"X\",\"SYS\"],[\"SYS\",\"X\"]]"},
              /* 2 ports' worth of the first, 3 of the second: the lower. */
              {"links.intra.bandwidth_gb_per_s", "50.0"},
              {"links.intra.nominal", "true"}}},
    {.name = "NCCL topology with comments and NVLinks",
     .format = "nccl-topo",
     .text =
         "<!-- dumped --><system version=\"1\"><!-- <cpu> -->"
         "<cpu numaid=\"0\" affinity=\"00000000,0000000f\" arch=\"x86_64\">"
         "<pci busid=\"0000:02:00.0\" class=\"0x060400\" link_speed=\"\">"
         "<pci busid=\"0000:03:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
         "device=\"0x20b0\" link_speed=\"\"><gpu dev=\"0\" sm=\"80\" rank=\"0\">"
         "<nvlink target=\"0000:83:00.0\" count=\"4\" tclass=\"0x030200\"/>"
         "<nvlink target=\"0000:aa:00.0\" count=\"8\" tclass=\"0x068000\"/></gpu></pci>"
         "<pci busid=\"0000:04:00.0\" class=\"0x020700\"><nic>"
         "<net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\"/>"
         "<net name=\"mlx5_0\" dev=\"1\" speed=\"100000\" port=\"2\"/></nic></pci>"
         "</pci></cpu><cpu numaid=\"1\" affinity=\"00000000,000000f0\">"
         "<pci busid=\"0000:83:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
         "device=\"0x20b0\"><gpu dev=\"1\" sm=\"80\">"
         "<nvlink target=\"0000:03:00.0\" count=\"4\" tclass=\"0x030200\"/>"
         "<nvlink target=\"0000:aa:00.0\" count=\"6\" tclass=\"0x068000\"/></gpu></pci>"
         "</cpu></system>",
     .note = NULL,
     .want = {{"nodes.0.gpu_type", "\"a100-sxm4-40g\""},
              {"nodes.0.gpu_cpus", "[\"0-3\",\"4-7\"]"},
              {"nodes.0.gpu_path", "[[\"X\",\"NV10\"],[\"NV10\",\"X\"]]"},
              {"nodes.0.nics.0.gb_per_s", "25.0"},
              {"nodes.0.nics.1.name", "\"mlx5_0:2\""},
              {"nodes.0.nics.1.gb_per_s", "12.5"},
              {"nodes.0.gpu_nic.0", "\"mlx5_0\""},
              {"links.intra.bandwidth_gb_per_s", "200.0"}}},
    {.name = "NCCL skeleton without gpu, nvlink and classes",
     .format = "nccl-topo",
     .text = "<system version=\"1\"><cpu numaid=\"1\"><pci busid=\"0000:00:16.0\"/>"
             "<pci busid=\"0000:00:17.0\"/></cpu></system>",
     .note = "2 PCI devices have no class",
     .want = {{"nodes.0.gpus", "0"}, {"nodes.0.numa.0.id", "1"}}},
    {.name = "NCCL skeleton with classes",
     .format = "nccl-topo",
     .text = "<system version=\"1\"><cpu numaid=\"1\"><pci busid=\"0001:00:00.0\" "
             "class=\"0x030200\" link_speed=\"\"/><pci busid=\"0002:00:00.0\" "
             "class=\"0x030200\"/><pci busid=\"0101:00:00.0\" class=\"0x020700\"/>"
             "</cpu></system>",
     .note = "the description has no NVLinks",
     .want = {{"nodes.0.gpus", "2"},
              {"nodes.0.gpu_type", "null"},
              {"nodes.0.gpu_nic", "[\"0101:00:00.0\",\"0101:00:00.0\"]"},
              {"nodes.0.gpu_path.0.1", "\"NODE\""},
              {"links", "null"}}},
    {.name = "nvidia-smi with tabs, sorted otherwise, escapes, a legend",
     .format = "nvidia-smi",
     .text = "\t\033[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA "
             "ID\033[0m\r\n"
             "GPU0\t X \tNV4\tPIX\tSYS\t0-15,32-47\t0\t\tN/A\r\n"
             "GPU1\tNV4\t X \tSYS\tPXB\t16-31\t1\t\tN/A\r\n"
             "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\r\n"
             "NIC1\tSYS\tPXB\tSYS\t X \r\n\r\n"
             "Legend:\r\n\r\n  X    = Self\r\n\r\nNIC Legend:\r\n\r\n"
             "  NIC0: mlx5_3\r\n  NIC1: mlx5_4\r\n",
     .note = "the GPU type is unknown",
     .want = {{"nodes.0.gpus", "2"},
              {"nodes.0.gpu_numa", "[0,1]"},
              {"nodes.0.gpu_cpus", "[\"0-15,32-47\",\"16-31\"]"},
              {"nodes.0.gpu_nic", "[\"mlx5_3\",\"mlx5_4\"]"},
              {"nodes.0.gpu_path.1", "[\"NV4\",\"X\"]"}}},
    {.name = "nvidia-smi with blanks, NICs first in the rows below, no NUMA",
     .format = "nvidia-smi",
     .text = "$ nvidia-smi topo -m\n"
             "        GPU0    GPU1    mlx5_0  CPU Affinity\n"
             "mlx5_0  SYS     NODE     X\n"
             "GPU0     X      SOC     SYS     8-15\n"
             "GPU1    SOC      X      NODE    0-7\n",
     .note = "no NUMA column",
     .want = {{"nodes.0.gpu_numa", "[1,0]"},
              {"nodes.0.gpu_path.0.1", "\"SYS\""},
              {"nodes.0.gpu_nic", "[\"mlx5_0\",\"mlx5_0\"]"}}},
    {.name = "nvidia-smi of one GPU",
     .format = "nvidia-smi",
     .text = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\t0\n",
     .note = "the GPU type is unknown",
     .want = {{"nodes.0.gpus", "1"}, {"nodes.0.gpu_numa", "[0]"}}},
    {.name = "Slurm tree",
     .format = "slurm-topology",
     .text = "# leaf switches\nSwitchName=s0 Nodes=n[001-002,005]\n"
             "switchname=s1 nodes=n[003-004,004] LinkSpeed=100 # overlapping\n"
             "SwitchName=top Switches=s[0-1]\n",
     .note = NULL,
     .want = {{"nodes.2.name", "\"n005\""},
              {"nodes.0.switches", "[\"s0\",\"top\"]"},
              {"nodes.4.name", "\"n004\""},
              {"nodes.4.switches", "[\"s1\",\"top\"]"},
              {"nodes.5", "nothing"},
              {"nodes.0.gpus", "0"}}},
    {.name = "Slurm blocks",
     .format = "slurm-topology",
     .text = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\n"
             "BlockName=b3 Nodes=n[5-6]\nBlockSizes=2,4\n",
     .note = NULL,
     .want = {{"nodes.0.switches", "[\"b1\",\"b1..b2\"]"},
              {"nodes.3.switches", "[\"b2\",\"b1..b2\"]"},
              {"nodes.4.switches", "[\"b3\",\"b3..b3\"]"}}},
    {.name = "Slurm blocks behind a byte-order mark",
     .format = "slurm-topology",
     .text = "\xef\xbb\xbf"
             "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\n",
     .note = NULL,
     .want = {{"nodes.0.name", "\"n1\""}, {"nodes.3.name", "\"n4\""}}},
    {.name = "nvidia-smi behind a byte-order mark",
     .format = "nvidia-smi",
     .text = "\xef\xbb\xbf"
             "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\t0\n",
     .note = "the GPU type is unknown",
     .want = {{"nodes.0.gpus", "1"}}},
    {.name = "scontrol over several lines",
     .format = "slurm-nodes",
     .text = "NodeName=gpu-1 Arch=x86_64 CoresPerSocket=64 \n"
             "   Gres=gpu:a100:8(S:0-1),nic:2\n"
             "   OS=Linux 5.15 #1 SMP Fri Jan=2 \n   Sockets=2 Boards=1\n"
             "   State=IDLE+DRAIN ThreadsPerCore=1 Owner=N/A\n"
             "   Reason=NVLink errors on GPU 3 [root@2025-01-01T00:00:00]\n\n"
             "NodeName=gpu-2 Gres=gpu:4 State=MIXED Sockets=1\n"
             "NodeName=cpu-1 Gres=(null) State=IDLE\n",
     .note = NULL,
     .want = {{"nodes.0.gpus", "8"},
              {"nodes.0.packages", "2"},
              {"nodes.0.state", "\"drained\""},
              {"nodes.0.reason", "\"NVLink errors on GPU 3 [root@2025-01-01T00:00:00]\""},
              {"nodes.1.gpus", "4"},
              {"nodes.1.state", "\"ok\""},
              {"nodes.2.gpus", "0"}}},
    {.name = "scontrol: types that Slurm asked of the driver, and slices",
     .format = "slurm-nodes",
     .text = "NodeName=a Gres=gpu:nvidia_h100_80gb_hbm3:8(S:0-1) State=IDLE\n"
             "NodeName=b Gres=gpu:nvidia_a100_1g.10gb:7,gpu:a100:3 State=IDLE\n",
     .note = "node b: gpu:nvidia_a100_1g.10gb: slices of GPUs (MIG) are left out",
     .want = {{"nodes.0.gpu_type", "\"h100-sxm5-80g\""},
              {"nodes.1.gpus", "3"},
              {"nodes.1.gpu_type", "null"}}},
    {.name = "scontrol: states that take no jobs",
     .format = "slurm-nodes",
     .text =
         "NodeName=a State=IDLE+RESERVED\nNodeName=b State=IDLE+MAINTENANCE+RESERVED\n"
         "NodeName=c State=IDLE*+CLOUD\nNodeName=d State=DOWN+INVALID_REG\n"
         "NodeName=e State=idle$\nNodeName=f State=UNKNOWN\n"
         "NodeName=g State=ALLOCATED+REBOOT_ISSUED Reason=kernel\n",
     .note = NULL,
     .want = {{"nodes.0.state", "\"drained\""},
              {"nodes.0.reason", "\"IDLE+RESERVED\""},
              {"nodes.1.state", "\"drained\""},
              {"nodes.2.state", "\"drained\""},
              {"nodes.3.state", "\"drained\""},
              {"nodes.4.state", "\"drained\""},
              {"nodes.5.state", "\"drained\""},
              {"nodes.6.reason", "\"kernel\""}}},
    {.name = "scontrol: states that do",
     .format = "slurm-nodes",
     .text =
         "NodeName=a State=IDLE+PLANNED\nNodeName=b State=MIXED+CLOUD\n"
         "NodeName=c State=IDLE+DYNAMIC_FUTURE\nNodeName=d State=ALLOCATED+COMPLETING\n"
         "NodeName=e State=IDLE#\nNodeName=f State=MIXED+REBOOT_REQUESTED\n"
         "NodeName=g State=IDLE-\n",
     .note = NULL,
     .want = {{"nodes.0.state", "\"ok\""},
              {"nodes.1.state", "\"ok\""},
              {"nodes.2.state", "\"ok\""},
              {"nodes.3.state", "\"ok\""},
              {"nodes.4.state", "\"ok\""},
              {"nodes.5.state", "\"ok\""},
              {"nodes.6.state", "\"ok\""}}},
    {.name = "ibnetdiscover",
     .format = "ibnetdiscover",
     .text = "#\n# Topology file: generated\n#\nvendid=0x2c9\n"
             "switchguid=0xa1(a1)\nSwitch\t4 \"S-00000000000000a1\"\t\t# \"MF0;leaf1:"
             "MQM8700/U1\" enhanced port 0 lid 1\n"
             "[1]\t\"H-0000000000000001\"[1](1) \t\t# \"node1 HCA-1\" lid 4\n"
             "[2]\t\"H-0000000000000002\"[1](2) \t\t# \"node2 HCA-1\" lid 5\n"
             "[3]\t\"S-00000000000000c1\"[1]\t\t# \"MF0;spine:MQM8700/U1\" lid 3\n\n"
             "switchguid=0xa2(a2)\nSwitch\t4 \"S-00000000000000a2\"\t\t# \"MF0;leaf2:"
             "MQM8700/U1\"\n"
             "[1]\t\"H-0000000000000003\"[1](3) \t\t# \"node3 HCA-1\" lid 6\n"
             "[3]\t\"S-00000000000000c1\"[2]\n\n"
             "switchguid=0xc1(c1)\nSwitch\t4 \"S-00000000000000c1\"\t\t# \"MF0;spine:"
             "MQM8700/U1\"\n[1]\t\"S-00000000000000a1\"[3]\n[2]\t"
             "\"S-00000000000000a2\"[3]\n\n"
             "caguid=0x1\nCa\t1 \"H-0000000000000001\"\t\t# \"node1 HCA-1\"\n"
             "[1](1) \t\"S-00000000000000a1\"[1]\n\n"
             "caguid=0x2\nCa\t1 \"H-0000000000000002\"\t\t# \"node2 HCA-1\"\n"
             "[1](2) \t\"S-00000000000000a1\"[2]\n\n"
             "caguid=0x3\nCa\t1 \"H-0000000000000003\"\t\t# \"node3 HCA-1\"\n"
             "[1](3) \t\"S-00000000000000a2\"[1]\n",
     .note = NULL,
     .want = {{"nodes.0.name", "\"node1\""},
              {"nodes.1.switches.0", "\"leaf1\""},
              {"nodes.2.switches.0", "\"leaf2\""},
              {"nodes.3", "nothing"}}},
};

/* What a file says, and a part of a note (NULL: none may come). */
static void expect_import (const char *name, const char *file, const char *text,
                           const char *note, const char *const (*want)[2])
{
    json_t *doc = NULL;
    struct notes notes = {0};
    struct error err = {""};

    if (topology_import (file, text, strlen (text), "auto", &doc, &notes, &err) != ST_OK)
        fail_msg ("%s: %s", name, err.text);
    if (note ? !noted (&notes, note) : notes.n > 0)
        fail_msg ("%s: notes begin with \"%s\"", name, notes.n > 0 ? notes.line[0] : "");
    expect_values (name, doc, want);
    expect_readable (name, doc);
    json_decref (doc);
    notes_free (&notes);
}

TEST (good_files)
{
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        const struct good *g = &goods[i];
        const struct text_choice *f = topology_format_detect (g->text, strlen (g->text));

        if (!f || strcmp (f->name, g->format) != 0)
            fail_msg ("%s: taken for %s", g->name, f ? f->name : "nothing");
        expect_import (g->name, "dir/host.x", g->text, g->note, g->want);
    }
}

/* Switches tell distances: 0 under one leaf, 1 across the spine. */
TEST (hops)
{
    const struct good *g = &goods[sizeof goods / sizeof *goods - 1];
    struct topology_cluster *c = NULL;
    json_t *doc;
    struct error err = {""};

    ok (topology_import ("x", g->text, strlen (g->text), "auto", &doc, NULL, &err), &err);
    ok (topology_cluster_from_json_partial (doc, "x", NULL, &c, NULL, &err), &err);
    assert_int_equal (topology_hops (c, 0, 1), 0);
    assert_int_equal (topology_hops (c, 0, 2), 1);
    assert_int_equal (topology_hops (c, 2, 1), 1);
    topology_cluster_destroy (c);
    json_decref (doc);
}

#define NCCL(INSIDE) "<system version=\"1\"><cpu numaid=\"0\">" INSIDE "</cpu></system>"
#define TREE(LINES) "SwitchName=a Nodes=n1\n" LINES

static const struct {
    const char *text, *says;
} bads[] = {
    {"", "an empty file"},
    {"hello\n", "the table of `nvidia-smi topo -m`"},
    {"= ROCm System Management Interface =\n  GPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n",
     "not in a known format"},
    {"\x1f\x8b\x08\x00", "gzip"},
    /* XML */
    {"<?xml version=\"1.0\"?><!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
     "\"&a;&a;&a;&a;&a;&a;&a;&a;\">]><topology version=\"2.0\">&b;</topology>",
     "entit"},
    {"<!DOCTYPE topology [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>"
     "<topology version=\"2.0\">&x;</topology>",
     "entit"},
    {HWLOC (NUMA ("0", "0xff")), "line 1"}, /* cut off */
    {"<topology version=\"1\"></topology>", "version 2 or 3"},
    {"<topology version=\"2.0\"></topology>", "without a Machine"},
    {HWLOC (PCI_GPU ("2", "nonsense", "")) "</topology>",
     "pci_busid: expected a PCI address, found \"nonsense\""},
    {HWLOC (PCI_GPU ("2", "0000:07:00.0", "")
                PCI_GPU ("3", "0000:07:00.0", "")) "</topology>",
     "two GPUs at the PCI address 0000:07:00.0"},
    {HWLOC (PCI_GPU (
         "2", "0000:07:00.0",
         "")) "<distances2 type=\"PCIDev\" nbobjs=\"2\" name=\"NVLinkBandwidth\">"
              "<indexes>2 3</indexes><u64values>1 2 "
              "3</u64values></distances2></topology>",
     "expected 2 x 2 values, found 3"},
    {"<graphs version=\"1\"></graphs>", "an NCCL graph"},
    {NCCL ("<pci class=\"0x030200\"/>"), "busid: expected a PCI address"},
    {NCCL ("<pci busid=\"0000:01:00.0\" class=\"0x020700\"><nic><net name=\"a\"/>"
           "<net name=\"a\"/></nic></pci>"),
     "the NIC a is named twice"},
    /* nvidia-smi */
    {"\tGPU0\tGPU1\nGPU0\t X \tNV1\n", "row GPU1: missing: the table is cut off"},
    {"\tGPU0\tGPU1\nGPU0\t X \nGPU1\tNV1\t X \n", "expected 2 cells"},
    {"\tGPU0\tGPU1\nGPU0\t X \tFOO\nGPU1\tNV1\t X \n", "found \"FOO\""},
    {"\tGPU0\tGPU0\tGPU1\n", "names GPU0 twice"},
    {"\tGPU0\tGPU2\tCPU Affinity\nGPU0\t X \tSYS\nGPU2\tSYS\t X \n", "GPU1 is missing"},
    {"\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU0\tSYS\t X \n", "appears twice"},
    {"\tGPU0\tmlx5_0\tmlx5_0\tCPU Affinity\n", "names mlx5_0 twice"},
    /* Slurm */
    {TREE ("SwitchName=a Nodes=n2\n"), "line 2: two switches or blocks are named a"},
    {TREE ("SwitchName=b Nodes=n1\n"), "under two switches: node n1"},
    {TREE ("SwitchName=b Switches=c\n"), "no switch is named c"},
    {TREE ("SwitchName=b Switches=c\nSwitchName=c Switches=b\n"), "a cycle"},
    {TREE ("BlockName=b Nodes=n2\n"), "do not mix"},
    {TREE ("SwitchName=b Nodes=n[1-2000000]\n"), "line 2"},
    {TREE ("SwitchName=b Nodes=n[3-1]\n"), "line 2"},
    {"SwitchName=a\n", "no Nodes="},
    {"BlockName=b Nodes=n1\nBlockSizes=4,2\n", "ascending"},
    {"NodeName=n1 Gres=gpu:2\nNodeName=n1 Gres=gpu:2\n", "node n1 appears twice"},
    {"NodeName=n1 Gres=gpu:a100:99999\n", "Gres: expected gpu:TYPE:COUNT"},
    {"NodeName=n1 Gres=gpu:1\n Reason=caf\xe9\n", "line 2: not UTF-8"},
    {"NodeName=-n Gres=gpu:1\n", "expected a node's name"},
    /* ibnetdiscover */
    {"switchguid=0x1\nSwitch 4 nothing\n", "line 2: expected a device"},
    {"switchguid=0x1\n[1] \"S-1\"[1]\n", "a cable before any Switch"},
    {"switchguid=0x1\nSwitch 4 \"S-1\" # \"x\"\n", "no host at a switch"},
};

TEST (bad_files)
{
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        json_t *doc = NULL;
        struct error err = {""};
        enum status st = topology_import ("bad.x", bads[i].text, strlen (bads[i].text),
                                          "auto", &doc, NULL, &err);

        if (st != ST_INVALID || doc || !strstr (err.text, bads[i].says))
            fail_msg ("\"%.60s\": status %d, \"%s\" does not say \"%s\"", bads[i].text,
                      st, err.text, bads[i].says);
    }

    json_t *doc = NULL;
    struct error err = {""};

    assert_int_equal (topology_import ("x", "a", 1, "lstopo", &doc, NULL, &err),
                      ST_USAGE);
    assert_non_null (strstr (err.text, "expected auto, hwloc"));
}

/* Every prefix of every good file, and every good file with bytes changed, is read or
 * refused with a message. */
TEST (damaged_files)
{
    struct rng r = {7};

    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        size_t len = strlen (goods[i].text);

        for (int k = 0; k < 400; k++) {
            char *text = strdup (goods[i].text);
            size_t n = k % 2 ? len : (size_t) rng_below (&r, (int) len);
            json_t *doc = NULL;
            struct error err = {""};
            enum status st;

            text[n] = '\0';
            for (int c = rng_below (&r, 4); c > 0 && n > 0; c--)
                text[rng_below (&r, (int) n)] = (char) (1 + rng_below (&r, 255));
            st = topology_import ("x", text, n, goods[i].format, &doc, NULL, &err);
            assert_true (st == ST_OK ? doc != NULL : !doc && err.text[0]);
            if (doc)
                expect_readable (goods[i].name, doc);
            json_decref (doc);
            free (text);
        }
    }
}

/* ---- the published files ---- */

#define DATA "../shared/data/topology/"

static const struct {
    const char *file;
    const char *note; /* as in goods */
    const char *want[8][2];
} published[] = {
    {"hwloc/32em64t-2n8c2t-pci-wholeio.hwloc-2.9.0.xml",
     "the description has no NVLinks",
     {{"nodes.0.name", "\"conan\""},
      {"nodes.0.gpus", "3"},
      {"nodes.0.packages", "2"},
      {"nodes.0.gpu_numa", "[0,1,1]"},
      {"nodes.0.gpu_cpus.0", "\"0-7,16-23\""},
      {"nodes.0.gpu_path.1", "[\"SYS\",\"X\",\"PHB\"]"},
      {"nodes.0.gpu_nic.2", "\"mlx5_0\""}}},
    {"hwloc/32em64t-2n8c2t-pci-wholeio.hwloc-2.14.0.xml",
     "the description has no NVLinks",
     {{"nodes.0.gpu_pci", "[\"0000:03:00.0\",\"0000:83:00.0\",\"0000:84:00.0\"]"}}},
    {"hwloc/nvidiaDGX2.hwloc-2.14.0.xml",
     "Tesla V100-SXM3-32GB-H",
     {{"nodes.0.gpus", "16"},
      {"nodes.0.gpu_numa", "[0,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1]"},
      {"nodes.0.gpu_path.0.1", "\"PIX\""},
      {"links.intra.bandwidth_gb_per_s", "150.0"}}}, /* 6 links of 25 GB/s */
    {"hwloc/power8gpudistances.hwloc-2.14.0.xml",
     "Tesla P100-SXM2-16GB",
     {{"nodes.0.gpus", "4"},
      {"nodes.0.gpu_numa", "[0,0,1,1]"},
      {"links.intra.bandwidth_gb_per_s.0", "[null,40.0,null,null]"}}},
    {"hwloc/power8gpudistances.hwloc-2.9.0.xml",
     "Tesla P100-SXM2-16GB",
     {{"links.intra.bandwidth_gb_per_s.3", "[null,null,40.0,null]"}}},
    {"nccl-topo/g5.48xl-topo.xml",
     "9 PCI devices have no class",
     {{"nodes.0.gpus", "0"}, {"nodes.0.numa.1.id", "1"}}},
    {"nccl-topo/nc48v4-topo.xml",
     NULL,
     {{"nodes.0.gpus", "2"},
      {"nodes.0.gpu_type", "\"a100-pcie-80g\""},
      {"nodes.0.gpu_cpus", "[\"0-23\",\"24-47\"]"},
      {"nodes.0.gpu_path.0.1", "\"NV12\""},
      {"nodes.0.nics.0.gb_per_s", "12.5"}}},
    {"nccl-topo/ncv4-topo.xml",
     "lead to itself",
     {{"nodes.0.gpus", "4"},
      {"nodes.0.gpu_numa", "[0,1,2,3]"},
      {"nodes.0.gpu_path.0", "[\"X\",\"SYS\",\"SYS\",\"SYS\"]"}}},
    {"nccl-topo/ndv2-topo.xml",
     "the description has no NVLinks",
     {{"nodes.0.gpus", "8"},
      {"nodes.0.gpu_numa", "[0,0,0,0,1,1,1,1]"},
      {"nodes.0.gpu_nic.7", "\"0101:00:00.0\""}}},
    {"nccl-topo/ndv4-topo.xml",
     "the description has no NVLinks",
     {{"nodes.0.gpu_numa", "[1,1,0,0,3,3,2,2]"},
      {"nodes.0.gpu_nic.5", "\"0106:00:00.0\""}}},
    {"nccl-topo/ndv5-topo.xml",
     "the description has no NVLinks",
     {{"nodes.0.gpu_numa", "[0,0,0,0,1,1,1,1]"}, {"nodes.0.gpu_cpus.7", "\"48-95\""}}},
    {"nccl-topo/p4d-24xl-topo.xml",
     "the description has no NVLinks",
     {{"nodes.0.gpus", "8"},
      {"nodes.0.gpu_type", "\"a100-sxm4-40g\""},
      {"nodes.0.gpu_nic.4", "\"0000:90:1b.0\""},
      {"links.intra.bandwidth_gb_per_s", "240.0"}}},
    {"nccl-topo/p4de-24xl-topo.xml",
     "the description has no NVLinks",
     {{"nodes.0.gpu_type", "\"a100-sxm4-80g\""},
      {"nodes.0.gpu_nic.1", "\"0000:10:1b.0\""}}},
    {"nccl-topo/p5.48xl-topo.xml",
     "32 PCI devices have no class",
     {{"nodes.0.gpus", "0"}}},
    {"smi-topo/dgx1_v100_8gpu_4ib.txt",
     "no NUMA column",
     {{"nodes.0.gpu_numa", "[0,0,0,0,1,1,1,1]"},
      {"nodes.0.gpu_nic", "[\"mlx5_0\",\"mlx5_0\",\"mlx5_1\",\"mlx5_1\",\"mlx5_2\","
                          "\"mlx5_2\",\"mlx5_3\",\"mlx5_3\"]"},
      {"nodes.0.gpu_path.7.3", "\"NV1\""}}},
    {"smi-topo/oneflow_v100_8gpu_1ib_spaces.txt",
     "no NUMA column",
     {{"nodes.0.gpus", "8"},
      {"nodes.0.gpu_cpus.4", "\"12-23,36-47\""},
      {"nodes.0.gpu_path.0.4", "\"NV2\""}}},
    {"smi-topo/pcie_8gpu_6plus2_numa.txt",
     "the GPU type is unknown",
     {{"nodes.0.gpu_numa", "[0,0,0,0,0,0,1,1]"}, {"nodes.0.gpu_path.6.7", "\"PHB\""}}},
    {"smi-topo/power9_4gpu_4ib.txt",
     "no NUMA column",
     {{"nodes.0.gpu_nic", "[\"mlx5_0\",\"mlx5_1\",\"mlx5_2\",\"mlx5_3\"]"},
      {"nodes.0.gpu_path.2.3", "\"NV3\""}}},
    {"smi-topo/v100_2ib_6gpu_nccl243.txt",
     "no NUMA column",
     {{"nodes.0.gpu_nic",
       "[\"mlx5_0\",\"mlx5_0\",\"mlx5_0\",\"mlx5_1\",\"mlx5_1\",\"mlx5_1\"]"}}},
    {"smi-topo/v100_4gpu_nv1nv2.txt",
     "no NUMA column",
     {{"nodes.0.gpu_path.3", "[\"NV2\",\"NV1\",\"NV2\",\"X\"]"}}},
    {"smi-topo/v100_8gpu_1nic_newformat.txt",
     "the GPU type is unknown",
     {{"nodes.0.gpu_numa", "[0,0,0,0,1,1,1,1]"}, {"nodes.0.gpu_nic.0", "\"NIC0\""}}},
};

TEST (published_files)
{
    SKIP_WITHOUT (DATA);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        char path[256], *text;
        size_t len;
        struct error err = {""};

        snprintf (path, sizeof path, DATA "%s", published[i].file);
        ok (file_read (path, &text, &len, &err), &err);
        expect_import (path, path, text, published[i].note, published[i].want);
        free (text);
    }

    char *text;
    size_t len;
    json_t *doc = NULL;
    struct error err = {""};

    ok (file_read (DATA "nccl-topo/ncv4-graph.xml", &text, &len, &err), &err);
    assert_int_equal (topology_import ("g", text, len, "auto", &doc, NULL, &err),
                      ST_INVALID);
    assert_non_null (strstr (err.text, "an NCCL graph"));
    free (text);
}

/* Masks of CPUs as NCCL and hwloc write them, also ones that hwloc's reader would abort on. */
TEST (lists_of_cpus)
{
    static const struct {
        const char *mask, *list;
    } cpus[] = {{"0000000f", "0-3"},
                {"1,00000000", "32"},
                {",00000000,0000000f", "0-3"},
                {",,00000003", "0-1"},
                {",", NULL},
                {"f,", NULL},
                {"", NULL},
                {"x", NULL}};

    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        char *list = machine_cpus (cpus[i].mask);

        if (cpus[i].list)
            assert_string_equal (list, cpus[i].list);
        else
            assert_null (list);
        free (list);
    }
}
