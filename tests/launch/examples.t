#!/bin/bash
# The examples run as the README prints them: placement files from the bundled cluster's links,
# and jobs under a real mpirun and a real Slurm on hosts made of network namespaces, which run
# where their plan says.
. tests/lib/tap.sh
. tests/lib/placed.sh

needs python3 python3
for name in place-ranks launch-with-mpirun launch-with-slurm; do
    sed -n "/^<!-- examples\/$name -->\$/,/^<!-- end -->\$/p" README.md | sed '1,2d;/^```$/d;/^<!-- end/d' >"$T/readme"
    diff "$T/readme" "examples/$name" >"$T/diff"
    result $? "the README prints examples/$name" "$T/diff"
done
examples/place-ranks examples/clusters/h100-10.json llama-2-13b "$T/placed" >"$T/out" 2>&1 &&
    grep -q "this plan saves" "$T/out" && [ "$(wc -l <"$T/placed/launch/map.txt")" = "$(sed -n 's/ ranks written.*//p' "$T/out")" ] &&
    tail -n 4 "$T/out" | cmp -s - <(head -n 4 "$T/placed/launch/map.txt")
result $? "place-ranks" "$T/out"

# No driver that could be asked, nor a python3 to ask it; tests/launch/wrapper.t has NUMA nodes.
no_driver
inside() { # NAME HOSTS <COMMANDS: in a sandbox with so many hosts
    local name=$1
    hosts_cluster "$2" 2 >"$T/cluster.json"
    { echo "export LINKWISE_NUMA=0 PATH=\$1/no-driver/bin:\$PATH; . tests/lib/hosts.sh; . tests/lib/slurm.sh; hosts='$(seq -s " " -f h%.0f "$2")'; hosts_up \$hosts"; cat; } >"$T/$name.sh"
    in_sandbox "$T/$name.sh" "$T" >"$T/$name.out" 2>&1
    [ $? = 0 ] && [ "$(grep -c "^rank [0-9]* of [0-9]* on h[1-8]" "$T/$name.out")" = "$(wc -l <"$T/$name/map.txt")" ] &&
        grep -Eq "running hosts +ok" "$T/$name.out" && grep -Eq "running GPUs +ok" "$T/$name.out" && grep -q "+0.00 %" "$T/$name.out"
    result $? "$name" "$T/$name.out"
}
program="sh -c 'echo rank \$RANK of \$WORLD_SIZE on \$(hostname)'"
cannot=$(why_no_hosts)
[ -n "$cannot" ] || command -v mpirun.openmpi >/dev/null || no_mpirun="package openmpi-bin is not installed"
for command in slurmctld slurmd:slurmd sbatch:slurm-client; do
    [ -n "$cannot" ] || command -v "${command%:*}" >/dev/null || no_slurm="package ${command#*:} is not installed"
done
if [ -z "$cannot$no_mpirun" ]; then
    inside launch-with-mpirun 4 <<S2
export MPIRUN="mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent \$HOSTS_RSH --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24"
examples/launch-with-mpirun "\$1/cluster.json" llama-2-7b "\$1/launch-with-mpirun" $program
S2
else
    skip launch-with-mpirun "$cannot$no_mpirun"
fi
if [ -z "$cannot$no_slurm" ]; then
    inside launch-with-slurm 7 <<S2
slurm_up 2 \$hosts || exit 1
examples/launch-with-slurm "\$1/cluster.json" llama-2-7b "\$1/launch-with-slurm" $program
S2
else
    skip launch-with-slurm "$cannot$no_slurm"
fi
done_testing
