#!/bin/bash
# linkwise topo and linkwise cluster: from machines and measurements to a cluster to plan on.
. tests/lib/tap.sh
needs python3 python3
L="spawn $LINKWISE"
# has NAME FILE PATTERN: the file holds it.
has() {
    matches "$3" "$2"
    result $? "$1" "$2"
}
# The value of a key, blanks and line ends taken out.
flat() {
    local text
    IFS= read -rd '' text <"$1"
    printf %s "${text//[$' \n']/}"
}

# ---- this machine ----
# (libpciaccess, which hwloc looks through, keeps what it allocated.)
expect 0 "topo looks at this machine" '"packages"' env ASAN_OPTIONS=detect_leaks=0 $LINKWISE topo
cp "$T/out" "$T/here.json"
has "with its cores" "$T/here.json" '"cpus": "[0-9]'
has "and the time" "$T/here.json" '"captured": "20'
expect 0 "the description can be shown" "1 node" $L cluster show "$T/here.json"

# ---- machines from files ----
for h in 1 2; do
    cat >"$T/g$h.xml" <<X
<system version="1">
 <cpu numaid="0" affinity="0000000f"><pci busid="0000:0$h:00.0" class="0x030200" vendor="0x10de" device="0x20b0">
  <gpu dev="0" sm="80"><nvlink target="0000:aa:00.0" count="12" tclass="0x068000"/></gpu></pci>
  <pci busid="0000:0a:00.0" class="0x020700"><nic><net name="mlx5_0" speed="200000" port="1"/></nic></pci></cpu>
 <cpu numaid="1" affinity="000000f0"><pci busid="0000:8$h:00.0" class="0x030200" vendor="0x10de" device="0x20b0">
  <gpu dev="1" sm="80"><nvlink target="0000:aa:00.0" count="12" tclass="0x068000"/></gpu></pci></cpu>
</system>
X
    expect 0 "topo --from writes a node file" "g$h +0 +2 +2 +a100-sxm4-40g" $L topo --from "$T/g$h.xml" -o "$T/g$h.json"
done
expect 0 "import knows machines too" "1 node, 2 GPUs written" $L cluster import "$T/g1.xml" -o "$T/i.json"
expect 0 "standard input" '"name": "a"' sh -c "$LINKWISE topo --from - --name a <$T/g1.xml"
expect 0 "links that nobody measured come from data sheets" "nominal rates of their NICs" \
    $L cluster merge "$T/g1.json" "$T/g2.json" -o "$T/nominal.json"
flat "$T/nominal.json" >"$T/flat"
has "NIC rates between nodes" "$T/flat" '"inter":\{"bandwidth_gb_per_s":\{"by_node":\[25.0,25.0\]\}'
expect 0 "and are called so" "note.*from data sheets: not measured" $L cluster check "$T/nominal.json"

# ---- measured links ----
printf 'src,dst,gb_per_s\ng1,g2,20\ng2,g1,19\n' >"$T/pairs.csv"
expect 0 "import of links" "2 nodes, 2 GPUs written" $L cluster import "$T/pairs.csv" -o "$T/links.json"
expect 0 "merge" "2 nodes, 4 GPUs written" $L cluster merge "$T/g1.json" "$T/g2.json" "$T/links.json" -o "$T/c.json"
expect 0 "the result can be planned on" "links between +ok +between nodes: 2 links, 19 / 19.5 / 20" $L cluster check "$T/c.json"
expect 0 "cores stay" "cores +ok +known for the GPUs of 2 of 2" $L cluster check "$T/c.json"
flat "$T/c.json" >"$T/flat"
has "direction is kept" "$T/flat" '"bandwidth_gb_per_s":\[\[null,20.0\],\[19.0,null\]\]'
has "cores are in it" "$T/flat" '"gpu_cpus":\["0-3","4-7"\]'
has "links inside come from the GPUs' type" "$T/flat" '"intra":\{"bandwidth_gb_per_s":240.0,"latency_us":8.0,"nominal":true'

# Links inside a node, from a tool that does not tell its host.
cat >"$T/p2p.txt" <<X
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA A100-SXM4-40GB, pciBusID: 1, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA A100-SXM4-40GB, pciBusID: 81, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 1500.0  230.5
     1  225.5 1500.0
X
expect 0 "import under a name" "1 node, 2 GPUs" $L cluster import "$T/p2p.txt" --name g1 -o "$T/inside.json"
expect 0 "measured links inside a node hold against nominal ones" "2 nodes" $L cluster merge "$T/inside.json" "$T/g1.json" "$T/g2.json" "$T/links.json" -o "$T/c2.json"
flat "$T/c2.json" >"$T/flat"
has "and stand in its intra" "$T/flat" '"intra":\[\{[^}]*\[\[null,230.5\],\[225.5,null\]\].*240.0'
expect 2 "a name for several nodes" "describes 2 nodes, not one" $L cluster import "$T/pairs.csv" --name g1 -o "$T/no.json"

