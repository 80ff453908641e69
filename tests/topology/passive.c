/* What the fabric already knows becomes links files and counters: NCCL Inspector, perfquery,
 * ibdiagnet, nvidia-smi, DCGM; empty, foreign and cut-off files are refused with their place.
 * The texts are written in the style of each tool. */
#include "tests/lib/imported.h"

#include "topology/edit/edit.h"

static void refused (const char *format, const char *text, const char *words)
{
    struct error err = {""};
    json_t *doc = NULL;

    assert_int_equal (import_as (format, text, strlen (text), &doc, &err), ST_INVALID);
    if (!strstr (err.text, words))
        fail_msg ("\"%s\" does not say \"%s\"", err.text, words);
}

static const json_t *counter (const json_t *doc, size_t i)
{
    return json_array_get (
        json_object_get (json_object_get (doc, "measured"), "counters"), i);
}

/* A count of the i-th place; -1: none. */
static long long count_of (const json_t *doc, size_t i, const char *name)
{
    const json_t *v =
        json_object_get (json_object_get (counter (doc, i), "counts"), name);

    return v ? json_integer_value (v) : -1;
}

/* ---- NCCL Inspector ---- */

#define RECORD(ID, RANK, RANKS, NODES, HOST, PERF)                                       \
    "{\"header\":{\"id\":\"" ID "\",\"rank\":" RANK ",\"n_ranks\":" RANKS                \
    ",\"nnodes\":" NODES "},\"metadata\":{\"inspector_output_format_version\":\"v4.0\""  \
    ",\"dump_timestamp_us\":1767700800000000,\"hostname\":\"" HOST "\",\"pid\":7}," PERF \
    "}\n"
#define COLL(BYTES, BW)                                                                  \
    "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":1,\"coll_msg_size_bytes\":" BYTES \
    ",\"coll_exec_time_us\":9,\"coll_busbw_gbs\":" BW "}"
#define P2P(OP, PEER, BYTES, BW)                          \
    "\"p2p_perf\":{\"p2p\":\"" OP "\",\"p2p_peer\":" PEER \
    ",\"p2p_msg_size_bytes\":" BYTES ",\"p2p_exec_time_us\":9,\"p2p_busbw_gbs\":" BW "}"

static double inter (const json_t *doc, size_t i, size_t j)
{
    const json_t *m = json_object_get (
        json_object_get (json_object_get (doc, "links"), "inter"), "bandwidth_gb_per_s");

    return json_number_value (json_array_get (json_array_get (m, i), j));
}

TEST (inspector)
{
    json_t *doc = imported (
        RECORD ("0xa", "0", "2", "2", "n1", COLL ("1000000", "20"))
            RECORD ("0xb", "1", "4", "3", "n2", P2P ("Send", "2", "5000", "99")) RECORD (
                "0xb", "1", "4", "3", "n2", P2P ("Send", "2", "90000", "31"))
                RECORD ("0xb", "2", "4", "3", "n3", P2P ("Recv", "1", "90000", "33"))
                    RECORD ("0xb", "2", "4", "3", "n3", P2P ("Send", "3", "90000", "33"))
                        RECORD ("0xb", "1", "4", "3", "n2", COLL ("90000", "44"))
                            RECORD ("0xc", "1", "8", "1", "n2", COLL ("90000", "310"))
                                RECORD ("0xa", "1", "2", "2", "n2",
                                        COLL ("1000", "3")) "{\"header\":{\"id\":\"0x",
        "nccl-inspector");
    const json_t *measured = json_object_get (doc, "measured"),
                 *links = json_object_get (doc, "links");

    CLOSE (inter (doc, 0, 1), 20.0, 1e-9); /* the largest message alone */
    CLOSE (inter (doc, 1, 0), 20.0, 1e-9);
    CLOSE (inter (doc, 1, 2), 32.8, 1e-6); /* the rate that one in ten exceeds */
    CLOSE (json_number_value (
               json_object_get (json_object_get (links, "intra"), "bandwidth_gb_per_s")),
           310.0, 1e-9);
    assert_string_equal (json_member_text (measured, "load"), "busy");
    assert_string_equal (json_member_text (measured, "when"), "2026-01-06T12:00:00Z");
    assert_true (noted ("1 lines are no whole JSON objects, the first is line 9"));
    assert_true (noted ("1 collectives of more than two ranks"));
    assert_true (noted ("1 operations are left out: no record tells the host"));
    json_decref (doc);
    refused ("auto", RECORD ("0xa", "2", "2", "2", "n1", COLL ("1", "20")),
             "f: line 1: header.rank: expected");
    refused ("auto", RECORD ("0xa", "0", "2", "2", "n1", COLL ("1", "-20")),
             "coll_perf.coll_busbw_gbs: expected");
    refused ("auto", RECORD ("0xa", "0", "2", "2", "n1", P2P ("Bcast", "1", "1", "20")),
             "f: line 1: p2p_perf.p2p: expected Send or Recv, found \"Bcast\"");
    refused ("auto", RECORD ("0xb", "1", "4", "3", "n2", COLL ("90000", "44")),
             "neither links nor counters in this output of nccl-inspector");
}

