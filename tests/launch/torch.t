#!/bin/bash
# Real torchrun agents, of which two are on one host, with unlike numbers of ranks, and plain env://
# processes on interleaved hosts, which meet where they are told to; in the long form agents on
# interleaved hosts, too, and their ranks form a gloo group: every rank is on the planned host and
# GPU, which is its device LOCAL_RANK.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_python torch python3-torch

# Every rank of a group loads torch, which takes two seconds of a processor.
hosts=2
[ -z "$LINKWISE_LONG" ] || hosts=4
world=$((2 * hosts))
for order in interleaved nodes unlike; do
    placed "$T/$order" $hosts 2 $order || exit 1
    expect 0 "emit, $order" "$world ranks written" $LINKWISE emit "$T/$order/plan.json" --to torchrun,env -d "$T/$order/launch"
done
[ "$(wc -l <"$T/interleaved/launch/torchrun/agents.txt")" = $world ] &&
    [ "$(awk '{ print $3 }' "$T/interleaved/launch/torchrun/agents.txt" | sort -u)" = 1 ]
result $? "interleaved ranks have an agent each" "$T/interleaved/launch/torchrun/agents.txt"
[ "$(wc -l <"$T/nodes/launch/torchrun/agents.txt")" = $hosts ]
result $? "whole hosts have one agent" "$T/nodes/launch/torchrun/agents.txt"
[ "$(awk '{ print $2 ":" $3 }' "$T/unlike/launch/torchrun/agents.txt" | paste -sd' ')" = "0:1 1:1 2:2$([ $hosts = 2 ] || echo " 3:1 4:1 5:2")" ]
result $? "every run of ranks on a host has one" "$T/unlike/launch/torchrun/agents.txt"

cat >"$T/rank.py" <<'P'
import os, socket, sys, time
def place(rank):
    names = ("LINKWISE_GPU", "CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
             "GROUP_WORLD_SIZE", "WORLD_SIZE", "MASTER_ADDR", "LOCAL_RANK")
    return " ".join([str(rank), socket.gethostname()] + [os.environ[n] for n in names])
if sys.argv[1] == "alone":
    open(sys.argv[2], "a").write(place(os.environ["RANK"]) + "\n")
    sys.exit()
if sys.argv[1] == "meet": # what a group's store does at first, without torch
    at, rank, world = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if rank == 0:
        with socket.create_server(at) as door:
            print("\n".join([place(0)] + [door.accept()[0].makefile().read() for _ in range(world - 1)]))
        sys.exit()
    for _ in range(600):
        try:
            with socket.create_connection(at) as s:
                s.sendall(place(rank).encode())
            sys.exit()
        except ConnectionRefusedError: # rank 0 has not begun yet
            time.sleep(.1)
    sys.exit("nobody listens at %s port %d" % at)
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
one = torch.ones(1)
dist.all_reduce(one)
places = [None] * world
dist.all_gather_object(places, place(rank))
assert one.item() == world == int(os.environ["WORLD_SIZE"])
if rank == 0:
    print("\n".join(places))
P
# torchrun is one Python that has loaded torch: for each agent it makes a process of its own, which goes
# where the agent was started, with what it was given, and becomes it.  Neither collects nor takes down
# what torch made: that would copy all of it for each agent.
cat >"$T/agents.py" <<'P'
import ctypes, gc, os, sys, threading
from torch.distributed import run
setns = ctypes.CDLL(None).setns
asked, here = open(os.open("ask", os.O_RDWR)), os.getcwd()
def agent(of):
    for space in "net", "uts":
        assert setns(os.open(of + "ns/" + space, os.O_RDONLY), 0) == 0
    for fd in 0, 1, 2:
        os.dup2(os.open(of + "fd/%d" % fd, os.O_WRONLY | os.O_APPEND if fd else os.O_RDONLY), fd)
    os.environ.clear()
    os.environ.update(v.split("=", 1) for v in open(of + "environ").read().split("\0") if "=" in v)
    os.chdir(os.readlink(of + "cwd"))
    run.main(open(of + "cmdline").read().split("\0")[2:-1])
gc.freeze()
for pid in asked:
    child = os.fork()
    if child == 0:
        agent("/proc/%s/" % pid.strip())
        sys.stdout.flush()
        os._exit(0)
    threading.Thread(target=lambda name=here + "/told." + pid.strip(), child=child:
                     open(name, "w").write("%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))).start()
P
cat >"$T/torchrun" <<'S3'
#!/bin/sh
mkfifo "${0%/*}/told.$$"
echo $$ >"${0%/*}/ask"
read -r code <"${0%/*}/told.$$"
exit "$code"
S3
chmod +x "$T/torchrun"
mkfifo "$T/ask"
# env:// starts every rank by itself, whatever the order; the other orders are the unlike one, made simpler.
# how ORDER WAY: what its ranks do.
how() {
    case $1-$2 in
    interleaved-env) [ -n "$LINKWISE_LONG" ] && echo group || echo meet ;;
    interleaved-torchrun) [ -n "$LINKWISE_LONG" ] && echo group || echo "alone $T/$1/$2.alone" ;;
    *) echo "alone $T/$1/$2.alone" ;;
    esac
}
ways() {
    case $1 in
    interleaved) echo ${LINKWISE_LONG:+torchrun} env ;;
    unlike) echo torchrun ;;
    nodes) [ -z "$LINKWISE_LONG" ] || echo torchrun ;;
    esac
}
export -f ways how
export T
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
hosts_up $(seq -f h%.0f "$3")
export LINKWISE_RSH=$HOSTS_RSH LINKWISE_TORCHRUN="$1/torchrun -r 9:1 -t 9:1 --monitor_interval=0.5" GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1
(cd "$1" && exec "$2" agents.py) &
for order in interleaved nodes unlike; do
    cd "$1/$order/launch"
    for way in $(ways $order); do
        noted "../$way" timeout 90 ./each-node.sh $way/node.sh "$2" "$1/rank.py" $(how $order $way)
    done
done
S2
in_sandbox "$T/inside.sh" "$T" "$PY" $hosts >"$T/sandbox.out" 2>&1

for order in interleaved nodes unlike; do
    for way in $(ways $order); do
        d=$T/$order
        [ "$(cat "$d/$way.rc" 2>/dev/null)" = 0 ]
        result $? "$way, $order: the job ends well" "$d/$way.err"
        [ ! -e "$d/$way.alone" ] || mv "$d/$way.alone" "$d/$way.out"
        same_as_map "$d" "$d/$way.out" && sees "$d/launch" "$d/$way.out"
        result $? "$way, $order: every rank is on the planned host and GPU, its device LOCAL_RANK" "$d/$way.out"
        echo "# $way, $order: $(cat "$d/$way.ms") ms"
    done
done
done_testing
