#!/bin/bash
# Man pages have the options that --help shows and no others; completions offer what the programs
# take, in the shells themselves.
. tests/lib/tap.sh
B=$(dirname "$LINKWISE")/pages
[ -d "$B" ] || skip_all "$B is not there: run make first"

# run "linkwise plan" ARGUMENT...
run() {
    local program=$LINKWISE
    [ "${1%% *}" = bwprobe ] && program=$BWPROBE
    # shellcheck disable=SC2046
    "$program" $(echo "$1 " | cut -s -d ' ' -f 2-) "${@:2}"
}
# The commands, as the help lists them.
listed() { run "$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }
{
    echo bwprobe
    for c in $(listed linkwise); do
        echo "linkwise $c"
        [ "$c" = cluster ] && listed "linkwise cluster" | sed 's/^/linkwise cluster /'
    done
} >"$T/commands"
[ "$(wc -l <"$T/commands")" -gt 20 ]
result $? "commands are found" "$T/commands"

# --help breaks lines and wraps; options begin theirs.
while read -r c; do
    page=$B/man1/${c// /-}.1
    run "$c" --help | grep -oE '^ +(-.,)? +--[a-z-]+(=[^ ]+)?' | sed -E 's/^ +//; s/ +/ /' | sort >"$T/helped"
    sed -n '/^\.TP/{n;s/\\fB\|\\fI\|\\fR//g;s/\\-/-/gp}' "$page" | grep -E '^(-., )?--' | sort >"$T/paged"
    diff "$T/helped" "$T/paged" | sed "s/^/$c: /"
    [ "$c" = "linkwise cluster" ] || [ -s "$T/helped" ] || echo "$c: no options"
done <"$T/commands" >"$T/unlike"
[ ! -s "$T/unlike" ]
result $? "every page has the options of --help and no others" "$T/unlike"

sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' "$B/man1/linkwise-plan.1" | grep -A1 '^\.br$' | grep -q 'from PLAN'
result $? "each use stands on a line of its own" "$B/man1/linkwise-plan.1"

for f in "$B"/man5/*.5; do
    name=$(basename "$f" .5) name=${name#linkwise-}
    [ -f "docs/$name.md" ] || continue
    # Rows below the line that ends a table's head.
    awk '/^\|[-|]+\|$/ { on = 1; next } !/^\|/ { on = 0 } on' "docs/$name.md" | wc -l >"$T/rows"
    grep -c '^\.TP' "$f" | diff "$T/rows" - >/dev/null || echo "$name"
    [ "$(grep -c '^## ' "docs/$name.md")" = "$(grep '^\.SH' "$f" | grep -vcE 'NAME|DESCRIPTION|SEE ALSO')" ] || echo "$name: headings"
done >"$T/unlike"
[ ! -s "$T/unlike" ] && [ -f "$B/man5/linkwise-plan.5" ] && grep -q '^\\fBestimates\[\]' "$B/man5/linkwise-links.5"
result $? "pages of file formats have every heading and row of docs/" "$T/unlike"

lints() { # COMMAND...: what it says on standard error, and mandoc on the other
    if ! command -v "$1" >/dev/null; then
        skip "$1" "it is not installed"
        return
    fi
    "$@" "$B"/man?/* >"$T/page" 2>"$T/found"
    [ "$1" = man ] || cat "$T/page" >>"$T/found"
    [ ! -s "$T/found" ]
    result $? "$* has nothing to say" "$T/found"
}
lints mandoc -Tlint -Wwarning
lints man --warnings -P cat -l

# What bash offers after words; the last is what is being completed.
. "$B/bash/linkwise"
. "$B/bash/bwprobe"
compopt() { :; }
offered() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "_$1"
    echo "${COMPREPLY[*]}"
}
while read -r c; do
    run "$c" --help | grep -oE '^ +(-.,)? +--[a-z-]+=[a-z0-9-]+(\|[a-z0-9-]+)+( |$)' | sed 's/.*--//' |
        while IFS='= ' read -r option words; do
            # shellcheck disable=SC2086
            [ "$(offered $c --$option '')" = "${words//|/ }" ] || echo "$c --$option: $(offered $c --$option '')"
            echo . >>"$T/tried"
        done
done <"$T/commands" >"$T/unlike"
[ ! -s "$T/unlike" ] && [ "$(wc -l <"$T/tried")" -gt 40 ]
result $? "bash offers the words of every option" "$T/unlike"
# What stands behind a command: its options, files where it takes any, and listed values.
while read -r c; do
    case $c in linkwise\ cluster | bwprobe) continue ;; esac
    run "$c" --help >"$T/help"
    # shellcheck disable=SC2086
    [ "$(offered $c -- | tr ' ' '\n')" = "$(grep -oE '^ +(-., *)? *--[a-z-]+' "$T/help" | sed 's/.*--/--/')" ] ||
        echo "$c: options: $(offered $c --)"
    case $c in *synth | *gpus | *models | *topo) ;;
    *) [ "$(offered $c README.m)" = README.md ] || echo "$c: a file: $(offered $c README.m)" ;; esac
    sed -nE 's/^ +(-.,)? +--(to|format)=NAME.*/\2/p' "$T/help" | while read -r option; do
        [ -n "$(offered $c --$option '')" ] || echo "$c --$option: nothing"
    done
done <"$T/commands" >"$T/unlike"
[ ! -s "$T/unlike" ]
result $? "bash offers the options of every command, files and listed values" "$T/unlike"
offers() { # WANTED WORD...
    offered "${@:2}" >"$T/out"
    [ "$(cat "$T/out")" = "$1" ]
    result $? "bash, ${*:2}: $1" "$T/out"
}
offers "plan" linkwise pl
offers "show synth" linkwise cluster s
offers "--worst" linkwise cluster show --wor
offers "slurm-topology svg" linkwise cluster export --to s
offers "openmpi,mpich" linkwise emit plan.json --to openmpi,mp
offers "mpich" linkwise emit -t mp
offers "h200-sxm-141g" linkwise mem llama-3-8b --gpu h200-s
offers "torchtitan" linkwise plan --profile = torchti
offers "hwloc" linkwise topo --format hw
offers "docs/search.md" linkwise eval docs/sea
offers "" linkwise plan --seq ''
offers "--schedule" linkwise plan c.json --sched
offers "tests/install" linkwise emit -d tests/inst
offers "nccl" bwprobe --transport n

# A shell at a terminal; the command that it ends up with is printed.
typed() { # NAME SHELL SETUP LINE WANTED
    if ! command -v "$2" >/dev/null || ! command -v script >/dev/null; then
        skip "$1" "$2 or script is not installed"
        return
    fi
    printf '%s\n' "$3" "linkwise () { echo \"<\$*>\"; }" "$4$(printf '\t')" |
        TERM=dumb timeout 20 script -qec "$2 $([ "$2" = zsh ] && echo -f || echo --norc) -i" /dev/null >"$T/out" 2>&1
    grep -qF "<$5>" "$T/out"
    result $? "$1" "$T/out"
}
load="fpath=($B/zsh \$fpath); autoload -U compinit; compinit -u -D"
typed "bash, typed" bash ". $B/bash/linkwise" "linkwise plan --schedule=inter" "plan --schedule=interleaved"
typed "zsh, typed: an option" zsh "$load" "linkwise cluster show --cel" "cluster show --cells"
typed "zsh, typed: a word" zsh "$load" "linkwise plan --schedule=inter" "plan --schedule=interleaved"
if command -v fish >/dev/null; then
    fished() { # LINE WANTED
        [ "$(HOME=$T fish -c "source $B/fish/linkwise.fish; complete -C '$1'" 2>&1 | cut -f 1 | paste -sd ' ')" = "$2" ]
        result $? "fish, $1: $2"
    }
    fished "linkwise cluster s" "show synth"
    fished "linkwise plan --precision=fp8" "--precision=fp8"
    fished "linkwise emit --to openmpi,mp" "openmpi,mpich"
    fished "linkwise plan --memory-m" "--memory-model"
    fished "linkwise mem gpt3-6" "gpt3-6.7b"
else
    skip "fish" "fish is not installed"
fi

V=$("$LINKWISE" --version | cut -d ' ' -f 2)
grep -q "^version: $V\$" CITATION.cff && head -n 1 packaging/debian/changelog | grep -qF "linkwise ($V)"
result $? "CITATION.cff and the packages have the version of the program"
done_testing
