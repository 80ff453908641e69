#!/bin/bash
# The Python package does what the library does: the same plans as the command line, exceptions
# with its messages, warnings, progress, threads side by side, Ctrl-C.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python ctypes python3
cd "$T" && "$PY" "$OLDPWD/tests/python/api.py"