# ---- what nodes reach together, pair by pair: of the newest file that says ----
pair_file() { # WHEN TOTALS
    echo '{"version":1,"nodes":[{"name":"'$3'","gpus":1,"gpu_type":"t4"},{"name":"'$4'","gpus":1,"gpu_type":"t4"}],"links":{"inter":{"bandwidth_gb_per_s":9,"latency_us":9'$2'}},"measured":{"when":"'$1'"}}'
}
pair_file 2025-03-01T00:00:00Z ',"node_pair_gb_per_s":[[null,5],[6,null]]' a b >"$T/p1.json"
pair_file 2025-04-01T00:00:00Z ',"node_pair_gb_per_s":[[null,7],[null,null]]' b a >"$T/p2.json"
pair_file 2025-05-01T00:00:00Z "" b c >"$T/p3.json"
expect 0 "totals of pairs" "3 nodes" $L cluster merge "$T/p2.json" "$T/p1.json" "$T/p3.json" -o "$T/pairs.json"
flat "$T/pairs.json" >"$T/flat"
has "of two files, and null where no file says" "$T/flat" '"node_pair_gb_per_s":\[\[null,5.0,null\],\[7.0,null,null\],\[null,null,null\]\]'

# ---- a node's matrix: measured before estimated before nominal, the newest of each ----
inside_file() { # DAY INTRA
    echo '{"version":1,"nodes":[{"name":"a","gpus":3,"gpu_type":"t4"}],"links":{"intra":{"latency_us":3,'"$2"'}},"measured":{"when":"2025-03-0'"$1"'T00:00:00Z"}}' >"$T/inside$1.json"
}
inside_file 1 '"bandwidth_gb_per_s":240,"nominal":true'
inside_file 2 '"bandwidth_gb_per_s":[[null,1,2],[3,null,null],[4,null,null]]'
inside_file 3 '"bandwidth_gb_per_s":[[null,9,null],[8,null,null],[null,7,null]],"estimate_error":[[null,0.05,null],[null,null,null],[null,0.125,null]]'
expect 0 "three files of one node's links" "1 node, 3 GPUs" $L cluster merge "$T"/inside[1-3].json -o "$T/inside.json"
flat "$T/inside.json" >"$T/flat"
has "each fills what better ones leave open" "$T/flat" '"bandwidth_gb_per_s":\[\[null,1.0,2.0\],\[8.0,null,240.0\],\[4.0,7.0,null\]\]'
has "the estimate that is left has its error" "$T/flat" '"estimate_error":\[\[null,null,null\],\[null,null,null\],\[null,0.125,null\]\]'

# ---- newest wins, conflicts are named ----
cat >"$T/old.json" <<X
{"version":1,"colour":"red","nodes":[{"name":"a","gpus":1,"gpu_type":"t4","rack":"r1"},{"name":"b","gpus":1,"gpu_type":"t4"}],
 "links":{"inter":{"bandwidth_gb_per_s":[[null,5],[6,null]],"latency_us":9}},"measured":{"when":"2025-03-01T00:00:00Z"}}
X
cat >"$T/new.json" <<X
{"version":1,"nodes":[{"name":"b","gpus":1,"gpu_type":"l4"},{"name":"a","gpus":1,"gpu_type":"t4","rack":null}],
 "links":{"inter":{"bandwidth_gb_per_s":[[null,8],[null,null]],"latency_us":9}},"measured":{"when":"2025-04-01T00:00:00Z"}}
X
expect 0 "the newer file holds, whatever the order" 'node b: gpu_type: "t4" is replaced by "l4"' $L cluster merge "$T/new.json" "$T/old.json" -o "$T/m.json"
cp "$T/both" "$T/said"
expect 0 "a host's full and short name are told" 'two nodes each, 1 in all, as a.lab and a: name a host alike' $L cluster merge <(sed 's/"a"/"a.lab"/' "$T/new.json") "$T/old.json" -o "$T/pair.json"
has "the changed link is named" "$T/said" '1 links are in several files.*b -> a, from 6 to 8 GB/s'
flat "$T/m.json" >"$T/flat"
has "what only the older file knows stays" "$T/flat" '"rack":"r1"'
has "an unknown key stays" "$T/flat" '"colour":"red"'
has "links: new over old, old where new has none" "$T/flat" '\[\[null,5.0\],\[8.0,null\]\]|\[\[null,8.0\],\[5.0,null\]\]'
expect 1 "a node without GPUs is refused" "node x has no GPUs" $L cluster merge "$T/old.json" <(echo '{"version":1,"nodes":[{"name":"x","gpus":0,"gpu_type":null}]}') -o "$T/no.json"
printf 'NodeName=a Gres=gpu:t4:1 State=IDLE\nNodeName=login Gres=(null) State=IDLE\nNodeName=cpu State=IDLE\n' >"$T/slurm"
$L topo -q --from "$T/slurm" -o "$T/slurm.json" >/dev/null
expect 0 "... but where Slurm lists it beside others it is left out" "hosts to which no file gives GPUs are left out, 2 in all, as login" \
    $L cluster merge "$T/slurm.json" "$T/old.json" -o "$T/m.json"
