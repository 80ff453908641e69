# Source me after tap.sh: jobs of bwprobe without MPI, over the loopback.
needs python3 python3

# Each script has 64 ports of its own: scripts that run at once have neighbouring process numbers.
port=$((20000 + $$ % 180 * 64))
# $OPTIONS go to every rank.  NCCL takes each for a host of its own, so that several may share a
# GPU.
# ranks N OPTION...: start ranks 0 .. N-1 of a job of $WORLD; their numbers in ${pid[@]}.
# more N OPTION...: start those of them that are not there yet.
ranks() {
    port=$((port + 1)) pid=()
    more "$@"
}
more() {
    local n=$1 r
    shift
    for ((r = ${#pid[@]}; r < n; r++)); do
        RANK=$r WORLD_SIZE=${WORLD:-$n} MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            NCCL_HOSTID=$r "$BWPROBE" $OPTIONS "$@" >"$T/out.$r" 2>"$T/err.$r" </dev/null &
        pid[r]=$!
    done
}
# ended CODE SECONDS: all ranks end in time, rank 0 with this code.
ended() {
    local i p alive rc
    for ((i = 0; i < $2 * 10; i++)); do
        alive=
        for p in "${pid[@]}"; do
            kill -0 "$p" 2>/dev/null && alive=1
        done
        [ -n "$alive" ] || break
        pause 0.1
    done
    wait "${pid[0]}"
    rc=$?
    [ -n "$alive" ] && { kill -9 "${pid[@]}"; echo "still running" >>"$T/err.0"; }
    wait "${pid[@]}" 2>/dev/null
    echo "rank 0 ended with $rc" >>"$T/err.0"
    [ -z "$alive" ] && [ "$rc" = "$1" ]
}
# listens: rank 0 of the last `ranks` takes connections.
listens() {
    local i lines door
    printf -v door ':%04X 00000000:0000 0A ' $port
    for ((i = 0; i < 1000; i++)); do
        mapfile -t lines </proc/net/tcp
        [[ ${lines[*]} != *$door* ]] || return
        pause 0.02
    done
    echo "# nobody ever listened at port $port"
}
# says NAME PYTHON: m is what the links file measured.
says() {
    cat >"$T/says.py" <<P
import json, sys
d = json.load (open (sys.argv[1]))
m = d["measured"]
$2
P
    py "$T/says.py" "$T/links.json" >"$T/why"
    result $? "$1" "$T/why"
}
# lines N: the journal holds that many measurements.
lines() {
    local i
    for ((i = 0; i < 300; i++)); do
        [ -f "$T/links.json.part" ] && [ "$(grep -c '^\[' "$T/links.json.part")" -ge "$1" ] && return
        pause 0.05
    done
    echo "# the journal never had $1 lines"
}
# slay RANK: kill it, without the shell's own words about that.
slay() {
    { kill -9 "${pid[$1]}" && wait "${pid[$1]}"; } 2>/dev/null
}
# stall RANK: stop it without a word until rank 0 has ended, then kill it.
stall() {
    local i
    kill -STOP "${pid[$1]}"
    for ((i = 0; i < 900; i++)); do
        kill -0 "${pid[0]}" 2>/dev/null || break
        pause 0.1
    done
    slay "$1"
}
