# Source me after tap.sh: commands run again and again, each time with another call that goes wrong
# (tests/lib/faults.c).  $FAULTS: how many of them, drawn evenly, 0 for all; `make check` takes few,
# `make check-faults` more.
# With $FAULTS_TABLE a row for each command goes to that file.
[ -z "$(nm -D "$LINKWISE" 2>/dev/null | grep __asan_init)" ] || skip_all "AddressSanitizer has its own allocator"
faults_so=${LINKWISE%/*}/tests/lib/faults.so # where `make check` has built it
[ -e "$faults_so" ] || {
    faults_so=$T/faults.so
    $CC -shared -fPIC -D_GNU_SOURCE -o "$faults_so" tests/lib/faults.c -ldl 2>/dev/null || skip_all "no compiler, or another C library"
}
L="spawn $LINKWISE"
: "${FAULTS:=2}"

# with_fault FOLDER FAULT AT COMMAND: in a fresh copy of $T/before.
with_fault() {
    rm -rf "${T:?}/$1"
    cp -r "$T/before" "$T/$1"
    (cd "$T/$1" && ulimit -c 0 && OMP_NUM_THREADS=1 FAULT=$2 FAULT_AT=$3 LD_PRELOAD=$faults_so $L $4 >out 2>err </dev/null)
} 2>/dev/null

# faults "FAULT..." NAME COMMAND: the command in $T/before, without a fault into $T/after, then with
# each into $T/faulty.  `holds RC` says whether the outcome is a good one, and why it is not.
faults() {
    local fault memory=0 kill=0 full=0 fails=
    FAULT_COUNT=$T/count with_fault after none 0 "$3" || fails="fails without a fault"
    . "$T/count"
    for fault in $1; do
        each_fault "$fault" "$2" "$3" "${!fault}"
    done
}
each_fault() {
    local fault=$1 name=$2 command=$3 all=$4 n k at rc refused=0 same=0 wrong=0
    echo -n "$fails" >"$T/why"
    n=$((FAULTS > 0 && FAULTS < all ? FAULTS : all))
    for ((k = 1; k <= n; k++)); do
        at=$(((2 * k - 1) * all / (2 * n) + 1))
        with_fault faulty "$fault" "$at" "$command"
        rc=$?
        if ! holds $rc >"$T/said" 2>&1; then
            wrong=$((wrong + 1))
            { echo "$fault $at of $all: exit $rc, but"; head -n 9 "$T/said"; } >>"$T/why"
        elif [ $rc = 0 ]; then
            same=$((same + 1))
        else
            refused=$((refused + 1))
        fi
    done
    [ "$all" -gt 0 ] && [ ! -s "$T/why" ]
    result $? "$fault, $name: $n of $all; $refused end with an error or a kill, $same are the same" "$T/why"
    [ -z "${FAULTS_TABLE:-}" ] ||
        printf '%-22s %-7s %9d %8d %8d %8d %6d\n' "$name" "$fault" "$all" "$n" "$refused" "$same" "$wrong" >>"$FAULTS_TABLE"
}