expect 0 "... and the rest is merged" "m.json: 2 nodes, 2 GPUs" $L cluster show "$T/m.json"
echo 'NodeName=a Gres=gpu:h100:8' >"$T/slurm"
expect 0 "a type beside another name of Slurm's is told" "taken on nodes that name other GPUs, 1 in all, as a: h100" \
    $L topo --from "$T/slurm" --gpu-type a100 -o "$T/m.json"
$L topo --from "$T/slurm" --gpu-type h100-pcie-80g -o "$T/m.json" 2>&1 | grep warning >"$T/said"
[ ! -s "$T/said" ]
result $? "... and another form of that name is not" "$T/said"
expect 1 "a node without a type is refused" "no file names the type" $L cluster merge <(echo '{"version":1,"nodes":[{"name":"x","gpus":1,"gpu_type":null}]}') -o "$T/no.json"
expect 0 "a type can be named" "1 node, 1 GPU written" $L cluster merge --gpu-type l4 <(echo '{"version":1,"nodes":[{"name":"x","gpus":1,"gpu_type":null}]}') -o "$T/x.json"
expect 2 "an unknown type" "unknown GPU type \"z9\"" $L cluster merge --gpu-type z9 "$T/old.json" -o "$T/no.json"
expect 1 "no links between" "no file gives the links between the nodes" $L cluster merge "$T/x.json" <(echo '{"version":1,"nodes":[{"name":"y","gpus":1,"gpu_type":"t4"}]}') -o "$T/no.json"
[ ! -e "$T/no.json" ]
result $? "nothing was written for what was refused"
expect 0 "nodes with different numbers of GPUs" "2 nodes, 3 GPUs" $L cluster merge <(echo '{"version":1,"nodes":[{"name":"x","gpus":2,"gpu_type":"l4"},{"name":"y","gpus":1,"gpu_type":"t4"}],"links":{"inter":{"bandwidth_gb_per_s":3,"latency_us":9}}}') -o "$T/d.json"

# ---- what the fabric already knows ----
day() { # DAY RATE
    printf 'src,dst,gb_per_s\na,b,%s\nb,a,20\n' "$2" >"$T/day.csv"
    $L cluster import "$T/day.csv" --when "2026-03-0$1T00:00:00Z" --gpu-type t4 -o "$T/day$1.json" >"$T/said" 2>&1
}
day 1 20; day 2 21; day 3 20; day 4 9
expect 0 "one low measurement is a collision" "1 were slow by a collision" $L cluster merge "$T"/day?.json -o "$T/week.json"
flat "$T/week.json" >"$T/flat"
has "and changes nothing" "$T/flat" '"bandwidth_gb_per_s":\[\[null,20.0\],\[20.0,null\]\]'
expect 0 "show tells it" "^history: a -> b is 20 GB/s .collision; the newest of 4 measurements is 9" $L cluster show "$T/week.json"
expect 0 "in JSON" '"why": ?"collision"' $L cluster show "$T/week.json" --json
$L cluster merge --half-life 0 "$T"/day?.json -o "$T/newest.json" >"$T/said" 2>&1
flat "$T/newest.json" >"$T/flat"
has "but for the newest alone" "$T/flat" '\[\[null,9.0\],\[20.0,null\]\]'
for n in 3 400; do
    printf '# Port extended counters: Lid 7 port 1 (CapMask: 0x5300)\nPortSelect:....1\nSymbolErrorCounter:....%s\n' $n >"$T/pq"
    expect 0 "import of counters" "^counters of 1 port or GPU written to $T/pq$n.json" \
        $L cluster import "$T/pq" --name a --when "2026-03-0$((n > 3 ? 4 : 3))T00:00:00Z" -o "$T/pq$n.json"
done
expect 0 "counters tell it from a fault" "counters accuse the links of a .lid 7 port 1.: symbol_error grew by 397" $L cluster merge "$T"/day?.json "$T"/pq*.json -o "$T/week.json"
expect 0 "in the picture too" "^history: a -> b is 9 GB/s .accused" $L cluster show "$T/week.json"
expect 2 "counters of nobody's" "expected the host of its counters, found none: give --name NODE" $L cluster import "$T/pq" -o "$T/no.json"
expect 2 "a time that is none" "when: expected a time in UTC as 2025-01-31T12:00:00Z, found .yesterday" $L cluster import "$T/pq" --when yesterday -o "$T/no.json"
expect 2 "a half-life below 0" "half-life" $L cluster merge --half-life -1 "$T/day1.json" -o "$T/no.json"