/* Two jobs in one text may use one name for their communicators: that is said. */
TEST (two_jobs)
{
    json_t *doc = imported (RECORD ("0xa", "0", "2", "2", "n1", COLL ("1", "20"))
                                RECORD ("0xa", "1", "2", "2", "n2", COLL ("1", "20"))
                                    RECORD ("0xa", "1", "2", "2", "n3", COLL ("1", "20")),
                            "nccl-inspector");

    CLOSE (inter (doc, 0, 2), 20.0, 1e-9);
    assert_true (noted ("1 records name another host for a rank"));
    json_decref (doc);
}

/* ---- counters ---- */

#define PORT(LID, SYMBOLS)                                                              \
    "# Port extended counters: Lid " LID " port 1 (CapMask: 0x5300 CapMask2: 0x0002)\n" \
    "PortSelect:......................1\nCounterSelect:...................0x0000\n"     \
    "PortXmitData:....................36298026860928\n"                                 \
    "SymbolErrorCounter:.............." SYMBOLS "\nLinkDownedCounter:..............."   \
    "2\nPortXmitWait:....................22730501\n"

TEST (perfquery)
{
    struct error err = {""};
    json_t *doc = imported (PORT ("17", "5") PORT ("18", "0"), "perfquery");

    assert_int_equal (count_of (doc, 0, "symbol_error"), 5);
    assert_int_equal (count_of (doc, 1, "symbol_error"), 0);
    assert_int_equal (count_of (doc, 0, "link_downed"), 2);
    assert_int_equal (count_of (doc, 0, "transmit_wait"), 22730501);
    assert_string_equal (json_member_text (counter (doc, 1), "port"), "lid 18 port 1");
    /* The text does not say whose it is. */
    assert_int_equal (topology_counters_named (doc, "f", &err), ST_USAGE);
    assert_non_null (strstr (err.text, "give --name NODE"));
    ok (topology_rename_node (doc, "n7", &err), &err);
    ok (topology_counters_named (doc, "f", &err), &err);
    assert_string_equal (json_member_text (counter (doc, 0), "node"), "n7");
    assert_int_equal (topology_rename_node (doc, "n8", &err), ST_USAGE);
    json_decref (doc);
    refused ("auto", PORT ("17", "x5"),
             "f: line 5: SymbolErrorCounter: expected a count, found \"x5\"");
    refused ("perfquery", "SymbolErrorCounter:......4\n",
             "f: line 1: expected `# Port counters: Lid N port N`");
    refused ("auto", PORT ("17", ""), "expected a count, found nothing");
    refused (
        "auto", PORT ("1234567890123456", "5"),
        "f: line 1: expected `Lid N port N` with numbers of up to 10 digits, found \"# "
        "Port extended counters: Lid 1234567890123456");
    refused ("auto", PORT ("", "5"), "f: line 1: expected `Lid N port N`");
    refused ("perfquery", "PortSelect:.....1\n",
             "neither links nor counters in this output of perfquery");
}

