#!/bin/sh
# fuzz.sh SECONDS [TARGET...]: give each reader that many seconds of changed inputs, $FUZZ_JOBS
# readers at once, and print a table.  What is found lies in build/fuzz/TARGET/, and the exit code
# is 1.  Inputs that reached new code stay in build/fuzz/corpus for the next time.
set -u
if [ "$1" = --needs ]; then
    command -v clang >/dev/null || { echo "make fuzz: package clang is not installed" >&2; exit 1; }
    printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput (const char *, size_t n) { return n != n; }\n' |
        clang -std=c2x -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null && exit
    major=$(clang -dumpversion | cut -d. -f1)
    echo "make fuzz: libFuzzer is missing: install libclang-rt-$major-dev (before clang 14: libclang-common-$major-dev)" >&2
    exit 1
fi
seconds=$1 out=$PWD/build/fuzz
shift
FUZZ=$out/tests/fuzz/readers
targets=$(TARGET='' "$FUZZ" 2>&1) # "NAME KIND", one a line
[ $# -gt 0 ] || set -- $(echo "$targets" | cut -d' ' -f1)
kind() { echo "$targets" | sed -n "s/^$1 //p"; }

# To begin with there is what is kept, and larger inputs from the tree and beside it.
begin() {
    t=$1
    mkdir -p "$out/corpus/$t" "$out/$t"
    case $(kind "$t") in
    cluster) set -- examples/clusters/a100-16-*.json ;;
    model) set -- examples/models/*.json ;;
    profile) set -- workload/profiles/*.json ;;
    plan) set -- "$out/plan.json" ;;
    runs) set -- examples/runs/*.csv ;;
    import | machine)
        set -- $(find -L ../shared/data/links ../shared/data/topology -type f -size -20k 2>/dev/null)
        ;;
    *) set -- ;;
    esac
    for f; do cp "$f" "$out/corpus/$t/" || exit; done
}
"$LINKWISE" plan '2x2 h100-sxm5-80g intra:370 inter:48' llama-3.2-1b --seq 2048 --global-batch 16 --tp 2 \
    --pp 2 --threads 1 -o "$out/plan.json" >/dev/null || exit
for t; do begin "$t"; done

# One target, in a folder in memory.  Nothing that an input makes takes over 20 s or 2 GB.
export seconds out FUZZ seeds="$PWD/tests/fuzz/seeds"
work=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" linkwise-fuzz.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
for t; do echo "$t $(kind "$t")"; done | (cd "$work" && xargs -P "${FUZZ_JOBS:-2}" -L 1 sh -c '
    mkdir "$0" && cd "$0" && TARGET=$0 "$FUZZ" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -max_len=65536 -close_fd_mask=3 -print_final_stats=1 -artifact_prefix="$out/$0/" "$out/corpus/$0" \
        "$seeds/$1" 2>"$out/$0.log" || :')

found=0
printf '%-14s %10s %8s %8s %9s\n' target inputs exec/s edges findings
for t; do
    n=$(find "$out/$t" -type f ! -name 'slow-unit-*' | wc -l)
    awk -v t="$t" -v n="$n" '/^stat::number_of_executed_units/ { runs = $2 }
        /^stat::average_exec_per_sec/ { speed = $2 }
        / cov: / { sub (/.* cov: /, ""); edges = $1 }
        END { printf "%-14s %10d %8d %8d %9d\n", t, runs, speed, edges, n }' "$out/$t.log"
    [ "$n" = 0 ] || { found=1; find "$out/$t" -type f ! -name 'slow-unit-*' | sed "s|^$PWD/|    |"; }
done
exit $found
