#!/bin/sh
# Where tests put their files: TMPDIR if it is set, else a folder in memory that has room and may
# hold programs, else /tmp.  linkwise waits until what it writes is on the disk: in memory that
# takes no time, on a disk a minute of `make check`.
memory=/dev/shm
if [ -n "${TMPDIR:-}" ]; then
    echo "$TMPDIR"
elif [ "$(df -Pk $memory 2>/dev/null | awk 'END { print ($4 >= 2 ^ 20) }')" = 1 ] &&
    try=$(mktemp $memory/linkwise-try.XXXXXX 2>/dev/null); then
    { echo '#!/bin/sh' >"$try" && chmod +x "$try" && "$try"; } 2>/dev/null && echo $memory || echo /tmp
    rm -f "$try"
else
    echo /tmp
fi