# ---- drained things ----
$L cluster synth calm --nodes 6 -o "$T/six.json" >/dev/null
cp "$T/six.json" "$T/before.json"
expect 0 "drain" "6 nodes, 48 GPUs" $L cluster drain "$T/six.json" 'n[1-2]' n3:7 'n4->n5' 'n0:0<->n5:1' --reason "xid 79" -o "$T/six.json"
$L cluster show "$T/six.json" >"$T/show"
has "nodes are drained" "$T/show" '^n2 .* drained '
has "a GPU is" "$T/show" '^n3 .* 1 drained '
has "the reason is kept" "$T/six.json" '"reason": "xid 79"'
$L plan "$T/six.json" gpt2-xl --seq 1024 --global-batch 31 --tp 1 --pp 1 --dp 31 --json >"$T/plan.json" 2>/dev/null
grep -Eq '"node": "n[12]"|"node": "n3", "gpu": 7' "$T/plan.json"
[ $? = 1 ] && grep -q '"node": "n3"' "$T/plan.json"
result $? "a plan leaves them alone"
cat >"$T/old.json" <<END
{"version": 1, "name": "old", "nodes": [{"name": "a", "gpus": 8, "gpu_type": "a100-sxm4-80g"},
    {"name": "b", "gpus": 8, "gpu_type": "v100-sxm2-32g", "state": "drained"}],
 "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 5},
           "inter": {"bandwidth_gb_per_s": 20, "latency_us": 10}}}
END
$L time "$T/old.json" gpt2-xl --tp 1 --pp 1 --seq 1024 --global-batch 64 -v >"$T/time" 2>/dev/null
has "nor does a drained, slower GPU type choose the profile" "$T/time" '^profile  megatron-core, fitted'
expect 0 "and back" "written" $L cluster drain "$T/six.json" --undrain n2 n1 n3:7 'n4->n5' 'n0:0--n5:1' -o "$T/six.json"
cmp "$T/six.json" "$T/before.json" >"$T/diff"
result $? "all is as it was" "$T/diff"
expect 2 "no such node" 'has no node "n9"' $L cluster drain "$T/six.json" n9 -o "$T/no.json"
expect 2 "no such GPU" "GPUs 0 to 7" $L cluster drain "$T/six.json" n1:8 -o "$T/no.json"
expect 2 "no such link" 'no node "n9"' $L cluster drain "$T/six.json" 'n1->n9' -o "$T/no.json"
expect 2 "not drained" "is not drained" $L cluster drain "$T/six.json" --undrain 'n1->n2' -o "$T/no.json"
expect 2 "a million names and more" "host list" $L cluster drain "$T/six.json" 'n[1-2000000]' -o "$T/no.json"
echo '{"version":1,"nodes":[{"name":"a","gpus":2,"gpu_type":null}],"links":null}' >"$T/bare.json"
expect 2 "links that nobody gave" "no links inside this node" $L cluster drain "$T/bare.json" 'a:0->a:1' -o "$T/no.json"
cmp "$T/six.json" "$T/before.json"
result $? "a failure leaves the file alone"

# ---- drawn clusters ----
for p in calm busy failing mixed; do
    $L cluster synth $p --nodes 40 --leaf 8 --pod 2 --seed 5 -o "$T/$p.json" >/dev/null
    $L cluster synth $p --nodes 40 --leaf 8 --pod 2 --seed 5 -o "$T/again.json" >/dev/null
    cmp "$T/$p.json" "$T/again.json" && $L cluster check "$T/$p.json" >/dev/null 2>"$T/said" && [ ! -s "$T/said" ]
    result $? "$p: the same seed draws the same cluster, and it is good" "$T/said"
done
$L cluster synth calm --nodes 40 --leaf 8 --pod 2 --seed 6 -o "$T/again.json" >/dev/null
! cmp -s "$T/calm.json" "$T/again.json"
result $? "another seed draws another"
$L cluster show "$T/failing.json" >"$T/show"
has "failing: some links are bad" "$T/show" '[1-9][0-9]* links are under 80 %'
has "three tiers of distance" "$T/show" 'between nodes, 2 levels up'
$L cluster show "$T/mixed.json" >"$T/show"
has "mixed: two generations" "$T/show" '^n39 .*a100-sxm4-80g'
expect 2 "unknown preset" "expected calm, busy, failing or mixed" $L cluster synth wild -o "$T/no.json"

