#!/bin/sh
# Measure and write bench/RESULTS.md whole: which commit, when, with what, then every table as
# its program printed it.
#
#     make results RUNS=DIR                                all parts
#     make results RUNS=DIR PARTS="accuracy links plans"   some; the others are named as not run
#
# Parts: accuracy, times, sources and links, which need RUNS, a folder of runs files; planted,
# annealer, speed, plans, cluster, probe, history.  The page says nothing of hosts and folders.
set -eu
build=${BUILD:-build} runs=${RUNS:-} out=bench/RESULTS.md
parts=${PARTS:-accuracy times sources links plans planted annealer speed cluster probe history}
tmp=$(mktemp "${TMPDIR:-/tmp}/linkwise-results.XXXXXX")
trap 'rm -f "$tmp" "$tmp.table"' EXIT

has () { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

# part NAME HEADING COMMAND SENTENCE PROGRAM [ARGUMENT...]
part () {
    name=$1 heading=$2 command=$3 sentence=$4
    shift 4
    printf '\n## %s\n\n%s\n\n' "$heading" "$sentence" >>"$tmp"
    if ! has "$name"; then
        printf 'Not run for this page: `%s`.\n' "$command" >>"$tmp"
        return 0
    fi
    echo "$name: $command" >&2
    "$@" >"$tmp.table"
    { printf '`%s`\n\n```\n' "$command"
      sed '1{/^$/d;}; s/[[:blank:]]*$//' "$tmp.table"
      echo '```'; } >>"$tmp"
}

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
git diff --quiet HEAD -- . ':!bench/RESULTS.md' 2>/dev/null || commit="$commit and changes"
cpu=$(sed -n 's/^model name[[:blank:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
cat >"$tmp" <<HEAD
# Results

Every table that the project's own figures come from, as its command printed it; \`make results\`
writes this page. [docs/accuracy.md](../docs/accuracy.md) tells how to read the first four,
[docs/search.md](../docs/search.md) what is searched. Times depend on the machine and on what else
it did: compare numbers of one page with each other.

| | |
|---|---|
| commit | $commit |
| date | $(date -u +%Y-%m-%d) |
| compiler | $(${CC:-cc} --version | head -n 1) |
| flags | ${CFLAGS:-} |
| processor | $(nproc) x ${cpu:-unknown} |
HEAD

if [ ! -d "$runs" ]; then
    echo "bench/results.sh: no runs files: make results RUNS=DIR adds the parts that need them" >&2
    parts=$(for p in $parts; do case $p in accuracy | times | sources | links) ;; *) echo "$p" ;; esac; done)
    parts=$(echo $parts)
fi
part accuracy "Memory: estimates beside measured runs" "make accuracy-memory RUNS=DIR" \
    "Peaks and out-of-memory labels of published runs." "$build/bench/accuracy" "$runs"
part times "Step times: estimates beside measured runs" "make accuracy-times RUNS=DIR" \
    "Step times of published runs, by source." "$build/bench/accuracy_times" "$runs"
part sources "Sources: every file of measured runs" "make accuracy-sources RUNS=DIR" \
    "Estimates of every source as a user gets them; below, what fitting to five runs gains." \
    "$build/bench/accuracy_sources" "$runs"
part links "Links: a straight line beside measured times" "make accuracy-links RUNS=DIR" \
    "Times of NCCL between pairs of nodes, at sizes that the line was not fitted to." \
    "$build/bench/accuracy_links" "$runs"
part plans "Whole plans on drawn clusters" "make bench-plans" \
    "The proven gap, seconds and memory of \`linkwise plan\`; below, how they grow with the GPUs." \
    "$build/bench/plans" "$build/linkwise"
part planted "Planted optima" "$build/bench/planted" \
    "Clusters that hide one best placement: how far above it is the plan?" "$build/bench/planted"
part annealer "Beside a plain annealer" "$build/bench/annealer" \
    "Pipette's objective: this placement, three runs of a plain annealer, and the optimum." \
    "$build/bench/annealer"
part speed "Speed of the pieces" "$build/bench/speed" \
    "Processor time of single operations, seconds of whole plans, medians of seven." \
    "$build/bench/speed"
part cluster "Loading large clusters" "$build/bench/cluster" \
    "Seconds and memory to read a cluster file, time to look a link up." "$build/bench/cluster"
part probe "bwprobe's schedule, simulated" "$build/bench/probe" \
    "What a budget sees of a large cluster, and what a plan loses that was made from a part." \
    "$build/bench/probe"
part history "Thirty days of measurements" "$build/bench/history" \
    "What plans lose on the next day that were made from the newest file, from the newest measurement
of each link, or from all (history).  gain: of the history over the newest file." \
    "$build/bench/history"
mv "$tmp" "$out"
chmod 644 "$out"
echo "written: $out" >&2
