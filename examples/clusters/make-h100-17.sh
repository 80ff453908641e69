#!/bin/sh
# make-h100-17.sh DIR >h100-17.json: write the example cluster from the published figures.
#
# DIR holds nccl-pairwise/ and p2ptest/: the pairwise nccl-tests results of
# github.com/xxrjun/nccl-tests-cluster at commit 455de4f (cluster00: 17 nodes with 8 H100
# 80GB HBM3 each, nccl-tests 2.17.6, NCCL 2.28.7, one-gibibyte messages), and the
# p2pBandwidthLatencyTest report of another server with 8 H100 on NVSwitch.
# examples/README.md tells what is taken and why.
set -eu
dir=$1
sendrecv=$dir/nccl-pairwise/cluster00_sendrecv_perf_G1_1024MiB.csv
alltoall=$dir/nccl-pairwise/cluster00_alltoall_perf_G8_1024MiB.csv
long=$dir/nccl-pairwise/xxrjun_pairwise_long.csv
p2p=$dir/p2ptest/h100_hgx8_p2p.txt

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# Off-diagonal entries of the matrix that follows the given title.
matrix() { awk -v title="$1" 'index($0, title) { on = 1; row = -2; next } /Matrix/ { on = 0 }
    on && ++row >= 0 { for (i = 2; i <= NF; i++) if (i - 2 != row) print $i }' "$p2p"; }
intra=$(matrix 'Unidirectional P2P=Enabled Bandwidth' | median)
intra_us=$(matrix 'P2P=Enabled Latency' | median)

# Start of a message: for each pair the intercept of time over bytes, least squares with
# relative weights over 32 MiB to 1 GiB; the median pair.
alpha=$(awk -F, '$1 == "cluster00" && $2 == 1 && $5 == "sendrecv_perf" && $6 <= 1073741824 {
        k = $3 "," $4; w = 1 / ($7 * $7); x = $6; y = $7
        s[k] += w; sx[k] += w * x; sy[k] += w * y; sxx[k] += w * x * x; sxy[k] += w * x * y }
    END { for (k in s) print (sxx[k] * sy[k] - sx[k] * sxy[k]) / (s[k] * sxx[k] - sx[k] ^ 2) }' \
    "$long" | median)

awk -F, -v intra="$intra" -v intra_us="$intra_us" -v alpha="$alpha" '
    function entry(x) { return x == "" || x == "nan" ? "null" : x }
    # What 8 GPUs send to 8: of 16 ranks each has 8 of its 15 peers on the other node.
    function together(busbw) { return busbw == "null" ? busbw : sprintf("%.1f", 8 * 8 / 15 * busbw) }
    function rows(m,    i, j) {
        for (i = 1; i <= nodes; i++) {
            printf "        ["
            for (j = 1; j <= nodes; j++) printf "%s%s", m[i, j], j < nodes ? ", " : ""
            printf "]%s\n", i < nodes ? "," : ""
        }
    }
    # Median over a node'\''s pairs of the upper mode, as what its NICs reach together.
    function node_total(row,    i, j, n, v, t) {
        for (i = 1; i <= nodes; i++) if (all[row, i] + 0 >= 20) v[++n] = all[row, i] + 0
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        t = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        return together(t)
    }
    /^#/ { next }
    FNR < 3 && $1 == "" { next }
    FNR == NR { name[++nodes] = $1; for (i = 2; i <= NF; i++) one[nodes, i - 1] = entry($i); next }
    { r++; for (i = 2; i <= NF; i++) { all[r, i - 1] = entry($i); pair[r, i - 1] = together(entry($i)) } }
    END {
        print "{"
        print "  \"version\": 1,"
        print "  \"name\": \"h100-17\","
        print "  \"source\": \"github.com/xxrjun/nccl-tests-cluster at 455de4f (Apache-2.0), cluster00: nccl-tests 2.17.6, NCCL 2.28.7, 17 nodes of 8 H100 80GB HBM3\","
        print "  \"nodes\": ["
        for (i = 1; i <= nodes; i++)
            printf "    {\"name\": \"%s\", \"gpus\": 8, \"gpu_type\": \"h100-sxm5-80g\"}%s\n", name[i], i < nodes ? "," : ""
        print "  ],"
        print "  \"links\": {"
        print "    \"intra\": {"
        print "      \"source\": \"p2pBandwidthLatencyTest on another server with 8 H100 80GB HBM3 on NVSwitch (driver 595.71.05): median of the unidirectional P2P bandwidths and of the P2P latencies\","
        printf "      \"bandwidth_gb_per_s\": %.1f,\n", intra
        printf "      \"latency_us\": %.2f\n", intra_us
        print "    },"
        print "    \"inter\": {"
        print "      \"source\": \"bandwidth: busbw of sendrecv, 1 GPU a node, 1 GiB; null: the pair failed. latency: median intercept of time over bytes, 32 MiB to 1 GiB. node_pair_gb_per_s: 8 x 8/15 x busbw of alltoall with 8 GPUs a node, 1 GiB (16 ranks, 8 of the 15 peers of each are off-node); null: the pair failed. node_gb_per_s: the median of a node'\''s pairs whose busbw is above 20 GB/s\","
        print "      \"bandwidth_gb_per_s\": ["
        rows(one)
        print "      ],"
        printf "      \"latency_us\": %.1f,\n", alpha
        printf "      \"node_gb_per_s\": ["
        for (i = 1; i <= nodes; i++) printf "%s%s", node_total(i), i < nodes ? ", " : ""
        print "],"
        print "      \"node_pair_gb_per_s\": ["
        rows(pair)
        print "      ]"
        print "    }"
        print "  }"
        print "}"
    }' "$sendrecv" "$alltoall"
