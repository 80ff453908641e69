#!/bin/sh
# linkwise: where is this rank?  Print `rank host gpu-uuid`, as `linkwise check PLAN
# --running TABLE` reads it.
#     LAUNCHER ... where.sh                        as the launcher alone does it
#     LAUNCHER ... exec.sh where.sh                behind the wrapper
#     LAUNCHER ... where.sh PROGRAM [ARGUMENT...]  then become the program; the line goes to
#                                                  a file of this rank in $LINKWISE_RUNNING
# The GPU is the program's device LOCAL_RANK as the driver names it, `none` where it shows the
# program no such device (where.py); without a driver, what nvidia-smi calls that entry of
# CUDA_VISIBLE_DEVICES, else the entry itself, else `-`.
case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
where=$("$here/exec.sh" --where) || exit 1

gpu=$(python3 "$here/where.py" 2>/dev/null)
if [ -z "$gpu" ]; then
    gpu=$(echo "${CUDA_VISIBLE_DEVICES:-}" | awk -F, -v k="${LOCAL_RANK:-0}" '{ print $(k + 1) }')
    case $gpu in
    '' | *[!0-9]*) ;;
    *)
        uuid=$(nvidia-smi --query-gpu=index,uuid --format=csv,noheader 2>/dev/null |
            awk -F', *' -v g="$gpu" '$1 == g { print $2; exit }')
        gpu=${uuid:-$gpu}
        ;;
    esac
fi
line="$where ${gpu:--}"
if [ $# -eq 0 ]; then
    printf '%s\n' "$line"
    exit 0
fi
if [ -n "${LINKWISE_RUNNING:-}" ]; then
    mkdir -p "$LINKWISE_RUNNING"
    printf '%s\n' "$line" >"$LINKWISE_RUNNING/${where%% *}"
else
    printf '%s\n' "$line"
fi
exec "$@"
