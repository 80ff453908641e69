#!/bin/sh
# make-others.sh DIR OUT: write h100-10.json, a100-16-before.json and a100-16-after.json
# into OUT from the published figures.
#
# DIR holds nccl-pairwise/ (github.com/xxrjun/nccl-tests-cluster at commit 455de4f) and
# matrices/ (github.com/yimjinkyu1/date2024_pipette at commit a2b0683).  ../README.md tells
# what is taken and why.
set -eu
dir=$1 out=$2

# write NAME SOURCE TYPE SCALE INTRA INTER_REST MATRIX: one cluster file from a table with node
# names on both edges; entries times SCALE are GB/s.  What is not a number is null.
write() {
    awk -F, -v name="$1" -v source="$2" -v type="$3" -v scale="$4" -v intra="$5" -v rest="$6" '
        function entry(x, row, col) {
            return row == col || x !~ /^[0-9]/ ? "null" : sprintf("%.2f", x * scale)
        }
        /^#/ || $1 == "" { next }
        { node[++n] = $1; for (i = 2; i <= NF; i++) v[n, i - 1] = $i }
        END {
            print "{"
            print "  \"version\": 1,"
            printf "  \"name\": \"%s\",\n", name
            printf "  \"source\": \"%s\",\n", source
            print "  \"nodes\": ["
            for (i = 1; i <= n; i++)
                printf "    {\"name\": \"%s\", \"gpus\": 8, \"gpu_type\": \"%s\"}%s\n", node[i], type, i < n ? "," : ""
            print "  ],"
            print "  \"links\": {"
            printf "    \"intra\": {%s},\n", intra
            print "    \"inter\": {"
            print "      \"bandwidth_gb_per_s\": ["
            for (i = 1; i <= n; i++) {
                printf "        ["
                for (j = 1; j <= n; j++) printf "%s%s", entry(v[i, j], i, j), j < n ? ", " : ""
                printf "]%s\n", i < n ? "," : ""
            }
            print "      ],"
            printf "      %s\n", rest
            print "    }"
            print "  }"
            print "}"
        }' "$7" >"$out/$1.json"
}

# What all GPUs of a node reach together: 8 x 8/15 x the median busbw of alltoall.
total=$(awk -F, '!/^#/ && $1 != "" { for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]/) print $i }' \
    "$dir/nccl-pairwise/cluster01_alltoall_perf_G8_16384MiB.csv" | sort -n |
    awk '{ v[NR] = $1 } END { printf "%.1f", 8 * 8 / 15 * (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }')

write h100-10 \
    "github.com/xxrjun/nccl-tests-cluster at 455de4f (Apache-2.0), cluster01: nccl-tests 2.17.6, NCCL 2.28.7, 10 nodes of 8 H100 80GB HBM3" \
    h100-sxm5-80g 1 \
    '"bandwidth_gb_per_s": 392.6, "latency_us": 2.78, "source": "another server with 8 H100 80GB HBM3 on NVSwitch, as in h100-17.json"' \
    "\"latency_us\": 12.0, \"node_gb_per_s\": $total, \"source\": \"bandwidth: busbw of sendrecv, 1 GPU a node, 16 GiB. latency: not measured. node_gb_per_s: 8 x 8/15 x the median busbw of alltoall with 8 GPUs a node, 16 GiB\"" \
    "$dir/nccl-pairwise/cluster01_sendrecv_perf_G1_16384MiB.csv"

for t in 0:before 1:after; do
    write "a100-16-${t#*:}" \
        "github.com/yimjinkyu1/date2024_pipette at a2b0683, time_${t%:*}.json: mpiGraph on 16 nodes with A100, sends of 4 processes a node averaged" \
        a100-sxm4-80g 0.001048576 \
        '"bandwidth_gb_per_s": 240.0, "latency_us": 8.0, "nominal": true, "source": "rate of the GPU type'"'"'s links"' \
        '"latency_us": 12.0, "source": "MiB/s of mpiGraph, row to column. latency: not measured"' \
        "$dir/matrices/pipette_16xA100node_time_${t%:*}_send_to_MiBps.csv"
done
