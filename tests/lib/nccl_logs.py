"""Logs of NCCL for a plan, with rings that are known.

    nccl_logs.py PLAN FOLDER [KEY=VALUE ...]

Writes FOLDER/RANK.log for every rank, or with files=1 FOLDER/all.log, the processes' lines
shuffled but each one's in order.

    shape=2.21 | 2.4     how that version prints
    groups=world,tp,dp   communicators, in this order; also pp
    nodes=n0,n2,n1       the rings' order of nodes (default: of the group's ranks)
    channels=2           rings, each one entering a node at the next of its GPUs
    prefix=srun          what the launcher puts before lines
    moved=1              ranks 0 and the last are on each other's hosts
"""
import json, os, random, sys

plan = json.load(open(sys.argv[1]))
folder = sys.argv[2]
o = dict(shape="2.21", groups="world,dp", nodes="", channels="2", prefix="", moved="", files="")
o.update(a.split("=", 1) for a in sys.argv[3:])
new, channels = o["shape"] == "2.21", int(o["channels"])
rank = plan["ranks"]
host = [r["node"] for r in rank]
if o["moved"]:
    host[0], host[-1] = host[-1], host[0]
lines = [[] for _ in rank]
random.seed(1)


def say(r, text):
    prefix = {"srun": f"{r}: ", "mpirun": f"[1,{r}]<stdout>:"}.get(o["prefix"], "")
    pid = 1000 + r
    lines[r].append(f"{prefix}{host[r]}:{pid}:{pid + 50} [{rank[r]['gpu']}] NCCL INFO {text}")


def members(kind):
    """The groups of a kind, as lists of ranks."""
    fixed = {"world": (), "tp": ("cp", "dp", "pp"), "dp": ("tp", "pp"), "pp": ("tp", "cp", "dp")}[kind]
    groups = {}
    for r in rank:
        groups.setdefault(tuple(r[k] for k in fixed), []).append(r["rank"])
    return [g for g in groups.values() if len(g) > 1]


def ring(group, channel, nodes):
    """Node by node; channel c enters each node at its c-th member."""
    nodes = [n for n in nodes.split(",") if n] or list(dict.fromkeys(rank[r]["node"] for r in group))
    out = []
    for n in nodes:
        here = [r for r in group if rank[r]["node"] == n]
        at = channel % len(here) if here else 0
        out += here[at:] + here[:at]
    return [group.index(r) for r in out]


def connect(group, c, a, b):
    """Connection of comm ranks a -> b on channel c."""
    A, B = group[a], group[b]
    word = "Channel" if new else "Ring"
    at = f"{c:02d}/0" if new else f"{c:02d}"
    ends = f"{a}[{rank[A]['gpu']}] -> {b}[{rank[B]['gpu']}]" if new else f"{a} -> {b}"
    if rank[A]["node"] == rank[B]["node"]:
        say(A, f"{word} {at} : {a}[{rank[A]['gpu']}] -> {b}[{rank[B]['gpu']}] via P2P/CUMEM")
    else:
        say(B, f"{word} {at} : {ends} [receive] via NET/IB/0/GDRDMA")
        say(A, f"{word} {at} : {ends} [send] via NET/IB/0/GDRDMA")


def cut(prefix, order):
    """As NCCL prints a ring: 127 characters, or 20 ranks."""
    if not new:
        return prefix + "".join(f" {x:3d}" for x in order[:20])
    width = len(str(len(order) - 1))
    line = prefix + "".join(f" {x:{width}d}" for x in order)
    return line if len(line) < 127 else line[:124] + "..."


def communicator(number, group):
    n = len(group)
    rings = [ring(group, c, o["nodes"]) for c in range(channels)]
    ident = f"commId 0x{1000 + number:016x}"
    what = [f"comm 0x{0x5500000 + 16 * number:x} rank {i} nranks {n} cudaDev {rank[r]['gpu']} nvmlDev "
            f"{rank[r]['gpu']}" for i, r in enumerate(group)]
    for i, r in enumerate(group):
        if new:
            say(r, f"ncclCommInitRankConfig {what[i]} busId 18000 {ident} - Init START")
            say(r, f"comm 0x{0x5500000 + 16 * number:x} rank {i} nRanks {n} nNodes 2 localRanks 2 localRank 0 MNNVL 0")
        if i == 0:
            for c in range(channels):
                say(r, cut(f"Channel {c:02d}/{channels:02d} :" if new else f"Channel {c:02d} :", rings[c]))
        trees = []
        for c in range(channels):
            order = rings[c]  # a chain in the ring's order
            at = order.index(i)
            up = order[at - 1] if at else -1
            down = order[at + 1] if at + 1 < n else -1
            trees.append(f"[{c}] {down}/-1/-1->{i}->{up}" if new else f"[{c}] {up}->{i}->{down}/-1/-1")
            if new:
                say(r, f"Ring {c:02d} : {order[at - 1]} -> {i} -> {order[(at + 1) % n]}")
        say(r, "Trees " + " ".join(trees))
    for c in range(channels):
        for i in range(n):
            connect(group, c, rings[c][i], rings[c][(i + 1) % n])
    for i, r in enumerate(group):
        say(r, "Connected all rings")
        say(r, "Connected all trees")
        if new:
            say(r, f"{channels} coll channels, 0 collnet channels, 0 nvls channels, {channels} p2p channels, "
                   "2 p2p channels per peer")
            say(r, f"ncclCommInitRankConfig {what[i]} busId 18000 {ident} - Init COMPLETE")
        else:
            say(r, f"{what[i]} - Init COMPLETE")


version = "2.21.5+cuda12.4" if new else "2.4.8+cuda10.1"
for r in range(len(rank)):
    say(r, "Bootstrap : Using eth0:10.0.0.1<0>")
lines[0].append(f"NCCL version {version}")
groups = [g for kind in o["groups"].split(",") for g in members(kind)]
for number, g in enumerate(groups, 1):
    communicator(number, g)
os.makedirs(folder, exist_ok=True)
if o["files"]:
    order = [r for r in range(len(rank)) for _ in lines[r]]
    random.shuffle(order)
    at = [0] * len(rank)
    with open(os.path.join(folder, "all.log"), "w") as f:
        for r in order:
            f.write(lines[r][at[r]] + "\n")
            at[r] += 1
else:
    for r in range(len(rank)):
        with open(os.path.join(folder, f"{r}.log"), "w") as f:
            f.write("\n".join(lines[r]) + "\n")
