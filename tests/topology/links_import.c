/* Other tools' output becomes links: who sends to whom, in which unit, what is assumed and
 * what is refused.  Samples are written in the style of each tool; the collected real files
 * are read where they lie beside the checkout. */
#include "tests/lib/imported.h"

#define NEAR(A, B) assert_true (fabs ((A) - (double) (B)) <= 1e-6 * fabs ((double) (B)))
#define REAL "../shared/data/links/"

/* An entry of links.PART, in the file's unit; NAN for null. */
static double at (json_t *doc, const char *part, const char *what, size_t i, size_t j)
{
    json_t *o = json_object_get (json_object_get (doc, "links"), part);

    o = json_object_get (o, what);
    if (json_is_array (o))
        o = json_array_get (json_array_get (o, i), j);
    assert_non_null (o);
    return json_is_null (o) ? NAN : json_number_value (o);
}

static double bandwidth (json_t *doc, const char *part, size_t i, size_t j)
{
    return at (doc, part, "bandwidth_gb_per_s", i, j);
}

static const char *node_name (json_t *doc, size_t i)
{
    return json_string_value (
        json_object_get (json_array_get (json_object_get (doc, "nodes"), i), "name"));
}

#define NCCL_HEAD(OP)                                                                  \
    "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n"              \
    "# Collective test starting: " OP "\n"                                             \
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 " \
    "iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
#define NCCL_COLUMNS                                                                    \
    "#\n#       size         count      type   redop    root     time   algbw   busbw " \
    "#wrong     time   algbw   busbw #wrong\n"                                          \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"

TEST (nccl_pairs)
{
    /* Two runs in one file.  40 us + bytes / 10 GB/s. */
    json_t *doc = imported (
        NCCL_HEAD (
            "sendrecv_perf") "#  Rank  0 Group  0 Pid   6899 on alpha device  0 "
                             "[0000:04:00] NVIDIA H100 80GB HBM3\n"
                             "#  Rank  1 Group  0 Pid   6900 on beta device  0 "
                             "[0000:04:00] NVIDIA H100 80GB HBM3\n"
                             "NCCL version 2.28.7+cuda13.0\n" NCCL_COLUMNS
                             "     4000000       1000000     float    none      -1   "
                             "440.0    9.09    9.09      0   "
                             "441.0    9.07    9.07    N/A\n"
                             "    40000000      10000000     float    none      -1  "
                             "4040.0    9.90    9.90      0   "
                             "4041.0    9.89    9.89    N/A\n"
                             "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "
                             "9.5\n#\n" NCCL_HEAD (
                                 "sendrecv_perf") "#  Rank  0 Group  0 Pid   6899 on "
                                                  "alpha device  0 [0000:04:00] NVIDIA "
                                                  "H100 80GB HBM3\n"
                                                  "#  Rank  1 Group  0 Pid   6900 on "
                                                  "gamma device  0 [0000:04:00] NVIDIA "
                                                  "H100 80GB HBM3\n"
                                                  "gamma: Test NCCL failure "
                                                  "common.cu:961 'remote process "
                                                  "exited'\n",
        "nccl-tests");

    assert_string_equal (node_name (doc, 2), "gamma");
    NEAR (bandwidth (doc, "inter", 0, 1), 9.9);
    NEAR (bandwidth (doc, "inter", 1, 0), 9.9);
    assert_true (isnan (bandwidth (doc, "inter", 0, 2)));
    assert_true (fabs (at (doc, "inter", "latency_us", 0, 1) - 40) < 1e-3);
    assert_string_equal (
        json_string_value (json_object_get (
            json_array_get (json_object_get (doc, "nodes"), 0), "gpu_type")),
        "h100-sxm5-80g");

    char *text = json_dumps (doc, 0);

    assert_non_null (strstr (text, "the run printed no result"));
    free (text);
    json_decref (doc);
}

