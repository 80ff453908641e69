#!/bin/bash
# plan answers first, in a dozen lines and a map of where the ranks are; -v adds what is behind it
# and loses nothing, -q says no more than that, the map is the plan's.
. tests/lib/tap.sh
needs python3 python3
L="spawn $LINKWISE"
C=examples/clusters/h100-17.json
job="llama-2-70b --seq 4096 --global-batch 1024 --tp 2 --pp 16 --dp 4 --recompute none --schedule 1f1b"

# ---- the answer's order, and what is behind it ----
expect 0 "the answer" "^plan " $L plan $C $job -o "$T/plan.json"
cp "$T/out" "$T/answer"
cp "$T/plan.json" "$T/brief.json"
labels() { grep -Eo '^[a-zA-Z]+ ' "$1" | uniq | tr -d '\n'; }
[[ "$(labels "$T/answer")" =~ ^"plan GPUs step memory gap "(ties )?"default "(risky )?"places plan next " ]]
result $? "... what, how long, how sure, against what, where" "$T/answer"
[ "$(sed '/^places/,$d' "$T/answer" | wc -l)" -le 13 ] && [ "$(awk 'length > 110' "$T/answer" | wc -l)" = 0 ]
result $? "... in a dozen lines" "$T/answer"
tail -2 "$T/answer" >"$T/last"
diff - "$T/last" >"$T/why" <<X
plan written to $T/plan.json
next     linkwise emit $T/plan.json --to all -d job
X
result $? "... then the file, and what is next" "$T/why"
expect 0 "all of it" "^cluster  h100-17: 17 nodes, 136 GPUs" $L plan $C $job -o "$T/plan.json" -v
prints '^network  4.73 / 13.54' '^model    llama-2-70b: 68.98 b' '^search   [0-9]+ configurations: ' '^layers  ' \
    '^peak     of memory: stage [0-9]+; 90 % of runs' '^step goes to' '^times of stage' '^best configurations after' \
    ' bound s +tp'
head -n "$(wc -l <"$T/answer")" "$T/out" | diff "$T/answer" - >"$T/why"
result $? "... after the same answer" "$T/why"
diff -I '"seconds"' "$T/plan.json" "$T/brief.json" >"$T/why"
result $? "... and the same file" "$T/why"
expect 0 "a name that a shell would take apart" "^next     linkwise emit '.*/a b.json' --to all" $L plan "1x2 a100-sxm4-80g" gpt2-xl --seq 512 --global-batch 4 -o "$T/a b.json"
expect 0 "no file" "^next     -o plan.json keeps the plan; then: linkwise emit plan.json" $L plan "2x8 h100" llama-3-8b
prints "^links    nominal inside and between nodes: not measured"
expect 0 "what is proven" "^gap      none: proven that no plan" $L plan "1x2 a100-sxm4-80g intra:240" gpt2-xl --seq 512 --global-batch 4

# ---- quiet ----
expect 0 "quiet: the first lines" "^plan " $L plan "2x8 h100" llama-3-8b -q
[ ! -s "$T/err" ] && [ "$(labels "$T/out")" = "plan GPUs step memory gap ties links default " ]
result $? "... and no warning" "$T/both"
$L plan "2x8 h100" llama-3-8b --quiet -o "$T/quiet.json" >"$T/both" 2>&1 && [ ! -s "$T/both" ] && [ -s "$T/quiet.json" ]
result $? "quiet with a file: it is written, and nothing printed" "$T/both"
expect 1 "an error is no warning" "none.json: No such file" $L plan none.json llama-3-8b -q
expect 2 "quiet and verbose" "verbose and --quiet contradict" $L plan "2x8 h100" llama-3-8b -qv
expect 2 "... in any order" "verbose and --quiet contradict" $L eval "$T/plan.json" -v --quiet
expect 0 "quiet elsewhere" "^step " $L time "2x8 h100" llama-3-8b -q
[ ! -s "$T/err" ]
result $? "... no warning either" "$T/err"
expect 0 "a command that takes long" "what would gain" $L explain "$T/quiet.json" --quiet