# ---- matrices beside the file ----
(cd "$T" && mkdir -p side && $L cluster synth calm --nodes 5 --npy -o side/s.json >/dev/null)
[ "$(wc -c <"$T/side/s.0.npy")" = $((128 + 5 * 5 * 4)) ]
result $? ".npy beside the file"
$L cluster synth calm --nodes 5 -o "$T/inline.json" >/dev/null
$L cluster show "$T/side/s.json" >"$T/a"; $L cluster show "$T/inline.json" >"$T/b"
cmp "$T/a" "$T/b"
result $? "which says the same as rows"
expect 0 "drain into another folder takes the matrix along" "npy files beside it" $L cluster drain "$T/side/s.json" n1 -o "$T/moved.json"
expect 0 "which reads well" "n1 .*drained" $L cluster show "$T/moved.json"
expect 0 "drain in place leaves it" "written to" $L cluster drain "$T/side/s.json" n1 -o "$T/side/s2.json"
expect 0 "which reads well too" "n1 .*drained" $L cluster show "$T/side/s2.json"
head -c 200 "$T/side/s.0.npy" >"$T/side/short" && mv "$T/side/short" "$T/side/s.0.npy"
expect 1 "a .npy of the wrong size" "s.0.npy: expected 228 bytes.*found 200" $L cluster show "$T/side/s.json"
expect 2 "side files do not go to standard output" "name a file" $L cluster synth calm --nodes 5 --npy -o -

# ---- showing ----
if command -v script >/dev/null; then
    TERM=xterm script -qec "$LINKWISE cluster synth failing --nodes 6000 --npy -o $T/slow.json" /dev/null >"$T/line" </dev/null &
    left='generating: [0-9]+ %, [0-9]+ (s|min) left'
    for i in {1..200}; do
        matches "$left" "$T/line" && break
        pause 0.1
    done
    kill $! && wait $! 2>/dev/null
    matches "$left" "$T/line"
    result $? "a line with the time left after a second" "$T/line"
    [ ! -e "$T/slow.json" ]
    result $? "... and no file of what was ended"
fi
echo '{"version":1,"name":"a\nplan     faked","nodes":[{"name":"a","gpus":1,"gpu_type":"l4"}]}' >"$T/named.json"
expect 0 "a name is one line" "^a[?]plan     faked: 1 node" $L cluster show "$T/named.json"
expect 0 "also before a step" "^gpt2-xl on a[?]plan     faked: tp 1" $LINKWISE time "$T/named.json" gpt2-xl --seq 64 --global-batch 1
expect 3 "and where nothing fits" "gpt2-xl on 1 GPU of a[?]plan     faked" $LINKWISE plan "$T/named.json" gpt2-xl --seq 64 --global-batch 1 --offload none
expect 0 "heat map" "cnode2-004 4 # # \. # 3" $L cluster show examples/clusters/h100-17.json
expect 0 "what all GPUs of pairs of nodes reach" "^all GPUs of a pair of nodes reach 51.2 to 100.7 GB/s together, cnode2-003 -> cnode2-015 the least; 10 of 272 pairs are unmeasured" $L cluster show examples/clusters/h100-17.json
prints "^cnode2-008 8 \? \? 5 # 7 # \. \?" "in tenths of the highest of 100.7 GB/s"
expect 0 "also in the check" "^pairs +note +.* 51.2 to 100.7 GB/s; 10 of 272 pairs unmeasured" $L cluster check examples/clusters/h100-17.json
expect 0 "no map of pairs that are alike" "pair of nodes reach 100 to 100 GB/s together" $L cluster show <(echo '{"version":1,"nodes":[{"name":"a","gpus":2,"gpu_type":"l4"},{"name":"b","gpus":2,"gpu_type":"l4"}],"links":{"intra":{"bandwidth_gb_per_s":20,"latency_us":9},"inter":{"bandwidth_gb_per_s":[[null,3],[4,null]],"latency_us":9,"node_pair_gb_per_s":100}}}')
! grep -q "highest" "$T/both"
result $? "only of links" "$T/both"
expect 0 "no colour in a file" "cnode2-004 4" $L cluster show examples/clusters/h100-17.json
! grep -q "$(printf '\033')" "$T/out"
result $? "none at all"
$L cluster show examples/clusters/h100-17.json >"$T/letters"
esc=$(printf '\033') show="$LINKWISE cluster show examples/clusters/h100-17.json"
colored() { # PATTERN NAME COMMAND...: that in every row, and the letters below it are as ever
    sed "s/$esc\[[0-9;]*m//g; s/\r//" "$T/colored" | diff "$T/letters" - >"$T/why" &&
        grep "^cnode2-004 *$esc" "$T/colored" | grep -q "$esc\[$1m 3$esc"
    result $? "$2" "$T/why"
}
COLORTERM='' $show --color always >"$T/colored"
colored '48;5;[0-9]*;38;5;231' "256 colours when asked for"
if command -v script >/dev/null; then
    at() { env TERM=xterm COLORTERM= NO_COLOR= "$@" script -qec "$show 2>/dev/null" /dev/null >"$T/colored" </dev/null; }
    at TERM=xterm-256color
    colored '48;5;[0-9]*;38;5;231' "256 colours where TERM says so"
    at COLORTERM=truecolor
    colored '48;2;76;85;108;38;5;231' "true colour where COLORTERM says so"
    for without in TERM=vt100 "COLORTERM=truecolor NO_COLOR=1"; do
        at $without
        sed 's/\r//' "$T/colored" | diff "$T/letters" - >"$T/why"
        result $? "letters: $without" "$T/why"
    done