/* Launchers put a rank or a time before each line; another process's lines say nothing. */
TEST (nccl_prefixed)
{
#define AT "2025-11-05 10:00:00 [1,0]<stdout>: "
    json_t *doc = imported (
        "2025-11-05 09:59:59 [1,0]<stdout>: # Collective test starting: "
        "sendrecv_perf\n" AT
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 "
        "iters: 20\n" AT "#  Rank  0 Group  0 Pid 1 on a device  0 [04] NVIDIA L4\n" AT
        "#  Rank  1 Group  0 Pid 2 on b device  0 [07] NVIDIA L4\n" AT
        "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
        "2025-11-05 10:00:01 [1,1]<stdout>: b: a line of rank 1\n"
        "7 of a library\n"
        /* a number with more digits */
        "2025-11-05 10:00:10 [1,10]<stdout>: "
        "  1000000  250000  float  none  -1  108.0  9.26  9.26  0\n",
        "nccl-tests");

    NEAR (bandwidth (doc, "inter", 0, 1), 9.26);
    assert_false (noted ("says nothing about links"));
    json_decref (doc);
}

TEST (nccl_rings)
{
    json_t *doc = imported (
        NCCL_HEAD ("all_reduce_perf") "#  Rank  0 Group  0 Pid 1 on n9 device  0 "
                                      "[0000:04:00] NVIDIA A100-SXM4-80GB\n"
                                      "#  Rank  1 Group  0 Pid 2 on n9 device  1 "
                                      "[0000:05:00] NVIDIA A100-SXM4-80GB\n"
                                      "#  Rank  2 Group  0 Pid 3 on n9 device  2 "
                                      "[0000:06:00] NVIDIA A100-SXM4-80GB\n" NCCL_COLUMNS
                                      "        1024           256     float     sum      "
                                      "-1    20.0    0.05    0.07      0    "
                                      "20.0    0.05    0.07      0\n"
                                      "  1073741824     268435456     float     sum      "
                                      "-1  6225.0  172.49  229.98      0  "
                                      "6225.0  172.49  229.98      0\n",
        "nccl-tests");

    NEAR (bandwidth (doc, "intra", 0, 1), 229.98);
    assert_true (noted ("used for every pair inside nodes"));
    json_decref (doc);

    /* 4 ranks on 2 nodes: alltoall sends 2 of each rank's 3 shares off the node. */
    doc = imported (
        "# nThread 1 nGpus 1 minBytes 1 maxBytes 1 step: 2(factor) warmup iters: 1 "
        "iters: 20\n"
        "#   Rank  0 Pid 1 on n1 device  0 [0x04] Tesla V100-SXM2-16GB\n"
        "#   Rank  1 Pid 2 on n1 device  1 [0x05] Tesla V100-SXM2-16GB\n"
        "#   Rank  2 Pid 3 on n2 device  0 [0x04] Tesla V100-SXM2-16GB\n"
        "#   Rank  3 Pid 4 on n2 device  1 [0x05] Tesla V100-SXM2-16GB\n" NCCL_COLUMNS
        "     1048576        262144     float    none      -1   100.0   10.00    7.50    "
        "  0   "
        "100.0   10.00    7.50      0\n",
        "nccl-tests");
    NEAR (at (doc, "inter", "node_gb_per_s", 0, 0), 2 * 2 / 3.0 * 7.5);
    assert_true (isnan (bandwidth (doc, "inter", 0, 1)));
    json_decref (doc);
}

/* A pair of single GPUs: the matrix stands over all GPUs that the node is known to have. */
TEST (nccl_devices)
{
    json_t *doc = imported (
        NCCL_HEAD (
            "sendrecv_perf") "#  Rank  0 Group  0 Pid 1 on box device  0 [04] NVIDIA L4\n"
                             "#  Rank  1 Group  0 Pid 2 on box device  3 [07] NVIDIA "
                             "L4\n" NCCL_COLUMNS
                             "     1000000        250000     float    none      -1   "
                             "108.0    9.26    9.26      0   "
                             "108.0    9.26    9.26    N/A\n",
        "nccl-tests");

    NEAR (bandwidth (doc, "gpu", 3, 0), 9.26);
    assert_true (isnan (bandwidth (doc, "gpu", 1, 2)));
    json_decref (doc);
}

