#!/bin/bash
# Four hosts made of network namespaces: bwprobe starts under a real Slurm, by srun alone, by
# PMI2 and by PMIx, and under MPICH's mpiexec, which it is not linked with; with MASTER_ADDR
# alone where the launcher does not say where rank 0 is.  Every way ends by itself and
# measures all links.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm
mpi=
ldd "$BWPROBE" | grep -q libmpi && mpi=yes
mpich=$(command -v mpiexec.hydra)

cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4
slurm_up 1 h1 h2 h3 h4 || exit 1
export ASAN_OPTIONS=detect_leaks=0
run() { # WAY COMMAND...
    local way=$1
    shift
    timeout 30 "$@" "$BWPROBE" --transport socket --passes 1 --pause 0 --measure 0.01 --max-size 1 \
        --interface 10.77.0.0/24 -o "$OUT/$way.json" >"$OUT/$way.out" 2>"$OUT/$way.err"
    echo $? >"$OUT/$way.rc"
}
export OUT=$1
srun="srun -N 4 -n 4 --kill-on-bad-exit=0"
run srun $srun
run pmi2 $srun --mpi=pmi2
srun --mpi=list >"$OUT/mpi.list" 2>&1
[ -n "$2" ] && grep -qw pmix "$OUT/mpi.list" && run pmix $srun --mpi=pmix
hydra="-launcher rsh -launcher-exec $HOSTS_RSH -iface br0 -hosts h1,h2,h3,h4 -n 4"
[ -z "$3" ] || run mpich mpiexec.hydra $hydra -genv MASTER_ADDR h1 -genv MASTER_PORT 29811
[ -z "$3" ] || run lost mpiexec.hydra $hydra
S
in_sandbox "$T/inside.sh" "$T" "$mpi" "$mpich" >"$T/sandbox.out" 2>&1

# measured WAY BY: it ended well, and says who started it.
measured() {
    cat "$T/$1.err" "$T/sandbox.out" >"$T/why" 2>/dev/null
    [ "$(cat "$T/$1.rc" 2>/dev/null)" = 0 ] && python3 - "$T/$1.json" "$2" >>"$T/why" 2>&1 <<'P'
import json, sys
m = json.load (open (sys.argv[1]))["measured"]
print (m["versions"], m["status"], len (m["pairs"]))
assert m["status"] == "complete" and len (m["pairs"]) == 12
assert sorted (e["node"] for e in m["endpoints"]) == ["h1", "h2", "h3", "h4"]
assert m["versions"]["started_by"].startswith (sys.argv[2])
P
    result $? "$1: every link between the hosts" "$T/why"
}
measured srun Slurm
measured pmi2 Slurm
if [ -e "$T/pmix.rc" ]; then
    measured pmix "Open MPI"
else
    echo "# no PMIx: bwprobe was built without MPI, or this Slurm has no such plugin"
fi
if [ -n "$mpich" ]; then
    measured mpich MPICH
    [ "$(cat "$T/lost.rc")" != 0 ] && grep -q "MASTER_ADDR" "$T/lost.err"
    result $? "mpich without MASTER_ADDR is told what is missing" "$T/lost.err"
fi
done_testing
