#!/bin/bash
# Without MPI, over the loopback: ranks that are killed, stopped or missing, a full disk, foreign
# connections and an interruption leave a links file that says so and is valid against docs/schema,
# and no rank behind.
. tests/lib/tap.sh
. tests/lib/ranks.sh
has_python jsonschema || valid() { skip "$3" "package python3-jsonschema is not installed"; }
# Short measurements of small messages; $OPTIONS go to every rank.  What happens to a run happens in
# its second pass: the journal is written at the end of the first.
OPTIONS="--transport socket --measure 0.001 --passes 1 --pause 0 --timeout 1 --max-size 1"

ranks 4 --passes 2 -o "$T/links.json"
ended 0 60
result $? "four ranks without MPI measure everything" "$T/err.0"
says "and the file is whole" '
assert m["status"] == "complete" and len (m["pairs"]) == 12 and not m["faults"]
assert all (p["isolated_gb_per_s"]["samples"] >= 2 for p in m["pairs"])
assert len (d["links"]["gpu"]["bandwidth_gb_per_s"]) == 4 and d["nodes"][0]["gpus"] == 4'
valid links "$T/links.json" "... and valid"
[ ! -e "$T/links.json.part" ]
result $? "no journal is left"

# Somebody else knocks, at rank 0 and at a partner's door.
ranks 3 --passes 2 --pause 4 -o "$T/links.json"
python3 - $port "${pid[1]}" >"$T/why" 2>&1 <<'P'
import os, re, socket, sys, time
def doors (pid):
    inodes = set ()
    for fd in os.listdir ("/proc/%s/fd" % pid):
        try:
            inodes.update (re.findall (r"socket:\[(\d+)\]", os.readlink ("/proc/%s/fd/%s" % (pid, fd))))
        except OSError:
            pass
    for line in open ("/proc/net/tcp").readlines ()[1:]:
        f = line.split ()
        if f[3] == "0A" and f[9] in inodes:
            yield int (f[1].split (":")[1], 16)
end = time.time () + 20
while not (found := list (doors (sys.argv[2]))):
    assert time.time () < end, "rank 1 listens nowhere"
    time.sleep (0.02)
knocks = []
for port in [int (sys.argv[1])] + found:
    for words in (b"GET / HTTP/1.0\r\n\r\n", b"bwprobe1" + b"x" * 28, b"\xff" * 5000, b""):
        s = socket.create_connection (("127.0.0.1", port), 5)
        s.sendall (words)
        knocks.append (s)
for s in knocks:
    s.settimeout (15)
    try:
        assert s.recv (100) == b"", "a foreign connection got an answer"
    except ConnectionResetError:
        pass
    s.close ()
P
result $? "foreign connections are closed without an answer" "$T/why"
ended 0 60
result $? "and the run goes on" "$T/err.0"
says "and the file counts them" '
assert m["status"] == "complete" and m["refused_connections"] >= 4, m["refused_connections"]'

# Hundreds of connections that say nothing, or a byte now and then, stand at rank 0's door when
# the other ranks come, and come back when they are shown out.
rm -f "$T/links.json"
WORLD=4 ranks 1 -o "$T/links.json"
listens
python3 - $port "$T/flooded" "$T/links.json" >"$T/why" 2>&1 <<'P' &
import os, select, socket, sys, time
def knock ():
    s = socket.socket ()
    s.setblocking (False)
    s.connect_ex (("127.0.0.1", int (sys.argv[1])))
    return s
idle = [knock () for i in range (500)]
end = time.time () + 60
while len (select.select ([], idle, [], 0.02)[1]) < len (idle) and time.time () < end - 40:
    pass # until all stand there
open (sys.argv[2], "w").close ()
while time.time () < end and not os.path.exists (sys.argv[3]):
    for s in idle[::5]:
        try:
            s.send (b"\x40")
        except OSError:
            pass
    shown_out = set (select.select (idle, [], [], 0)[0])
    for k, s in enumerate (idle):
        if s in shown_out:
            s.close ()
            idle[k] = knock ()
    time.sleep (0.02)
P
flood=$!
for ((i = 0; i < 100; i++)); do [ -e "$T/flooded" ] && break; pause 0.1; done
WORLD=4 more 4 -o "$T/links.json"
ended 0 60
result $? "ranks get in past five hundred silent connections" "$T/err.0"
wait $flood
says "all of them, and the silent ones are counted" '
assert m["status"] == "complete" and len (m["pairs"]) == 12 and not m["faults"]
assert m["refused_connections"] >= 400, m["refused_connections"]'

# A rank is killed in the middle; the same command with --resume finds the rest.
ranks 4 --passes 5 -o "$T/links.json"
lines 12
slay 2
ended 1 30
result $? "a killed rank does not end the others" "$T/err.0"
says "it is named" '
assert m["status"] == "faults" and any ("rank 2" in f for f in m["faults"]), m["faults"]
assert [e["survived"] for e in m["endpoints"]] == [True, True, False, True]'
valid links "$T/links.json" "... in a valid file"
ranks 4 --passes 5 --resume -o "$T/links.json"
ended 0 60
result $? "--resume ends well" "$T/err.0"
grep -Eq "[0-9]+ values of the earlier run" "$T/err.0"
result $? "it takes over what was measured" "$T/err.0"
says "and every link has its passes" '
assert m["status"] == "complete" and len (m["pairs"]) == 12
assert all (p["isolated_gb_per_s"]["samples"] >= 5 for p in m["pairs"])'