TEST (nccl_json)
{
    /* One process drives two GPUs, and only its first is listed. */
    json_t *doc = imported (
        "{\"version\":2,\"start_time\":\"2025-01-01 00:00:00\","
        "\"args\":[\"./build/"
        "sendrecv_perf\",\"-J\",\"f\"],\"env\":[],\"nccl_version\":22809,"
        "\"config\":{\"nthreads\":1,\"ngpus\":2,\"devices\":[{\"rank\":0,\"group\":0,"
        "\"pid\":1,"
        "\"hostname\":\"lab\",\"device\":0,\"device_hex\":\"0000:01:00\",\"device_info\":"
        "\"NVIDIA "
        "L4\"}]},\"results\":[{\"size\":1000000,\"count\":250000,\"type\":\"float\","
        "\"redop\":\"none\",\"root\":\"    "
        "-1\",\"out_of_place\":{\"time\":108.0,\"alg_bw\":9.26,"
        "\"bus_bw\":9.26,\"nwrong\":0.0},\"in_place\":{\"time\":108.0,\"alg_bw\":9.2,"
        "\"bus_bw\":9.2,\"nwrong\":null}},{\"size\":10000000,\"count\":2500000,\"type\":"
        "\"float\",\"redop\":\"none\",\"root\":\"    "
        "-1\",\"out_of_place\":{\"time\":1008.0,"
        "\"alg_bw\":9.92,\"bus_bw\":9.92,\"nwrong\":0.0},\"in_place\":null}],"
        "\"out_of_bounds\":{\"count\":0,\"okay\":\"true\"}}",
        "nccl-tests");

    NEAR (bandwidth (doc, "gpu", 0, 1), 9.92);
    NEAR (bandwidth (doc, "gpu", 1, 0), 9.92);
    assert_true (fabs (at (doc, "gpu", "latency_us", 1, 0) - 8) < 1e-3);
    json_decref (doc);
}

/* The arrow that is printed is the reverse of the flow. */
TEST (nvbandwidth)
{
    const char *text =
        "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nDevice 0: NVIDIA "
        "L40S "
        "(00000000:01:00)\nDevice 1: NVIDIA L40S (00000000:02:00)\n\n"
        "Running device_to_device_memcpy_read_ce.\n"
        "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "           0         1\n 0       N/A     21.00\n 1     23.00       N/A\n\n"
        "SUM device_to_device_memcpy_read_ce 44.00\n\n"
        "Running device_to_device_memcpy_write_ce.\n"
        "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"
        "           0         1\n 0       N/A     23.50\n 1     21.50       N/A\n\n"
        "Running device_to_device_bidirectional_memcpy_read_ce.\n"
        "memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)\n"
        "           0         1\n 0       N/A      1.00\n 1      1.00       N/A\n\n"
        "Running device_to_device_memcpy_read_sm.\n"
        "memcpy SM GPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "           0         1\n 0       N/A      9.00\n 1      9.00       N/A\n\n"
        "Running device_to_device_latency_sm.\n"
        "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)\n"
        "           0         1\n 0       N/A    800.00\n 1    900.00       N/A\n";
    json_t *doc = imported (text, "nvbandwidth");

    NEAR (bandwidth (doc, "gpu", 0, 1), 23.25); /* the mean of both tests */
    NEAR (bandwidth (doc, "gpu", 1, 0), 21.25);
    NEAR (at (doc, "gpu", "latency_us", 1, 0), 0.8);
    assert_true (noted ("named n0"));
    json_decref (doc);

    doc = imported (
        "{\"nvbandwidth\":{\"CUDA Runtime Version\":12070,\"testcases\":["
        "{\"name\":\"host_to_device_memcpy_ce\",\"bandwidth_matrix\":[[\"12.3\",\"12.4\"]"
        "],"
        "\"status\":\"Passed\"},{\"name\":\"device_to_device_memcpy_write_ce\","
        "\"status\":"
        "\"Waived\"},{\"name\":\"device_to_device_memcpy_read_ce\",\"bandwidth_"
        "description\":"
        "\"memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\",\"bandwidth_matrix\":"
        "[[\"N/A\",\"276.07\"],[\"275.1\",\"N/A\"]],\"status\":\"Passed\"}]}}",
        "nvbandwidth");
    NEAR (bandwidth (doc, "gpu", 1, 0), 276.07);
    NEAR (bandwidth (doc, "gpu", 0, 1), 275.1);
    json_decref (doc);

    doc =
        imported ("nvbandwidth Version: v0.7\n"
                  "Process 0 (rack-1): device 0: HGX GB200 (00000008:01:00)\n"
                  "Process 1 (rack-1): device 1: HGX GB200 (00000009:01:00)\n"
                  "Process 2 (rack-2): device 0: HGX GB200 (00000008:01:00)\n\n"
                  "Running multinode_device_to_device_memcpy_read_ce.\n"
                  "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
                  "           0         1         2\n 0       N/A     11.00     12.00\n"
                  " 1     10.00       N/A     13.00\n 2     20.00     21.00       N/A\n",
                  "nvbandwidth");
    NEAR (bandwidth (doc, "gpu", 2, 0), 12);
    NEAR (bandwidth (doc, "gpu", 0, 2), 20);
    assert_string_equal (node_name (doc, 1), "rack-2");
    json_decref (doc);
}

