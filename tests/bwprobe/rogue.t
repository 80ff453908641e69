#!/bin/bash
# Ranks and a rank 0 that are not ours but have the token: a GPU's number below 0, silence after
# the first word, a rank 0 that stops, and one that gives orders in the wrong order.  Nobody
# crashes, and nobody waits for ever.
. tests/lib/tap.sh
. tests/lib/ranks.sh
OPTIONS="--transport socket --measure 0.004 --passes 1 --pause 0 --timeout 1 --max-size 1"
export BWPROBE_TOKEN=ours ASAN_OPTIONS=detect_leaks=0

cat >"$T/rogue.py" <<'P'
import hashlib, os, socket, struct, sys, time
token = hashlib.sha256 (b"ours").digest ()[:16]
HELLO, WELCOME, OPENED, PARENT, RUN, COMPUTE, COMPUTED, BYE = 1, 2, 3, 4, 6, 11, 12, 15
u32 = lambda x: struct.pack ("<I", x & 0xffffffff)
f64 = lambda x: struct.pack ("<d", x)
text = lambda s: u32 (len (s)) + s
def send (s, kind, body):
    s.sendall (u32 (5 + len (body)) + bytes ([kind]) + body)
def hello (port, rank, size):
    for i in range (100):
        try:
            s = socket.create_connection (("127.0.0.1", port), 10)
            break
        except OSError:
            time.sleep (.1)
    send (s, HELLO, token + u32 (5) + u32 (rank) + u32 (size) + text (b"rogue") + text (b"127.0.0.1") +
          u32 (1) + u32 (-1) + b"\0" + text (b"none"))
    return s
def opened (s, index):
    send (s, OPENED, b"\1" + u32 (index) + text (b"") * 3 + f64 (0) + text (b"") * 2)
def frames (s):
    data = b""
    while True:
        while len (data) >= 4 and len (data) >= struct.unpack ("<I", data[:4])[0]:
            n = struct.unpack ("<I", data[:4])[0]
            yield data[4], data[5:n]
            data = data[n:]
        more = s.recv (4096)
        if not more:
            return
        data += more
def listen (port):
    l = socket.socket ()
    l.setsockopt (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind (("127.0.0.1", port))
    l.listen (5)
    l.settimeout (20)
    return l
def welcome (s, transport = b"socket", most = 1 << 20):
    send (s, WELCOME, text (transport) + u32 (0) + f64 (.01) + f64 (.01) + f64 (1) + struct.pack ("<Q", most))
    next ((kind for kind, _ in frames (s) if kind == OPENED), None)
def run (s):
    send (s, RUN, u32 (1) + b"\0\1\0" + u32 (0) + struct.pack ("<Q", 0) + u32 (0) + text (b"x") + text (b"127.0.0.1") + u32 (1))
P
# rogue NAME ARGUMENT... <<PYTHON: in the background, its number in $rogue.
rogue() {
    { cat "$T/rogue.py"; cat; } >"$T/$1.py"
    python3 "$T/$1.py" "$port" "${@:2}" >"$T/$1.out" 2>&1 &
    rogue=$!
}

WORLD=4 ranks 2 -o "$T/links.json"
for r in 2 3; do
    rogue index$r $r <<'P'
s = hello (int (sys.argv[1]), int (sys.argv[2]), 4)
for kind, body in frames (s):
    if kind == WELCOME:
        opened (s, -2 ** 31 if sys.argv[2] == "2" else -1)
P
done
ended 1 60
result $? "GPUs numbered -1 and -2^31" "$T/err.0"
says "are numbered by their order instead" '
assert [e["gpu"] for e in m["endpoints"] if e["node"] == "rogue"] == [0, 1], m["endpoints"]
assert sum (p.get ("failed") is None for p in m["pairs"]) == 2'
rm -f "$T"/links.json*

WORLD=3 ranks 2 --start-timeout 4 -o "$T/links.json"
rogue silent <<'P'
for f in frames (hello (int (sys.argv[1]), 2, 3)):
    pass
P
ended 1 40
result $? "a rank that is silent after its hello costs no more than --start-timeout" "$T/err.0"
says "it is named, and the others are measured" '
assert any ("rank 2" in f and "did not open" in f for f in m["faults"]), m["faults"]
assert len (m["pairs"]) == 2'
rm -f "$T"/links.json*

# Rank 0 is stopped before it answers, and in the middle.
leaves() { # SECONDS: rank 1 ends, with code 1
    local i rc
    for ((i = 0; i < $1 * 10; i++)); do
        kill -0 "${pid[1]}" 2>/dev/null || break
        pause 0.1
    done
    kill -9 "${pid[1]}" 2>/dev/null && echo "still running" >>"$T/err.1"
    { wait "${pid[1]}"; } 2>/dev/null
    rc=$?
    slay 0
    [ $rc = 1 ] && grep -q "rank 0 .*said nothing" "$T/err.1"
}
WORLD=3 ranks 1 --start-timeout 2 -o "$T/links.json"
listens
kill -STOP "${pid[0]}"
WORLD=3 more 2 --start-timeout 2 -o "$T/links.json"
leaves 15
result $? "a rank 0 that is stopped before its first word is given up" "$T/err.1"
ranks 2 --start-timeout 2 --passes 500 -o "$T/links.json"
lines 4
kill -STOP "${pid[0]}"
leaves 25
result $? "... and one that is stopped in the middle" "$T/err.1"
rm -f "$T"/links.json*
# Time that a rank 0 only waits is no silence.
WORLD=3 ranks 1 --start-timeout 4 -o "$T/links.json"
WORLD=3 more 2 --start-timeout 1 -o "$T/links.json"
ended 1 30 && ! grep -q "said nothing" "$T/err.1"
result $? "a rank 0 that waits for others is not" "$T/err.1"
rm -f "$T"/links.json*

# orders NAME WORDS <<PYTHON: a rogue rank 0 whose orders are on standard input: rank 1 leaves
# with a complaint of these words.
orders() {
    local name=$1
    port=$((port + 1)) pid=()
    { printf 's = listen (int (sys.argv[1])).accept ()[0]\n'; cat; printf 'for f in frames (s):\n    pass\n'; } >"$T/body"
    rogue rank0 <"$T/body"
    pid[0]=$rogue
    WORLD=2 more 2 -o "$T/links.json"
    for ((i = 0; i < 150; i++)); do kill -0 "${pid[1]}" 2>/dev/null || break; pause 0.1; done
    kill -9 "${pid[1]}" 2>/dev/null && echo "still running" >>"$T/err.1"
    { wait "${pid[1]}"; } 2>/dev/null
    rc=$?
    kill "$rogue" 2>/dev/null
    wait "$rogue" 2>/dev/null
    { echo "ended with $rc"; cat "$T/rank0.out"; } >>"$T/err.1"
    [ $rc = 1 ] && grep -q "$2" "$T/err.1"
    result $? "$name" "$T/err.1"
}
orders "measure before a welcome" "broken order" <<<'run (s)'
orders "no room for messages, then measure" "broken order" <<'P'
welcome (s, most = 0)
run (s)
P
orders "more room than there is memory, then measure" "broken order" <<'P'
welcome (s, most = (1 << 63) + 65536)
run (s)
P
orders "two welcomes" "broken order" <<'P'
welcome (s)
welcome (s)
P
orders "a transport that needs a GPU, then measure and a parent" "broken order\|parent where there is none" <<'P'
welcome (s, b"nccl")
send (s, PARENT, u32 (1) + u32 (2) + u32 (1) + b"\1" + b"\0" * 128)
P
done_testing