fi
expect 0 "worst links" "cnode2-004 +cnode2-009 +4.73 +4.73 +35" $L cluster show examples/clusters/h100-17.json --worst 1
cat >"$T/estimated.json" <<'J'
{"version": 1, "nodes": [{"name": "a", "gpus": 1, "gpu_type": "a100-sxm4-80g"}, {"name": "b", "gpus": 1, "gpu_type": "a100-sxm4-80g"}],
 "links": {"inter": {"bandwidth_gb_per_s": [[null, 9.5], [10, null]], "latency_us": 12, "estimate_error": [[null, 0.031], [null, null]]}},
 "measured": {"tool": "bwprobe", "when": "2026-01-01T00:00:00Z", "estimates": [
  {"links": "same GPU index", "measured": 1, "unmeasured": 1, "estimated": 1, "models": [
   {"from": "the median of its kind", "used": true, "held_out": 20, "error_p50": 0.01, "error_p90": 0.2, "low": 0.4},
   {"from": "what its two ends reach with others", "used": true, "held_out": 20, "error_p50": 0.01, "error_p90": 0.031, "low": 0.95}]}]}}
J
estimated='1 links \(same GPU index\) are estimated from what its two ends reach with others: 90 % of held-out links came within 3.1 %; the file has 95 % of the estimate'
expect 0 "links that bwprobe estimated, with their error" "$estimated" $L cluster show "$T/estimated.json"
$L cluster merge "$T/estimated.json" -o "$T/merged.json"
expect 0 "also after a merge" "$estimated" $L cluster show "$T/merged.json"
expect 0 "and in JSON" '"error_p90": 0.031' $L cluster show "$T/merged.json" --json
for f in estimated merged; do
    expect 0 "which link is an estimate ($f)" "^1 of 2 links are estimated, not measured: 90 % of held-out links came within 3.1 %" $L cluster show "$T/$f.json"
done
cat >"$T/drained.json" <<'J'
{"version": 1, "nodes": [{"name": "a", "gpus": 3, "gpu_type": "a100-sxm4-80g", "gpu_state": ["drained", "ok", "ok"]}],
 "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 2, "estimate_error": [[null, 0.3, null], [0.3, null, 0.1], [null, 0.1, null]]}}}
J
expect 0 "errors of one rate's estimates are those of the GPUs that are left" "^2 of 2 links .* came within 10 %" $L cluster show "$T/drained.json"
job="gpt2-xl --seq 1024 --global-batch 8 --tp 1 --pp 2"
expect 0 "time tells the estimates that it stands on" "^links +1 of the 2 links of this placement are estimated: .* within 3.1 %" $LINKWISE time "$T/merged.json" $job
expect 0 "... in JSON" '"estimated_links": \{' $LINKWISE time "$T/merged.json" $job --json
expect 0 "plan too" "^links +1 of the 2 links of this plan are estimated: .* within 3.1 %" $LINKWISE plan "$T/merged.json" $job -o "$T/plan.json"
expect 0 "and eval" "^links +1 of the 2 links of this placement" $LINKWISE eval "$T/plan.json"
$L cluster drain "$T/merged.json" 'a->b' -o "$T/drained.json"
expect 0 "a drained link is no estimate" "^0 of 2 links|^b +1" $L cluster show "$T/drained.json"
! grep -q "links are estimated, not" "$T/out"
result $? "that is told as one" "$T/out"
expect 1 "an error below zero is refused" "estimate_error\[0\]\[1\]: expected a number >= 0 or null" sh -c "sed 's/0.031\]/-1]/' $T/estimated.json | $LINKWISE cluster check -"
python3 - "$T/estimated.json" "$T/measured.json" <<'P' 2>/dev/null
import json, sys
d = json.load (open (sys.argv[1]))
m = d["measured"]
m["endpoints"] = [{"node": n, "gpu": 0, "rank": i, "survived": True} for i, n in enumerate ("ab")]
def pair (src, dst): return {"src": src, "dst": dst, "isolated_gb_per_s": {"median": 10}}
m["pairs"] = [pair (1, 0)]
m["when"] = "2026-02-01T00:00:00Z"
json.dump (d, open (sys.argv[1], "w"))
m["estimates"][0].update (estimated = 0, measured = 2, unmeasured = 0)
m["when"] = "2026-01-01T00:00:00Z"
m["pairs"] = [pair (0, 1), pair (1, 0)]
d["links"]["inter"]["bandwidth_gb_per_s"] = [[None, 11], [8, None]]
del d["links"]["inter"]["estimate_error"]
json.dump (d, open (sys.argv[2], "w"))
P
if [ -e "$T/measured.json" ]; then
    $L cluster merge "$T/measured.json" "$T/estimated.json" -o "$T/both.json" 2>"$T/why"
    grep -q "1 links are in several files" "$T/why"
    result $? "an estimate is no conflict with a measurement" "$T/why"
    expect 0 "and gives way to it though it is newer" "^a +1 .* 11 .* 10 " $L cluster show "$T/both.json"
    ! grep -q "estimate_error" "$T/both.json"
    result $? "so that none is left" "$T/both.json"
    expect 0 "an estimate is no measurement that changed" "1 links are measured only in the second file, 0 only in the first" $LINKWISE compare "$T/merged.json" "$T/measured.json"
fi
mkdir "$T/there"
sed 's/"tool"/"pairs_csv": "big-pairs.csv", "tool"/' "$T/measured.json" >"$T/there/big.json"
expect 0 "a table of pairs beside a links file stays where it is" "\"pairs_csv\": ?\"$T/there/big-pairs.csv\"" \
    sh -c "$LINKWISE cluster merge $T/there/big.json -o $T/small.json && cat $T/small.json"
expect 0 "what it measured holds against a newer estimate" "^a +1 .* 11 .* 10 " \
    sh -c "$LINKWISE cluster merge $T/there/big.json $T/merged.json -o $T/both.json && $LINKWISE cluster show $T/both.json"
expect 0 "one number for all" "between nodes +56 +0 +48 +48 +48 +48 +48" $L cluster show "8x4 h100-sxm5-80g intra:370 inter:48"
expect 1 "check names two GPUs of one UUID" "a:0 and b:0 have the UUID GPU-1" sh -c "echo '{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\",\"gpu_uuid\":[\"GPU-1\"]},{\"name\":\"b\",\"gpus\":1,\"gpu_type\":\"t4\",\"gpu_uuid\":[\"GPU-1\"]}],\"links\":{\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":9}}}' | $LINKWISE cluster check - >&2"
expect 1 "check names a NIC that is not there" "no NIC mlx5_9" sh -c "echo '{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\",\"gpu_nic\":[\"mlx5_9\"],\"nics\":[{\"name\":\"mlx5_0\"}]}]}' | $LINKWISE cluster check - >&2"