TEST (p2p)
{
    json_t *doc = imported (
        "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
        "Device: 0, NVIDIA A100-SXM4-40GB, pciBusID: 7, pciDeviceID: 0, pciDomainID:0\n"
        "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n"
        "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n"
        "   D\\D     0      1 \n     0 1100.00  30.00 \n     1  31.00 1100.00 \n"
        "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
        "   D\\D     0      1 \n     0 1100.00  20.00 \n     1  21.00 1100.00 \n"
        "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n"
        "   D\\D     0      1 \n     0 1100.00  99.00 \n     1  99.00 1100.00 \n"
        "P2P=Disabled Latency Matrix (us)\n"
        "   GPU     0      1 \n     0   2.00  18.00 \n     1  18.00   2.00 \n\n"
        "   CPU     0      1 \n     0   3.00   9.00 \n     1   9.00   3.00 \n"
        "P2P=Enabled Latency (P2P Writes) Matrix (us)\n"
        "   GPU     0      1 \n     0   2.00   2.70 \n     1   2.80   2.00 \n\n"
        "   CPU     0      1 \n     0   3.00   1.00 \n     1   1.00   3.00 \n",
        "p2p");

    NEAR (bandwidth (doc, "gpu", 0, 1), 20);
    NEAR (bandwidth (doc, "gpu", 1, 0), 21);
    NEAR (at (doc, "gpu", "latency_us", 0, 1), 2.7);
    assert_true (noted ("copies through the host are faster"));
    assert_string_equal (
        json_string_value (json_object_get (
            json_array_get (json_object_get (doc, "nodes"), 0), "gpu_type")),
        "a100-sxm4-40g");
    json_decref (doc);

    /* Reads pull from the column's GPU. */
    doc = imported (
        "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n"
        "   D\\D     0      1 \n     0 1100.00  20.00 \n     1  21.00 1100.00 \n",
        "p2p");
    NEAR (bandwidth (doc, "gpu", 1, 0), 20);
    json_decref (doc);
}

TEST (mpigraph)
{
    const double mib = 1048576.0 / 1e9;
    json_t *doc = imported (
        "START mpiGraph v1.5\nMsgSize\t100663296\n\n1 of 2 (50.0%)\nGathering results\n\n"
        "Send max\t14493.356528\n\n"
        "Send\tx:0\ty:1\t\nx:0 to\t0.000\t300.000\t\ny:1 to\t200.000\t0.000\t\n\n"
        "Recv max\t1.0\n\nRecv\tx:0\ty:1\t\nx:0 from\t0.000\t202.000\t\ny:1 "
        "from\t302.000\t"
        "0.000\t\nEND mpiGraph\n",
        "mpigraph");

    NEAR (bandwidth (doc, "inter", 0, 1), 301 * mib);
    NEAR (bandwidth (doc, "inter", 1, 0), 201 * mib);
    json_decref (doc);

    doc = imported ("Recv,x:0,x:1,y:2,\nx:0,0.0,10.0,30.0,\nx:1,20.0,0.0,40.0,\n"
                    "y:2,50.0,60.0,0.0,\n",
                    "mpigraph");
    NEAR (bandwidth (doc, "gpu", 2, 0), 30 * mib);
    NEAR (bandwidth (doc, "gpu", 0, 2), 50 * mib);
    json_decref (doc);
}

