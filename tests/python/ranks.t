#!/bin/bash
# Where a process is, from what launchers set; meshes of ranks; all without the library.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python ctypes python3
export LINKWISE_LIBRARY=/nowhere
cd "$T" && "$PY" "$OLDPWD/tests/python/places.py"
