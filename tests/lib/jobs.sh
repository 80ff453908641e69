# Tests of import-job source this file behind tap.sh: what a job's files read as.
L="spawn $LINKWISE"
F=tests/jobs/files
[ -z "$PYTHON" ] || python_up

# row FILE...: the document of an estimate alone, in $T/doc.json.
row() {
    $L import-job --no-plan --json "$@" >"$T/doc.json" 2>"$T/err"
    result $? "reads $*" "$T/err"
}
# has COLUMN=VALUE...: of the row in $T/doc.json.
has() {
    local pair row
    IFS= read -rd '' row <"$T/doc.json"
    [[ $row == *$'\n  "row": {'* ]] && row=${row#*$'\n  "row": {'} || row=
    row=${row%%$'\n  }'*}
    for pair in "$@"; do
        [[ $row == *"\"${pair%%=*}\": \"${pair#*=}\""* ]] || echo "no $pair in: $row"
    done >"$T/why"
    [ ! -s "$T/why" ]
    result $? "row has $*" "$T/why"
}
# model_of: the model of the plan on standard input, as a config.json.
model_of() {
    sed -n '/^  "model": {/,/^  }/{s/^  "model": //; s/^  },$/}/; p}'
}
# is EXPRESSION: of d, the document, in Python.
is() {
    in_python "$1" || return 0
    json "$T/doc.json" "bool($1)" >"$T/said"
    matches "^True$" "$T/said"
    result $? "$1" "$T/doc.json"
}