TEST (osu)
{
    json_t *doc =
        imported ("# OSU MPI-CUDA Allreduce Latency Test v7.5\n1 9.5\n"
                  "# OSU MPI-CUDA Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n"
                  "# Size      Bandwidth (MB/s)\n1                       0.89\n"
                  "4194304             23947.73\n"
                  "# OSU MPI-CUDA Latency Test v7.5\n# Size       Avg Latency(us)\n"
                  "1                       2.37\n2                       2.40\n",
                  "osu");

    NEAR (bandwidth (doc, "inter", 0, 1), 23.94773);
    assert_true (isnan (bandwidth (doc, "inter", 1, 0)));
    NEAR (at (doc, "inter", "latency_us", 1, 0), 2.37);
    json_decref (doc);

    doc = imported ("# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n"
                    "# [ pairs: 15 ] [ window size: 64 ]\n"
                    "# Size                  MB/s        Messages/s\n"
                    "1                       6.39        6385003.80\n"
                    "4194304             90000.00          21457.67\n",
                    "osu");
    NEAR (at (doc, "inter", "node_gb_per_s", 0, 0), 90);
    json_decref (doc);
}

TEST (tables)
{
    json_t *doc =
        imported ("# gpus/node=4 MiB/s recv_from\n,a,b\na,,1000\nb,nan,\n", "matrix");

    NEAR (bandwidth (doc, "inter", 1, 0), 1.048576);
    assert_true (isnan (bandwidth (doc, "inter", 0, 1)));
    assert_true (noted ("4 GPUs per node"));
    json_decref (doc);

    doc = imported ("a,b,delay_ms,gbps\nx,y,67,0.8\n", "pairs");
    NEAR (bandwidth (doc, "inter", 1, 0), 0.1);
    NEAR (at (doc, "inter", "latency_us", 0, 1), 67000);
    json_decref (doc);

    doc = imported ("src,dst,gb_per_s\nx,y,3\ny,x,4\nx,y,5\nx,y,9\n", "pairs");
    NEAR (bandwidth (doc, "inter", 0, 1), 5);
    NEAR (bandwidth (doc, "inter", 1, 0), 4);
    json_decref (doc);

    doc = imported ("from,to,bandwidth_gb_per_s,latency_us\nx,y,3,5\ny,x,4,6\n", "pairs");
    NEAR (bandwidth (doc, "inter", 0, 1), 3);
    NEAR (bandwidth (doc, "inter", 1, 0), 4);
    json_decref (doc);

    doc = imported (
        "{\"name\":\"D\",\"gpus_per_node\":16,\"alpha\":0.5,\"node_betas_list\":[8],"
        "\"remote_alpha\":2.5,\"remote_beta\":100}",
        "taccl");
    NEAR (bandwidth (doc, "intra", 0, 1), 125);
    NEAR (bandwidth (doc, "inter", 0, 1), 10);
    NEAR (at (doc, "inter", "latency_us", 0, 1), 2.5);
    json_decref (doc);
}

