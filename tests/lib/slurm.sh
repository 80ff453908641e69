# Source me after hosts.sh and hosts_up: a real Slurm on those hosts.
#
#     slurm_up GPUS h1 h2 ...   one slurmctld here and one slurmd in each host's namespace, each
#                               with GPUS fake GPUs (a host may say h1:GPUS for itself);
#                               returns when all nodes are idle; $SLURM_MORE goes into slurm.conf
#     slurm_idle                returns when no job is left
slurm_up() {
    local gpus=$1 slurm=$hosts_dir/slurm list idle i h n most=0 nodes=''
    shift
    list=$(IFS=,; echo "${*%:*}")
    mkdir -p "$slurm/state" "$slurm/log"
    export SLURM_CONF=$slurm/slurm.conf
    for h in "$@"; do
        n=$gpus
        [ "$h" = "${h%:*}" ] || n=${h#*:} h=${h%:*}
        most=$((n > most ? n : most))
        mkdir -p "$slurm/spool/$h" "$slurm/tmp/$h"
        echo "NodeName=$h Name=gpu File=$slurm/gpu[0-$((n - 1))]" >>"$slurm/gres.conf"
        nodes="${nodes}NodeName=$h CPUs=16 RealMemory=1000 Gres=gpu:$n State=UNKNOWN
"
    done
    for i in $(seq 0 $((most - 1))); do
        : >"$slurm/gpu$i"
        mount --bind /dev/null "$slurm/gpu$i"
    done
    printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$slurm/cgroup.conf"
    cat >"$SLURM_CONF" <<C
ClusterName=test
SlurmctldHost=head(10.77.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool/%n
TmpFS=$slurm/tmp/%n
SlurmctldPidFile=$slurm/ctld.pid
SlurmdPidFile=$slurm/slurmd-%n.pid
SlurmctldLogFile=$slurm/log/ctld
SlurmdLogFile=$slurm/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=100000
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
KillWait=2
GresTypes=gpu
${SLURM_MORE:-}
${nodes}PartitionName=all Nodes=$list Default=YES MaxTime=5 State=UP
C
    # For every batch job Slurm starts a login shell, to read what its profile sets.
    for i in /etc/profile ~root/{.bash_profile,.bash_login,.profile,.bashrc}; do
        [ ! -e "$i" ] || mount --bind /dev/null "$i"
    done
    slurmctld -D -f "$SLURM_CONF" >"$slurm/log/ctld.out" 2>&1 &
    for h in "${@%:*}"; do
        "$HOSTS_RSH" "$h" "exec slurmd -D -f $SLURM_CONF -N $h" >"$slurm/log/$h.out" 2>&1 &
    done
    for i in {1..50}; do
        mapfile -t idle < <(sinfo -h -N -t idle -p all -o %N 2>/dev/null)
        [ ${#idle[@]} = $# ] && return
        pause 1
    done
    cat "$slurm"/log/*
    return 1
}
slurm_idle() {
    local i
    for i in {1..300}; do
        [ -n "$(squeue -h)" ] || return
        pause 2
    done
}
