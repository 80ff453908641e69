#!/bin/bash
# Three hosts made of network namespaces: bwprobe starts under a real Slurm, by srun alone, by
# PMI2 and by PMIx, and under MPICH's mpiexec; where MPI's library is missing it says so, and
# MASTER_ADDR does instead; without MPI it asks for a secret.  Every way ends by itself and
# measures all links.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm
ldd "$BWPROBE" | grep -q libmpi && { echo "Bail out!  bwprobe is linked with MPI"; exit 1; }
mpi=
command -v mpirun.openmpi >/dev/null && mpi=yes
mpich=$(command -v mpiexec.hydra)

cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3
slurm_up 1 h1 h2 h3 || exit 1
export ASAN_OPTIONS=detect_leaks=0
run() { # WAY COMMAND...
    local way=$1
    shift
    timeout 120 "$@" "$BWPROBE" --transport socket --passes 1 --pause 0 --measure 0.001 --max-size 1 \
        --interface 10.77.0.0/24 -o "$OUT/$way.json" >"$OUT/$way.out" 2>"$OUT/$way.err"
    echo $? >"$OUT/$way.rc"
}
export OUT=$1
srun="srun -N 3 -n 3 --kill-on-bad-exit=0"
run open srun -N 1 -n 2
export BWPROBE_TOKEN=secret
run srun $srun
run pmi2 $srun --mpi=pmi2
srun --mpi=list >"$OUT/mpi.list" 2>&1
# Slurm lists the plugin also where it cannot load PMIx's library.
[ -n "$2" ] && grep -qw pmix "$OUT/mpi.list" &&
    timeout 120 srun -N 1 -n 1 --mpi=pmix true >"$OUT/pmix.try" 2>&1 && run pmix $srun --mpi=pmix
hydra="-launcher rsh -launcher-exec $HOSTS_RSH -iface br0 -hosts h1,h2,h3 -n 3"
[ -n "$3" ] || exit
run mpich mpiexec.hydra $hydra
hydra="$hydra -genv LD_LIBRARY_PATH $OUT/none"
run lost mpiexec.hydra $hydra
run told mpiexec.hydra $hydra -genv MASTER_ADDR h1 -genv MASTER_PORT 29811
S
# Empty files hide MPICH's libraries.
mkdir "$T/none"
: >"$T/none/libmpi.so.12"
: >"$T/none/libmpich.so.12"
in_sandbox "$T/inside.sh" "$T" "$mpi" "$mpich" >"$T/sandbox.out" 2>&1

# measured WAY BY: it ended well, and says who started it.
measured() {
    cat "$T/$1.err" "$T/sandbox.out" >"$T/why" 2>/dev/null
    [ "$(cat "$T/$1.rc" 2>/dev/null)" = 0 ] && python3 - "$T/$1.json" "$2" >>"$T/why" 2>&1 <<'P'
import json, sys
m = json.load (open (sys.argv[1]))["measured"]
print (m["versions"], m["status"], len (m["pairs"]))
assert m["status"] == "complete" and len (m["pairs"]) == 6
assert sorted (e["node"] for e in m["endpoints"]) == ["h1", "h2", "h3"]
assert m["versions"]["started_by"].startswith (sys.argv[2])
P
    result $? "$1: every link between the hosts" "$T/why"
}
[ "$(cat "$T/open.rc")" = 2 ] && grep -Eq "export BWPROBE_TOKEN=[0-9a-f]{32}$" "$T/open.err"
result $? "srun without a secret: one is made up, to be passed" "$T/open.err"
measured srun Slurm
measured pmi2 Slurm
if [ -e "$T/pmix.rc" ]; then
    measured pmix "Open MPI"
else
    echo "# no PMIx: Open MPI is not installed, or this Slurm has no such plugin: $(head -n 1 "$T/pmix.try" 2>/dev/null)"
fi
if [ -n "$mpich" ]; then
    measured mpich "MPICH Version"
    measured told "MPICH's variables"
    [ "$(cat "$T/lost.rc")" != 0 ] && grep -q "library libmpi.so.12 cannot be loaded: install it (package libmpich12).*MASTER_ADDR" "$T/lost.err"
    result $? "mpich without its library is told what is missing" "$T/lost.err"
fi
done_testing