#define FABRIC                                                                          \
    "START_NODES\nNodeDesc,NumPorts,NodeType,NodeGUID\n\"n1 mlx5_0\",1,1,0xa\n"         \
    "\"n2 mlx5_1\",1,1,0xb\n\"MF0;leaf:MQM9700/U1\",65,2,0xc\nEND_NODES\n"              \
    "START_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n0xa,1,0xc,7\nEND_LINKS\n"      \
    "START_PM_INFO\nNodeGUID,PortGUID,PortNumber,LinkDownedCounter,SymbolErrorCounter," \
    "SymbolErrorCounterExt\n"

TEST (ibdiagnet)
{
    json_t *doc = imported (FABRIC "0xa,0xa,1,0,65535,70000\n0xb,0xb,1,1,N/A,3\n"
                                   "0xc,0xc,7,4,0,0\n0xc,0xc,9,4,0,0\nEND_PM_INFO\n",
                            "ibdiagnet");

    assert_int_equal (count_of (doc, 0, "symbol_error"), 70000); /* the wider one */
    assert_string_equal (json_member_text (counter (doc, 0), "node"), "n1");
    assert_string_equal (json_member_text (counter (doc, 0), "port"), "mlx5_0/1");
    assert_int_equal (count_of (doc, 1, "symbol_error"), 3);
    /* The switch's end of n1's cable. */
    assert_string_equal (json_member_text (counter (doc, 2), "node"), "n1");
    assert_string_equal (json_member_text (counter (doc, 2), "port"),
                         "mlx5_0/1 (switch)");
    assert_true (noted ("3 counters are left out: they are of ports between switches"));
    json_decref (doc);
    doc =
        imported ("START_NODES\nNodeDesc,NodeType,NodeGUID\nn1 mlx\xff,1,0xa\nEND_NODES\n"
                  "START_PM_INFO\nNodeGUID,PortNumber,SymbolErrorCounter\n0xa,1,3\n"
                  "END_PM_INFO\n",
                  "ibdiagnet");
    assert_string_equal (json_member_text (counter (doc, 0), "port"), "mlx?/1");
    json_decref (doc);
    refused ("auto", FABRIC "0xa,0xa,1,0,bad,0\nEND_PM_INFO\n",
             "f: line 13: SymbolErrorCounter: expected a count, found \"bad\"");
    refused ("auto", FABRIC "0xa,0xa,1,0,0,0\n",
             "f: line 11: expected the table's END_ line, found the end of the file");
    refused ("ibdiagnet", "START_PM_INFO\nA,B\n1,2\nEND_PM_INFO\n",
             "expected NodeGUID and PortNumber");
}

TEST (nvlinks)
{
    json_t *doc = imported ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aa)\n"
                            "\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 4\n"
                            "\t Link 0: CRC Errors: 9\n\n\t Link 1: Replay Errors: 2\n"
                            "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-bb)\n"
                            "\t Link 0: Replay Errors: 1\n",
                            "nvlink");

    assert_string_equal (json_member_text (counter (doc, 0), "uuid"), "GPU-aa");
    assert_int_equal (count_of (doc, 0, "nvlink_recovery"), 4);
    assert_int_equal (count_of (doc, 0, "nvlink_crc"), 9);
    assert_string_equal (json_member_text (counter (doc, 1), "port"), "nvlink 1");
    assert_int_equal (json_member_int (counter (doc, 2), "gpu"), 1);
    json_decref (doc);
    doc = imported ("+-----------------------------+----------+\n"
                    "| NVLINK Error Counts                    |\n"
                    "| GPU 3                                  |\n"
                    "| Link 0                      |          |\n"
                    "| -> CRC FLIT Error           | 7        |\n"
                    "| -> Replay Error             | 1        |\n",
                    "nvlink");
    assert_int_equal (json_member_int (counter (doc, 0), "gpu"), 3);
    assert_int_equal (count_of (doc, 0, "nvlink_crc_flit"), 7);
    assert_int_equal (count_of (doc, 0, "nvlink_replay"), 1);
    json_decref (doc);
    refused ("nvlink", "Link 0: Replay Errors: 3\n", "f: line 1: expected a GPU");
    refused ("nvlink",
             "GPU 0: x\nLink 0: Replay Errors: 3\nLink 123456780: Replay Errors: 3\n",
             "f: line 3: expected a GPU");
    refused ("nvlink", "GPU 0: x\nLink 0: Replay Errors: many\n", "found \"many\"");
}

