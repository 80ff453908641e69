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
listed() { run "$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }
{
    echo bwprobe
    for c in $(listed linkwise); do
        echo "linkwise $c"
        [ "$c" = cluster ] && listed "linkwise cluster" | sed 's/^/linkwise cluster /'
    done
} >"$T/commands"
[ "$(wc -l <"$T/commands")" -gt 20 ]
result $? "commands are found" "$T/commands"

# What each --help says, read often below.
mkdir "$T/help"
while read -r c; do
    run "$c" --help >"$T/help/$c"
done <"$T/commands"

# --help breaks lines and wraps; options begin theirs.
awk '
    FNR == 1 { name = FILENAME; sub(".*/", "", name); all[name] }
    match($0, /^ +(-.,)? +--[a-z-]+(=[^ ]+)?/) { s = substr($0, 1, RLENGTH); sub(/^ +/, "", s); gsub(/ +/, " ", s); print name ": " s; some[name] }
    END { for (name in all) if (name != "linkwise cluster" && !(name in some)) print name ": no options" }' "$T"/help/* | sort >"$T/helped"
while read -r c; do
    echo "$B/man1/${c// /-}.1"
done <"$T/commands" | xargs awk '
    FNR == 1 { name = FILENAME; sub(".*/", "", name); sub(/\.1$/, "", name); sub(/-/, " ", name); if (name != "linkwise cluster") sub(/cluster-/, "cluster ", name) }
    after { gsub(/\\f[BIR]/, ""); if (gsub(/\\-/, "-") && /^(-., )?--/) print name ": " $0 }
    { after = /^\.TP/ }' | sort >"$T/paged"
diff "$T/helped" "$T/paged" >"$T/unlike"
result $? "every page has the options of --help and no others" "$T/unlike"

sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' "$B/man1/linkwise-plan.1" | grep -A1 '^\.br$' | grep -q 'from PLAN'
result $? "each use stands on a line of its own" "$B/man1/linkwise-plan.1"

# Rows below the line that ends a table's head; headings.
for f in "$B"/man5/*.5; do
    name=${f##*/linkwise-}
    [ ! -f "docs/${name%.5}.md" ] || printf '%s\n' "docs/${name%.5}.md" "$f"
done | xargs awk '
    FNR == 1 { on = 0; name = FILENAME; sub(".*/", "", name); sub(/^linkwise-/, "", name); page = sub(/\.5$/, "", name); sub(/\.md$/, "", name); all[name] }
    page && /^\.TP/ { rows[name]-- }
    page && /^\.SH/ && !/NAME|DESCRIPTION|SEE ALSO/ { heads[name]-- }
    page { next }
    /^\|[-|]+\|$/ { on = 1; next }
    !/^\|/ { on = 0 }
    on { rows[name]++ }
    /^## / { heads[name]++ }
    END { for (name in all) if (rows[name] || heads[name]) print name ": " rows[name] " rows, " heads[name] " headings more than in the page" }' >"$T/unlike"
[ ! -s "$T/unlike" ] && [ -f "$B/man5/linkwise-plan.5" ] && grep -q '^\\fBestimates\[\]' "$B/man5/linkwise-links.5"
result $? "pages of file formats have every heading and row of docs/" "$T/unlike"

lints() { # COMMAND...: what it says on standard error, and mandoc on the other
    if ! command -v "$1" >/dev/null; then
        skip "$1" "it is not installed"
        return
    fi
    "$@" "$B"/man?/* >"$T/found" 2>&1
    [ ! -s "$T/found" ]
    result $? "$* has nothing to say" "$T/found"
}
lints mandoc -Tlint -Wwarning
lints groff -tk -mandoc -Tutf8 -ww -z # as man does, all pages in one

# What bash offers after words, in $offer; the last is what is being completed.
. "$B/bash/linkwise"
. "$B/bash/bwprobe"
compopt() { :; }
offered() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "_$1"
    offer="${COMPREPLY[*]}"
}
grep -oE '^ +(-.,)? +--[a-z-]+=[a-z0-9-]+(\|[a-z0-9-]+)+( |$)' "$T"/help/* | sed 's/.*\///; s/: .*--/=/' >"$T/tried"
while IFS='=' read -r command option words; do
    words=${words%% *}
    # shellcheck disable=SC2086
    offered $command "--$option" ''
    [ "$offer" = "${words//|/ }" ] || echo "$command --$option: $offer"
done <"$T/tried" >"$T/unlike"
[ ! -s "$T/unlike" ] && [ "$(wc -l <"$T/tried")" -gt 40 ]
result $? "bash offers the words of every option" "$T/unlike"
# What stands behind a command: its options, files where it takes any, and listed values.
awk '
    FNR == 1 { name = FILENAME; sub(".*/", "", name); if (name != "bwprobe" && name != "linkwise cluster") all[name] }
    match($0, /^ +(-., *)? *--[a-z-]+/) { s = substr($0, 1, RLENGTH); sub(/.*--/, "--", s); options[name] = options[name] " " s }
    match($0, /^ +(-.,)? +--(to|format)=NAME/) { s = substr($0, 1, RLENGTH); sub(/.*--/, "--", s); sub(/=.*/, "", s); listed[name] = listed[name] " " s }
    END { for (name in all) print name "=" listed[name] "=" substr(options[name], 2) }' "$T"/help/* >"$T/all"
while IFS='=' read -r c listed options; do
    # shellcheck disable=SC2086
    offered $c --
    [ "$offer" = "$options" ] || echo "$c: options: $offer"
    # shellcheck disable=SC2086
    offered $c README.m
    case $c in *synth | *gpus | *models | *topo) ;;
    *) [ "$offer" = README.md ] || echo "$c: a file: $offer" ;; esac
    for option in $listed; do
        # shellcheck disable=SC2086
        offered $c "$option" ''
        [ -n "$offer" ] || echo "$c $option: nothing"
    done
done <"$T/all" >"$T/unlike"
[ ! -s "$T/unlike" ] && [ "$(wc -l <"$T/all")" -gt 20 ]
result $? "bash offers the options of every command, files and listed values" "$T/unlike"
offers() { # WANTED WORD...
    offered "${@:2}"
    [ "$offer" = "$1" ]
    result $? "bash, ${*:2}: $1" <(echo "$offer")
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
