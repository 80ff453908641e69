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
    local pair
    sed -n '/^  "row": {/,/^  }/p' "$T/doc.json" >"$T/row"
    for pair in "$@"; do
        grep -Fq "\"${pair%%=*}\": \"${pair#*=}\"" "$T/row" || { echo "no $pair in:"; cat "$T/row"; }
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
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); assert $1, d" "$T/doc.json" 2>"$T/why"
    result $? "$1" "$T/why"
}
