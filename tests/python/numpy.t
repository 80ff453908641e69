#!/bin/bash
# NumPy matrices go in and come out as they were: GB/s and microseconds, NaN where nobody measured.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python numpy python3-numpy
cd "$T" && "$PY" "$OLDPWD/tests/python/matrices.py"
