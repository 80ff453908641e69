#!/bin/bash
# make wheel: the same bytes twice; installed with the library in it, an example plans.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python ctypes python3
needs binutils strip
[ "$B" = "$PWD/build" ] || skip_all "the wheel is of the usual build folder"
version=$("$LINKWISE" --version | awk 'NR == 1 { print $2 }')
# Another file stands for the library here, which takes long to compress.
for folder in one two; do
    $PY python/wheel.py "$version" linkwise.h "$T/$folder" >>"$T/out" 2>&1
done
$PY python/wheel.py "$version" "$B/liblinkwise.so.0" "$T/three" >>"$T/out" 2>&1
wheel=$(echo "$T"/three/linkwise-"$version"-py3-none-*.whl)
cmp "$T/one/${wheel##*/}" "$T/two/${wheel##*/}" >>"$T/out" 2>&1
result $? "the same inputs give the same wheel" "$T/out"
if $PY -c 'import importlib.util as i, sys; sys.exit(not i.find_spec("pip"))'; then
    $PY -m pip install -q --no-index --no-deps --no-compile --target "$T/site" "$wheel" >"$T/out" 2>&1
else
    $PY -m zipfile -e "$wheel" "$T/site" >"$T/out" 2>&1
fi
[ -s "$T/site/linkwise/liblinkwise.so.0" ] && [ -e "$T/site/linkwise/py.typed" ]
result $? "it installs, with library and types" "$T/out"
env -u LINKWISE_LIBRARY PYTHONPATH="$T/site" $PY examples/plan-in-python "$T/launch" >"$T/out" 2>&1 &&
    grep -q '^<linkwise.Plan of 32 ranks.* s a step$' "$T/out" && [ -s "$T/launch/megatron/args" ]
result $? "the example plans and emits" "$T/out"
done_testing