# ---- the map ----
cat >"$T/count.py" <<'P'
# Cells by node and stage: of the map on stdin, and of the plan file.
import json, re, sys
d = json.load(open(sys.argv[1]))
deg = d["degrees"]
size = deg["tp"] * deg["cp"]
want, have, gpus = {}, {}, {n["name"]: 0 for n in d["cluster"]["nodes"]}
for r in d["ranks"]:
    stage, replica = r["rank"] // (size * deg["dp"]), r["rank"] // size % deg["dp"]
    cell = str(stage) + (chr(65 + replica) if sys.argv[2] == "replicas" else "")
    want.setdefault(r["node"], []).append((r["gpu"], cell))
on = False
for line in sys.stdin:
    if line.startswith("places "): on = True; continue
    if on and not line.strip(): break
    if on:
        name, *cells = line.split()
        cells = cells if sys.argv[2] == "replicas" else list(cells[0])
        have[name] = [(k, c) for k, c in enumerate(cells) if c != "."]
        assert len(cells) == {n["name"]: n["gpus"] for n in d["cluster"]["nodes"]}[name], line
for node in gpus: want.setdefault(node, [])
assert have == {n: sorted(w) for n, w in want.items()}, (have, want)
P
uneven="2x4 h100-sxm5-80g intra:370 + 1x8 h100-sxm5-80g intra:370 + 1x2 h100-sxm5-80g intra:370 inter:48"
for degrees in "--tp 2 --pp 3 --dp 2" "--tp 1 --pp 4 --dp 4" "--tp 2 --pp 4 --dp 2"; do
    $L plan "$uneven" llama-2-7b --seq 4096 --global-batch 48 --micro-batch 1 --zero 1 --recompute none --schedule 1f1b \
        $degrees -o "$T/uneven.json" >"$T/out" 2>&1 &&
        python3 "$T/count.py" "$T/uneven.json" replicas <"$T/out" 2>>"$T/out"
    result $? "an uneven cluster's cells are the plan's: $degrees" "$T/out"
done
grep -q '^places   stages 0 to 3 of replicas A to B, a cell a GPU; . idle$' "$T/out"
result $? "... which the heading explains" "$T/out"
$L eval -v "$T/uneven.json" >"$T/eval" && diff <(sed -n '/^places/,/^$/p' "$T/out" | grep .) <(sed -n '/^places/,$p' "$T/eval") >"$T/why"
result $? "eval -v draws the same" "$T/why"
$LINKWISE time -v "$uneven" llama-2-7b --seq 4096 --global-batch 48 --tp 1 --pp 4 --dp 1 2>&1 | grep -q '^n0  0123$'
result $? "one replica needs no letters"
$L time -v "1x72 h100 intra:400" llama-2-7b --seq 4096 --global-batch 72 --pp 8 --dp 9 2>/dev/null >"$T/out" && grep -q '^n0  0\{9\}1\{9\}2.*7\{9\}$' "$T/out"
result $? "72 GPUs a node fit a line" "$T/out"
$L time -v "1x72 h100 intra:400" llama-2-70b --seq 4096 --global-batch 72 --pp 36 --dp 2 2>/dev/null >"$T/out" &&
    grep -q '^n0   *2x0 *2x1 .*\.\.$' "$T/out" && ! grep -E '^n0' "$T/out" | grep -q '.\{101\}'
result $? "what does not fit is counted, and cut" "$T/out"