TEST (dcgm)
{
    json_t *doc = imported (
        "# TYPE DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL counter\n"
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu=\"1\",UUID=\"GPU-a\",Hostname="
        "\"n1\"} 12\n"
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{gpu=\"1\", "
        "UUID=\"GPU-a\",Hostname="
        "\"n1\"} 9223372036854775794\n"
        "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-a\",Hostname=\"n1\"} 40\n",
        "dcgm");

    assert_string_equal (json_member_text (counter (doc, 0), "node"), "n1");
    assert_string_equal (json_member_text (counter (doc, 0), "uuid"), "GPU-a");
    assert_int_equal (count_of (doc, 0, "nvlink_replay"), 12);
    assert_int_equal (count_of (doc, 0, "nvlink_recovery"), -1); /* DCGM's blank */
    json_decref (doc);
    doc = imported (
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu=\"1\",UUID=\"G\x1b\xff\"} 1\n",
        "dcgm");
    assert_string_equal (json_member_text (counter (doc, 0), "uuid"), "G??");
    json_decref (doc);
    refused ("auto",
             "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu=\"00000000000000001\",UUID="
             "\"G\"} 1\n",
             "f: line 1: expected a label gpu=\"N\"");
    refused ("auto", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{UUID=\"G\"} 1\n",
             "f: line 1: expected a label gpu=\"N\"");
    refused ("auto",
             "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu=\"0\",UUID=\"G\"}\n",
             "expected a count after the labels");
}

TEST (dcgm_csv)
{
    json_t *doc =
        imported ("timestamp,Hostname,gpu,UUID,DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_"
                  "TOTAL,nvlink_crc_flit_error_count_total,DCGM_FI_DEV_GPU_TEMP\n"
                  "10:00,n1,0,GPU-a,3,,40\n"
                  "10:00,n2:9400,0,\"GPU-b\",0,9,40\n\n"
                  "11:00,n1,0,GPU-a,7,2,41\n",
                  "dcgm");

    assert_string_equal (json_member_text (counter (doc, 0), "node"), "n1");
    assert_string_equal (json_member_text (counter (doc, 0), "uuid"), "GPU-a");
    assert_int_equal (count_of (doc, 0, "nvlink_replay"), 7);
    assert_int_equal (count_of (doc, 0, "nvlink_crc_flit"), 2);
    assert_string_equal (json_member_text (counter (doc, 1), "node"), "n2");
    assert_string_equal (json_member_text (counter (doc, 1), "uuid"), "GPU-b");
    assert_int_equal (count_of (doc, 1, "nvlink_replay"), 0);
    json_decref (doc);
    doc = imported ("Entity,NVLINK_RECOVERY_ERROR_COUNT_TOTAL\nGPU 5,1\n", "dcgm");
    assert_int_equal (json_member_int (counter (doc, 0), "gpu"), 5);
    json_decref (doc);
    refused ("auto", "gpu,DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL\n0,1,2\n",
             "f: line 2: expected 2 cells, found 3");
    refused ("auto", "gpu,DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL\nx,1\n",
             "f: line 2: expected a GPU's number, found \"x\"");
    refused ("auto", "gpu,DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL\n0,many\n",
             "found \"many\"");
    refused ("auto", "time,DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL\n0,1\n",
             "f: line 1: expected a column gpu");
    refused ("auto", "gpu,DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL\n0,1\n",
             "neither links nor counters");
}

TEST (foreign)
{
    refused ("auto", "", "found none of these");
    refused ("auto", "hello\n", "NCCL Inspector");
    refused ("dcgm", "hello\n", "neither links nor counters in this output of dcgm");
    refused ("nccl-inspector", "hello\n",
             "neither links nor counters in this output of nccl-inspector");
}