# ---- measured compute ----
cat >"$T/gpus.json" <<X
{"version": 1, "nodes": [{"name": "a", "gpus": 2, "gpu_type": "h100-sxm5-80g"}],
 "links": {"intra": {"bandwidth_gb_per_s": 370, "latency_us": 8}},
 "measured": {"tool": "bwprobe", "when": "2026-01-02T03:04:05Z", "status": "complete", "pairs": [],
  "endpoints": [{"node": "a", "gpu": 0, "copy_gb_per_s": 2900,
   "products": [{"precision": "bf16", "m": 8192, "n": 8192, "k": 8192, "tflop_per_s": 500}]}]}}
X
expect 0 "merge makes constants of GPU types of it" "h100-sxm5-80g: gemm_efficiency is 0.4297, measured on 1 GPU" \
    $LINKWISE cluster merge "$T/gpus.json" -o "$T/compute.json"
expect 0 "once" "^1 node, 2 GPUs written" $L cluster merge "$T/compute.json" -o "$T/again.json"
python3 -c 'import json, sys; a, b = (json.load (open (f)) for f in sys.argv[1:]); assert a == b' "$T/compute.json" "$T/again.json"
result $? "and again the same" "$T/again.json"
step() { $LINKWISE time "$1" llama-2-7b --seq 4096 --global-batch 8 --tp 2 --json 2>/dev/null; }
sed 's/"measured"/"told"/; s/"products"/"told"/' "$T/gpus.json" >"$T/plain.json"
python3 - "$(step "$T/compute.json")" "$(step "$T/plain.json")" >"$T/why" 2>&1 <<'P'
import json, sys
new, old = map (json.loads, sys.argv[1:])
assert new["step_s"] > 1.2 * old["step_s"], (new["step_s"], old["step_s"])
m = new["parts"]["gpu_types"][0]["measured"]
assert m["gemm_efficiency"]["by"] == "bwprobe" and m["gemm_efficiency"]["file"].endswith ("gpus.json"), m
assert m["copy_gb_per_s"]["when"] == "2026-01-02T03:04:05Z" and "measured" not in old["parts"]["gpu_types"][0]
P
result $? "estimates use them, and say who measured them" "$T/why"
sed 's/500/1100/' "$T/gpus.json" >"$T/fast.json"
expect 1 "faster than its peak" "fast.json: measured.endpoints.0..products.0..tflop_per_s: 1100 is more than 105 %" \
    $L cluster merge "$T/fast.json" -o "$T/no.json"