# ---- large ones ----
folded() { # NODES: rows and all their counts
    sed -n '/^places/,/^$/p' "$T/out" | sed 1d | awk -v nodes="$1" '
        $2 ~ /^x[0-9]+$/ { n += substr($2, 2) } /^and [0-9]+ nodes/ { n += $2 } length > 100 { long = 1 }
        END { exit !(n == nodes && NR <= 24 && !long) }'
}
row="2048x8 h100-sxm5-80g intra:370 inter:48"
$L time -v "$row" llama-3-70b --seq 4096 --global-batch 4096 --tp 8 --pp 8 >"$T/out" 2>&1
folded 2048 && grep -q '^n256 *x256 *11111111$' "$T/out" && grep -q 'nodes in a row are alike$' "$T/out"
result $? "2,048 nodes are a row a stage" "$T/out"
$L time -v "$row" llama-3-405b --seq 4096 --global-batch 4096 --tp 8 --pp 32 --dp 64 >"$T/out" 2>&1
folded 2048 && grep -q '^and [0-9]* nodes that look otherwise' "$T/out"
result $? "... or as many as a screen takes" "$T/out"
$L cluster synth calm --nodes 64 --gpus 8 --seed 1 -o "$T/calm.json" >/dev/null
$L plan "$T/calm.json" llama-3-70b --seq 4096 --global-batch 512 --tp 8 --pp 8 --schedule 1f1b -o "$T/calm-plan.json" >"$T/out" 2>&1
folded 64 && grep -q 'nodes alike, the first is named$' "$T/out"
result $? "nodes that are alike are one row wherever they stand" "$T/out"

# ---- a terminal ----
cat >"$T/onterm.py" <<'P'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
out = b""
while True:
    try:
        more = os.read(fd, 65536)
    except OSError:
        break
    if not more:
        break
    out += more
os.waitpid(pid, 0)
sys.stdout.write(out.decode().replace("\r", ""))
P
onterm() { # COLUMNS VARIABLE=VALUE... -- COMMAND...
    python3 "$T/onterm.py" "$1" env -u NO_COLOR -u COLORTERM "${@:2}" >"$T/out" 2>&1
}
plain() { sed 's/\x1b\[[0-9;]*m//g' "$T/out" | sed -n '/^places/,$p'; }
$LINKWISE eval -v "$T/uneven.json" | sed -n '/^places/,$p' >"$T/letters"
onterm 100 TERM=xterm-256color $LINKWISE eval -v "$T/uneven.json"
grep -q $'\x1b\[48;5;[0-9]*;38;5;[0-9]*m0A' "$T/out" && plain | diff "$T/letters" - >"$T/why"
result $? "256 colours, and the same letters" "$T/why"
[ "$(grep -o $'\x1b\[48;5;[0-9]*;' "$T/out" | sort -u | wc -l)" = 4 ]
result $? "... a colour a stage" "$T/out"
for variable in NO_COLOR=1 TERM=vt100; do
    onterm 100 TERM=xterm-256color $variable $LINKWISE eval -v "$T/uneven.json"
    ! grep -q $'\x1b' "$T/out" && plain | diff "$T/letters" - >"$T/why"
    result $? "$variable: none" "$T/out"
done
onterm 80 TERM=vt100 $LINKWISE time -v "1x32 h100 intra:400" llama-2-7b --seq 4096 --global-batch 32 --pp 4 --dp 8
plain | grep -q '^n0  0\{8\}1\{8\}2\{8\}3\{8\}$'
result $? "80 columns: shorter cells" "$T/out"
onterm 40 TERM=vt100 $LINKWISE time -v "1x72 h100 intra:400" llama-2-7b --seq 4096 --global-batch 72 --pp 8 --dp 9
plain | grep -q '^n0  9x0 9x1 9x2 9x3 9x4 9x5 9x6 9x7$'
result $? "40 columns: counted" "$T/out"

# ---- names ----
python3 - "$T" <<'P'
import json, sys
long = "rack-17.a-very-long-domain.of-some-cloud.example.node"
nodes = [{"name": long + str(i), "gpus": 2, "gpu_type": "h100-sxm5-80g"} for i in range(2)]
links = {"intra": {"bandwidth_gb_per_s": 300, "latency_us": 8}, "inter": {"bandwidth_gb_per_s": 40, "latency_us": 12}}
json.dump({"version": 1, "name": "a\u009b31mb\x1b[31mc", "nodes": nodes, "links": links}, open(sys.argv[1] + "/long.json", "w"))
P
expect 0 "names longer than a column" "^[.][.]loud.example.node0  0A" $L plan "$T/long.json" gpt2-xl --seq 512 --global-batch 8 --pp 2 -v -o "$T/$(printf 'x\033[31m').json"
! LC_ALL=C grep -q $'[\x1b\x9b]' "$T/both"
result $? "... and no control character in what is printed" "$T/both"
done_testing