TEST (refused)
{
    static const struct {
        const char *format, *text, *why;
        enum status st;
    } bad[] = {
        {"auto", "", "found none of these", ST_INVALID},
        {"auto", "hello\n", "found none of these", ST_INVALID},
        {"auto", "{\"nodes\":[]}", "found none of these", ST_INVALID},
        {"iperf", "", "format: expected auto", ST_USAGE},
        {"p2p", "nothing here\n", "neither links nor counters in this output",
         ST_INVALID},
        {"auto",
         "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D  0  1\n     0 1 "
         "2\n",
         "line 3: expected row 1 of a matrix of 2, found the end", ST_INVALID},
        {"auto",
         "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D  0  1\n     0 1 "
         "x\n",
         "line 3: expected a number, found \"x\"", ST_INVALID},
        {"auto", "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D  0  2\n",
         "line 2: expected column 1", ST_INVALID},
        {"matrix", ",a,b\na,,1\n", "expected 2 rows, found 1", ST_INVALID},
        {"matrix", ",a,b\nb,,1\na,1,\n",
         "expected row 1 of 2, in the order of the columns", ST_INVALID},
        {"matrix", ",a,a\n", "\"a\" appears twice", ST_INVALID},
        {"matrix", ",a,b\na,,1e30\nb,1,\n",
         "a bandwidth of 1e+30 GB/s is impossible for a link", ST_INVALID},
        {"matrix", ",a,b\na,,-1\nb,1,\n", "expected a number > 0, found \"-1\"",
         ST_INVALID},
        {"matrix", ",a,b\na,,0x10\nb,1,\n", "found \"0x10\"", ST_INVALID},
        {"pairs", "src,dst,gb_per_s\nx,x,3\n", "line 2: a link from \"x\" to itself",
         ST_INVALID},
        {"pairs", "src,dst,gb_per_s\nx,y\n", "expected at least 3 cells", ST_INVALID},
        {"pairs", "src,dst\nx,y\n", "expected columns", ST_INVALID},
        {"mpigraph", "Send\tx:0\ty:1\nx:0 to\t0.0\t1.0\n", "expected 2 rows, found 1",
         ST_INVALID},
        {"nccl-tests", "{\"results\":[]}", "config.devices: expected an array",
         ST_INVALID},
        {"nccl-tests", "# nThread 1 nGpus 1\n#  Rank  0 on x device 99999 [1] y\n",
         "expected a device's number", ST_INVALID},
        {"nvbandwidth",
         "{\"nvbandwidth\":{\"testcases\":[{\"name\":"
         "\"device_to_device_memcpy_read_ce\",\"bandwidth_matrix\":[[\"N/A\"],[]]}]}}",
         "testcases[0].bandwidth_matrix[0]: expected a row as long", ST_INVALID},
        {"taccl",
         "{\"name\":\"x\",\"gpus_per_node\":8,\"alpha\":1,\"node_betas_list\":[1],"
         "\"remote_alpha\":1,\"remote_beta\":0}",
         "remote_beta: expected a number > 0", ST_INVALID},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {""};
        json_t *doc = NULL;
        enum status st =
            import_as (bad[i].format, bad[i].text, strlen (bad[i].text), &doc, &err);

        if (st != bad[i].st || !strstr (err.text, bad[i].why))
            fail_msg ("%s: status %d, \"%s\", expected \"%s\"", bad[i].text, st, err.text,
                      bad[i].why);
        assert_null (doc);
    }

    struct error err = {""};
    json_t *doc = NULL;

    assert_int_equal (import_as ("auto", "a\0b", 3, &doc, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "binary"));
    assert_int_equal (topology_links_import ("no/such", "auto", &doc, NULL, &err), ST_IO);
}

/* More nodes or columns than a document holds are bad input, not lack of memory. */
TEST (too_many)
{
    struct text pairs = {0}, matrix = {0};

    text_add (&pairs, "src,dst,gb_per_s\n");
    for (int i = 0; i <= 4096; i++) {
        text_add (&pairs, "h%d,h%d,1\n", i, i + 1);
        text_add (&matrix, ",h%d", i);
    }

    const struct {
        const char *format;
        const struct text *text;
        const char *why;
    } bad[] = {{"pairs", &pairs, "f: expected at most 4096 nodes, found more"},
               {"matrix", &matrix, "f: line 1: more than 4096 columns"}};

    for (size_t i = 0; i < 2; i++) {
        struct error err = {""};
        json_t *doc = NULL;
        enum status st = import_as (bad[i].format, text_str (bad[i].text),
                                    bad[i].text->len, &doc, &err);

        if (st != ST_INVALID || !strstr (err.text, bad[i].why))
            fail_msg ("%s: status %d, \"%s\"", bad[i].format, st, err.text);
        assert_null (doc);
    }
    text_free (&pairs);
    text_free (&matrix);
}