sed 's/500/0/' "$T/gpus.json" >"$T/zero.json"
expect 1 "a rate of zero" "endpoints.0..products.0..tflop_per_s: expected" $L cluster merge "$T/zero.json" -o "$T/no.json"
printf 'micro_batch,tp,forward_ms,backward_ms\n1,1,5.2,11\n2,1,10,21\n' >"$T/layers.csv"
expect 0 "layer times give them, too" "h100-sxm5-80g: gemm_efficiency 0.[34].* from 2 of 2 layer times .table." \
    $L cluster layers llama-2-7b "$T/layers.csv" --gpu h100-sxm5-80g --seq 4096 -o "$T/layers.json"
expect 0 "merge takes them" "1 node, 2 GPUs written" $L cluster merge "$T/compute.json" "$T/layers.json" -o "$T/both.json"
flat "$T/both.json" >"$T/flat"
has "before products alone" "$T/flat" '"gemm_efficiency":\{"by":"layertimes","format":"table"'
expect 1 "of a type that the cluster has not" "layers.json: gpu_types.h100-sxm5-80g: measured, but no node" \
    $L cluster merge "$T/c.json" "$T/layers.json" -o "$T/no.json"
expect 1 "impossible layer times" "layers.csv: row 1: .* less than the products alone" \
    $L cluster layers llama-2-70b "$T/layers.csv" --gpu h100-sxm5-80g --seq 8192 -o "$T/no.json"
printf '3,1,15,32\n1,1,90000,90000\n' >>"$T/layers.csv"
expect 0 "times that tell nothing are counted" "layers.csv: 1 of 4 layer times are left out, which are slower than slow products explain .row 4 first" \
    $L cluster layers llama-2-7b "$T/layers.csv" --gpu h100-sxm5-80g --seq 4096 -o "$T/layers.json"
prints "from 3 of 4 layer times"
expect 2 "layer times without a sequence" "give --seq" $L cluster layers llama-2-7b "$T/layers.csv" --gpu h100-sxm5-80g -o "$T/no.json"

# ---- bad input ----
printf '\037\213\010\000xx' >"$T/z.gz"
expect 1 "gzip" "gzip" $L topo --from "$T/z.gz"
expect 1 "gzip to import" "gzip" $L cluster import "$T/z.gz" -o "$T/no.json"
{ echo '<?xml version="1.0"?><!DOCTYPE topology [<!ENTITY a "aaaaaaaaaa">'; for i in 1 2 3 4 5 6 7 8 9; do echo "<!ENTITY a$i \"&a;&a;&a;&a;&a;&a;&a;&a;\">"; done; echo ']><topology version="2.0">&a9;</topology>'; } >"$T/bomb.xml"
expect 1 "an XML bomb" "entit" $L topo --from "$T/bomb.xml"
head -c 300 "$T/g1.xml" >"$T/cut.xml"
expect 1 "cut off" "cut.xml: line" $L topo --from "$T/cut.xml"
expect 1 "no such file" "No such file" $L cluster merge "$T/none.json" -o "$T/no.json"
expect 1 "nothing known" "found none of these" $L cluster import README.md -o "$T/no.json"
expect 2 "unknown format" "expected auto, nccl-tests" $L cluster import "$T/pairs.csv" --format csv -o "$T/no.json"
expect 2 "no output" "o FILE is required" $L cluster merge "$T/c.json"
expect 2 "unknown subcommand" 'unknown command "mrege"' $L cluster mrege
expect 2 "no subcommand" "Usage: linkwise cluster" $L cluster
expect 2 "too many arguments" "expected FILE, found 2" $L cluster import a b -o "$T/no.json"
[ ! -e "$T/no.json" ]
result $? "no file is left of a failure"
$LINKWISE cluster drain examples/clusters/h100-10.json "$(sed -n 's/.*"name": "\(cnode[^"]*\)".*/\1/p' examples/clusters/h100-10.json | paste -sd,)" \
    -o "$T/none.json" >/dev/null
$LINKWISE cluster check "$T/none.json" >"$T/out" 2>&1
[ $? = 1 ] && grep -Eq "nodes +FAILED +10 nodes, 80 GPUs, 0 of them in use" "$T/out"
result $? "no GPU in use cannot be planned on" "$T/out"
# What editors and spreadsheets put before a text.
printf '\357\273\277' | cat - examples/clusters/h100-10.json >"$T/mark.json"
expect 0 "a byte-order mark before JSON" "10 nodes" $LINKWISE cluster check "$T/mark.json"
printf '\357\273\277src,dst,gb_per_s\na,b,10\nb,a,11\n' >"$T/mark.csv"
expect 0 "... before a table of links" '"b"' $LINKWISE cluster import "$T/mark.csv" -o -
printf '\377\376g\0p\0u\0\n\0' >"$T/wide.csv"
expect 1 "UTF-16 is told" "wide.csv: UTF-16 text: convert it to UTF-8 first" $LINKWISE validate "$T/wide.csv"
done_testing
