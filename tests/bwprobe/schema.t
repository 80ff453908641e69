#!/bin/bash
# Links files that bwprobe writes are valid against docs/schema.
. tests/lib/tap.sh
. tests/lib/ranks.sh
PY=
for p in python3 /usr/bin/python3; do
    $p -c 'import jsonschema' 2>/dev/null && PY=$p && break
done
[ -n "$PY" ] || skip_all "package python3-jsonschema is not installed"
OPTIONS="--transport socket --measure 0.004 --passes 2 --pause 0 --timeout 1 --max-size 1"
valid() {
    $PY - docs/schema/links.schema.json "$T/links.json" >"$T/why" 2>&1 <<'P'
import json, sys, jsonschema
schema, doc = (json.load (open (f)) for f in sys.argv[1:])
jsonschema.validate (doc, schema)
P
    result $? "$1" "$T/why"
}
ranks 3 --passes 2 -o "$T/links.json"
ended 0 30 && valid "a whole run"
ranks 4 --passes 6 -o "$T/links.json"
lines 13
slay 3
ended 1 30 && valid "a run that lost a rank"
rm -f "$T"/links.json*
ranks 3 --passes 300 -o "$T/links.json"
lines 8
kill -TERM "${pid[0]}"
ended 1 30 && valid "a run that was interrupted"
[ $tap_n = 3 ]
result $? "all three ran"
done_testing