# A rank that stops without a word.
ranks 3 --passes 8 -o "$T/links.json"
lines 6
stall 1
ended 1 20
result $? "a stopped rank is given up" "$T/err.0"
says "it is named" '
assert any ("rank 1" in f and "does not answer" in f for f in m["faults"]), m["faults"]'
rm -f "$T"/links.json*

# A rank that never comes, and one of another job.
BWPROBE_TOKEN=ours WORLD=4 ranks 2 --start-timeout 2 -o "$T/links.json"
BWPROBE_TOKEN=theirs WORLD=4 more 3 -o "$T/links.json"
ended 1 30
result $? "a rank that does not come is left out" "$T/err.0"
says "it is named, and so is one with another token" '
for r in (2, 3):
    assert any ("rank %d" % r in f and "did not connect" in f for f in m["faults"]), m["faults"]
assert len (m["pairs"]) == 2'
grep -q "rank 2: rank 0 at 127.0.0.1 port $port refuses this rank: .*BWPROBE_TOKEN" "$T/err.2"
result $? "which is told what may be wrong" "$T/err.2"
rm -f "$T"/links.json*

# A disk that is full after the first kilobyte: what stands in for it is a limit on files.
(
    trap '' XFSZ
    ulimit -f 1
    ranks 3 --passes 3 -o "$T/links.json"
    ended 1 30
    echo $? >"$T/rc"
) 2>/dev/null
[ "$(cat "$T/rc")" = 0 ] && grep -q "links.json.part: File too large" "$T/err.0" &&
    [ ! -e "$T/links.json" ] && [ -s "$T/links.json.part" ]
result $? "with a full disk the run ends, says so, and leaves what was written" "$T/err.0"
ranks 3 --passes 3 --resume -o "$T/links.json"
ended 0 60 && grep -Eq "[1-9][0-9]* values of the earlier run" "$T/err.0"
result $? "with room again, --resume continues" "$T/err.0"

# Ctrl-C.
ranks 3 --passes 500 -o "$T/links.json"
lines 10
kill -INT "${pid[0]}"
ended 1 15
result $? "an interruption ends all ranks" "$T/err.0"
says "and what was measured is in the file" '
assert m["status"] == "interrupted" and len (m["pairs"]) == 6'
valid links "$T/links.json" "... which is valid"
[ -s "$T/links.json.part" ]
result $? "and --resume could continue"
rm -f "$T"/links.json*

ranks 2 --dry-run -o "$T/links.json"
ended 0 30 && grep -q "expected time" "$T/out.0" && [ ! -e "$T/links.json" ]
result $? "--dry-run prints the rounds and measures nothing" "$T/err.0"
ranks 2 -o -
ended 0 30 && python3 -c 'import json,sys; assert json.load(open(sys.argv[1]))["version"] == 1' "$T/out.0"
result $? "-o - prints the links file" "$T/err.0"

# What stands in the way of the files is said before anything is measured.
mkdir "$T/folder"
ranks 2 -o "$T/folder"
ended 1 20 && grep -q "folder: expected a file, found a folder" "$T/err.0" && [ ! -e "$T/folder.part" ]
result $? "an output that is a folder" "$T/err.0"
mkfifo "$T/links.json.part"
ranks 2 -o "$T/links.json"
ended 1 20 && grep -q "links.json.part: expected a file" "$T/err.0" && [ -p "$T/links.json.part" ]
result $? "a pipe where the journal would be" "$T/err.0"
rm "$T/links.json.part"

probe() { env -u RANK -u WORLD_SIZE -u SLURM_PROCID "$BWPROBE" "$@"; }
expect 2 "alone it says how to start it" "start it with mpirun" probe
CUDA_VISIBLE_DEVICES='' expect 3 "alone without a GPU there is nothing to measure" \
    "nothing was measured, and no file is written" probe --gemm -o "$T/alone.json"
[ ! -e "$T/alone.json" ] && [ ! -e "$T/alone.json.part" ]
result $? "... nor to write" /dev/null
expect 3 "a lone GPU has no rounds to show" "at least 2 are needed" probe --gemm --dry-run
expect 2 "an unknown option" "unrecognized option" probe --no-such
expect 2 "a bad number" "passes: expected a number" probe --passes 0
expect 2 "half a pass" "passes: expected a whole number" probe --passes 2.5
expect 2 "a bad transport" "transport: unknown word" probe --transport pigeon
expect 2 "a rank above the size" "RANK is 4, but WORLD_SIZE is 4" \
    env RANK=4 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$BWPROBE"
expect 0 "--help" "Exit codes" probe --help
expect 1 "... on a full disk" "standard output: write error" bash -c "$BWPROBE --help >/dev/full"
expect 0 "--version" "^bwprobe [0-9]" probe --version
! ldd "$BWPROBE" | grep -qi glpk
result $? "no GPL library is linked"
done_testing