/* Cutting a file anywhere, or breaking any byte, never crashes. */
TEST (broken)
{
    static const char *const text[] = {
        NCCL_HEAD (
            "sendrecv_perf") "#  Rank  0 Group  0 Pid 1 on a device  0 [04] NVIDIA L4\n"
                             "#  Rank  1 Group  0 Pid 2 on b device  0 [04] NVIDIA "
                             "L4\n" NCCL_COLUMNS "  1000  250 float none -1 440.0 9.09 "
                             "9.09 0 441.0 9.07 9.07 N/A\n",
        "nvbandwidth Version: v0.7\nProcess 0 (r): device 0: X (8)\n"
        "Running device_to_device_memcpy_read_ce.\nGPU(row) -> GPU(column)\n 0 1\n 0 N/A "
        "2\n 1 3 "
        "N/A\n",
        "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n 0 1 2\n 1 3 4\n",
        "Send\tx:0\ty:1\nx:0 to\t0.0\t1.0\ny:1 to\t2.0\t0.0\n",
        "# OSU MPI Bandwidth Test\n1 0.89\n4 2\n",
        "{\"0\":{\"gpus\":[\"a\",\"b\"],\"bandwidth\":[[1,2],[3,4]]},\"1\":{\"gpus\":["
        "\"a\",\"b\"],"
        "\"bandwidth\":[[1,2],[3,4]]}}",
        "# c\n,a,b\na,,1\nb,2,\n",
        "a,b,gbps\nx,y,1\n"};

    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        size_t len = strlen (text[i]);

        for (size_t cut = 0; cut < len; cut++)
            for (int change = 0; change < 2; change++) {
                char *copy = strdup (text[i]);
                json_t *doc = NULL;

                assert_non_null (copy);
                if (change)
                    copy[cut] = (char) (copy[cut] ^ 0x11);
                else
                    copy[cut] = '\0';
                if (import_as ("auto", copy, change ? len : cut, &doc, NULL) == ST_OK)
                    json_decref (doc);
                free (copy);
            }
    }
}

/* ---- the collected files ---- */

static json_t *real (const char *name)
{
    struct error err = {""};
    json_t *doc = NULL;

    notes_free (&notes);
    if (topology_links_import (name, "auto", &doc, &notes, &err) != ST_OK)
        fail_msg ("%s", err.text);
    return doc;
}

