#!/bin/bash
# Links files that bwprobe writes are valid against docs/schema.
. tests/lib/tap.sh
. tests/lib/ranks.sh
needs_python jsonschema python3-jsonschema
OPTIONS="--transport socket --measure 0.004 --passes 2 --pause 0 --timeout 1 --max-size 1"
ranks 3 --passes 2 -o "$T/links.json"
ended 0 30 && valid links "$T/links.json" "a whole run"
ranks 4 --passes 3 -o "$T/links.json"
lines 13
slay 3
ended 1 30 && valid links "$T/links.json" "a run that lost a rank"
rm -f "$T"/links.json*
ranks 3 --passes 300 -o "$T/links.json"
lines 8
kill -TERM "${pid[0]}"
ended 1 30 && valid links "$T/links.json" "a run that was interrupted"
[ $tap_n = 3 ]
result $? "all three ran"
done_testing
