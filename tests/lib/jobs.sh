# Tests of import-job source this file behind tap.sh: what a job's files read as.
L=$LINKWISE
F=tests/jobs/files

# row FILE...: the document of an estimate alone, in $T/doc.json.
row() {
    $L import-job --no-plan --json "$@" >"$T/doc.json" 2>"$T/err"
    result $? "reads $*" "$T/err"
}
# has COLUMN=VALUE...: of the row in $T/doc.json.
has() {
    python3 - "$T/doc.json" "$@" >"$T/why" 2>&1 <<'P'
import json, sys
row = json.load(open(sys.argv[1]))["row"]
for pair in sys.argv[2:]:
    column, value = pair.split("=", 1)
    assert row[column] == value, (column, row[column], value)
P
    result $? "row has $*" "$T/why"
}
# is EXPRESSION: of d, the document, in Python.
is() {
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); assert $1, d" "$T/doc.json" 2>"$T/why"
    result $? "$1" "$T/why"
}