TEST (real_files)
{
    /* One entry of each, read off by hand: bandwidth in the file's unit, direction as the
     * tool means it. */
    static const struct {
        const char *file, *part;
        size_t i, j, nodes;
        double bandwidth;
    } entry[] = {
        {"nvbw/h100_hgx8_nvbandwidth_v0.10.txt", "gpu", 3, 2, 1, 395.08},
        {"nvbw/h100_hgx8_nvbandwidth_v0.10.txt", "gpu", 2, 3, 1, 395.23},
        {"nvbw/a6000x6_nvbandwidth_v0.8.txt", "gpu", 3, 0, 1, 21.95},
        {"nvbw/a6000x6_nvbandwidth_v0.8.txt", "gpu", 0, 3, 1, 21.82},
        {"nvbw/gb200_2node_multinode_v0.7.txt", "gpu", 7, 0, 2, 797.95},
        {"nvbw/gb200_2node_multinode_v0.7.txt", "gpu", 0, 7, 2, 797.88},
        {"p2ptest/h100_hgx8_p2p.txt", "gpu", 0, 1, 1, 365.30},
        {"p2ptest/h100_hgx8_p2p.txt", "gpu", 2, 1, 1, 393.28},
        {"p2ptest/6gpu_pcie_p2p_slower_than_nop2p_nccl814.txt", "gpu", 2, 0, 1, 10.01},
        {"p2ptest/a100_80gb_pcie8_bidir_nccl841.txt", "gpu", 0, 2, 1, 24.71},
        {"p2ptest/rtxpro6000x4_5090x2_dualturin.txt", "gpu", 0, 3, 1, 50.97},
        {"p2ptest/titanrtx8_pcie_nop2p.txt", "gpu", 1, 0, 1, 9.92},
        {"p2ptest/stas_a100_h100_gb200.txt", "gpu", 2, 1, 3, 276.90},
        {"pipette/mpigraph_raw_log_file", "inter", 0, 1, 2,
         0.5 * (14493.357 + 14497.701) * 1048576e-9},
        {"pipette/mpigraph_send_file.log", "inter", 1, 0, 2, 11072.496 * 1048576e-9},
        {"pipette/mpigraph_recv_file.log", "inter", 1, 0, 2, 11072.472 * 1048576e-9},
        {"pipette/mpigraph_file.json", "inter", 0, 1, 2,
         0.5 * (14493.357 + 14497.701) * 1048576e-9},
        {"matrices/pipette_16xA100node_time_0_send_to_MiBps.csv", "inter", 0, 1, 16,
         16716.9 * 1048576e-9},
        {"matrices/pipette_16xA100node_time_0_recv_from_MiBps.csv", "inter", 1, 0, 16,
         19635.4 * 1048576e-9},
        {"nccl-pairwise/cluster00_sendrecv_perf_G1_1024MiB.csv", "inter", 0, 3, 17, 6.36},
        {"nccl-pairwise/cluster01_sendrecv_perf_G1_16384MiB.csv", "inter", 2, 5, 10,
         43.93},
        {"nccl-pairwise/xxrjun_pairwise_long.csv", "inter", 17, 18, 27, 43.78},
        {"taccl/topo-dgx2-1MB.json", "intra", 0, 1, 2, 125},
        {"taccl/topo-ndv2-1MB.json", "inter", 0, 1, 2, 1e3 / 105},
        {"wan/dtfm_aws_regions.csv", "inter", 1, 0, 10, 0.79 / 8},
    };

    SKIP_WITHOUT (REAL);
    for (size_t k = 0; k < sizeof entry / sizeof *entry; k++) {
        char path[256];

        snprintf (path, sizeof path, REAL "%s", entry[k].file);

        json_t *doc = real (path);
        double bw = bandwidth (doc, entry[k].part, entry[k].i, entry[k].j);

        if (fabs (bw - entry[k].bandwidth) > 1e-6 * entry[k].bandwidth ||
            json_array_size (json_object_get (doc, "nodes")) != entry[k].nodes)
            fail_msg ("%s: [%zu][%zu] is %.7g of %zu nodes, expected %.7g of %zu",
                      entry[k].file, entry[k].i, entry[k].j, bw,
                      json_array_size (json_object_get (doc, "nodes")),
                      entry[k].bandwidth, entry[k].nodes);
        json_decref (doc);
    }
}

TEST (products)
{
    static const struct {
        const char *product;
        double memory;
        const char *type;
    } p[] = {{"NVIDIA H100 80GB HBM3", 8.5e10, "h100-sxm5-80g"},
             {"NVIDIA H100 80GB HBM3", 6.8e10, NULL}, /* a 64 GB variant */
             {"NVIDIA H100 PCIe", 0, "h100-pcie-80g"},
             {"NVIDIA H200", 0, "h200-sxm-141g"},
             {"NVIDIA GB200", 0, "gb200-192g"},
             {"NVIDIA B200", 0, "b200-192g"},
             {"NVIDIA A100-SXM4-40GB", 4.2e10, "a100-sxm4-40g"},
             {"NVIDIA A100 80GB PCIe", 0, "a100-pcie-80g"},
             {"NVIDIA L4", 0, "l4"},
             {"NVIDIA L40S", 0, "l40s"},
             {"NVIDIA L40", 0, "l40"},
             {"NVIDIA A10", 0, "a10"},
             {"NVIDIA A10G", 0, "a10g"},
             {"NVIDIA H20", 0, "h20-96g"},
             {"NVIDIA GH200 480GB", 1.02e11, "gh200-96g"},
             {"NVIDIA GH200 144G HBM3e", 1.54e11, "gh200-144g"},
             {"NVIDIA GeForce RTX 5090", 0, "rtx-5090"},
             {"NVIDIA GeForce RTX 5090 D", 0, NULL},
             {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 0, "rtx-pro-6000"},
             {"NVIDIA GeForce RTX 3090 Ti", 0, "rtx-3090-ti"},
             {"", 0, NULL}};

    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        const char *got = topology_gpu_type_of_product (p[i].product, p[i].memory);

        if (!got != !p[i].type || (got && strcmp (got, p[i].type) != 0))
            fail_msg ("%s: %s", p[i].product, got ? got : "no type");
    }
}
