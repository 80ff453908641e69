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
strip -o "$T/liblinkwise.so.0" "$B/liblinkwise.so.0"
$PY python/wheel.py "$version" "$T/liblinkwise.so.0" "$T/three" >>"$T/out" 2>&1
wheel=$(echo "$T"/three/linkwise-"$version"-py3-none-*.whl)
cmp "$T/one/${wheel##*/}" "$T/two/${wheel##*/}" >>"$T/out" 2>&1
result $? "the same inputs give the same wheel" "$T/out"
# pip alone takes longer than all else here, to do what it does with any wheel.
if [ -n "$LINKWISE_LONG" ] && $PY -c 'import importlib.util as i, sys; sys.exit(not i.find_spec("pip"))'; then
    $PY -m pip install -q --no-index --no-deps --no-compile --target "$T/site" "$wheel" >"$T/out" 2>&1
else
    $PY -m zipfile -e "$wheel" "$T/site" >"$T/out" 2>&1
fi
[ -s "$T/site/linkwise/liblinkwise.so.0" ] && [ -e "$T/site/linkwise/py.typed" ]
result $? "it installs, with library and types" "$T/out"
$PY - "$T/site" >"$T/out" 2>&1 <<'P'
import base64, csv, hashlib, pathlib, sys
site = pathlib.Path(sys.argv[1])
record, = site.glob("linkwise-*.dist-info/RECORD")
rows = {name: (digest, size) for name, digest, size in csv.reader(record.open())}
for path in site.rglob("*"):
    if path.is_file() and "__pycache__" not in path.parts and path.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
        data = path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert rows.pop(str(path.relative_to(site))) == ("sha256=" + digest, str(len(data))), path
left = {pathlib.Path(name).name for name in rows}
assert left <= {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}, left
P
result $? "its record names every file, with its digest and size" "$T/out"
env -u LINKWISE_LIBRARY PYTHONPATH="$T/site" $PY examples/plan-in-python "$T/launch" >"$T/out" 2>&1 &&
    grep -q '^<linkwise.Plan of 32 ranks.* s a step$' "$T/out" && [ -s "$T/launch/megatron/args" ]
result $? "the example plans and emits" "$T/out"
done_testing
