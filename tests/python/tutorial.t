#!/bin/bash
# docs/python.md is true: its code runs in the order of the page and prints what stands below it.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python numpy python3-numpy
cd "$T" && "$PY" "$OLDPWD/tests/python/tutorial.py" "$OLDPWD/docs/python.md"
