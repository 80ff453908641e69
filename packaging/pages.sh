#!/bin/sh
# pages.sh OUT LINKWISE BWPROBE: man pages and completions into OUT, from what the programs' --help
# shows of their option tables, and from the pages of docs/ about file formats.
set -eu
out=$1 linkwise=$2 bwprobe=$3
here=$(dirname "$0")
version=$(sed -n 's/.*LINKWISE_VERSION "\(.*\)".*/\1/p' base/version.h)
# The same date from the same tree; packages say theirs.
date=$(date -u +%F -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y base/version.h)}")
formats='cluster model plan profile runs outputs'
rm -rf "$out"
mkdir -p "$out/man1" "$out/man5" "$out/bash" "$out/zsh" "$out/fish"

# add NAME SUMMARY: the records of a program or a command, from its help in lines so long that none
# is broken.
add() {
    case $1 in bwprobe) program=$bwprobe ;; *) program=$linkwise ;; esac
    arguments=${1#bwprobe}
    # A command is one word or two.
    # shellcheck disable=SC2086
    ARGP_HELP_FMT=rmargin=5000,opt-doc-col=200 \
        "$program" ${arguments#linkwise} --help >"$out/help"
    awk -f "$here/help.awk" -v name="$1" -v summary="$2" "$out/help" >>"$out/table"
}
# The commands that a page lists, and what they do.
commands() {
    awk -F '\t' -v OFS='\t' -v name="$1" '$1 == "page" { here = $2 == name }
        $1 == "text" { on = here && $2 == "Commands:" }
        on && $1 == "item" { print $2, $3 }' "$out/table"
}
tab=$(printf '\t')
add bwprobe "measure every link between the GPUs of a cluster"
add linkwise "plan distributed training on the links that a cluster has"
commands linkwise | while IFS=$tab read -r command what; do
    add "linkwise $command" "$what"
    commands "linkwise $command" | while IFS=$tab read -r part what; do
        add "linkwise $command $part" "$what"
    done
done
# What arguments can be, beside files.
{
    "$linkwise" gpus | awk 'NR > 1 { print "kind\tTYPE\t" $1 }'
    "$linkwise" models | awk 'NR > 1 { print "kind\tMODEL\t" $1 }'
    for f in workload/profiles/*.json; do
        printf 'kind\tprofile\t%s\n' "$(basename "$f" .json)"
    done
} >"$out/kinds"

roff() { # SCRIPT PAGE SECTION VARIABLE=VALUE...
    script=$1 page=$2 section=$3
    shift 3
    awk -f "$here/roff.awk" -f "$here/$script" -v version="$version" -v date="$date" \
        -v formats="$formats" "$@" >"$out/man$section/$page.$section"
}
also() { # PAGE...: the others, as SEE ALSO has them
    for page; do echo ".BR $page ,"; done | sed 's/-/\\-/g; s/(/ (/; $s/ ,$//'
}
others=$(also 'linkwise(1)' 'bwprobe(1)' 'linkwise-cluster(5)' 'linkwise-plan(5)')
cut -f 1,2 "$out/table" | sed -n 's/^page\t//p' | while read -r name; do
    page=$(echo "$name" | tr ' ' -)
    awk -F '\t' -v name="$name" '$1 == "page" { on = $2 == name } on' "$out/table" |
        roff man.awk "$page" 1 -v also="$others"
done
for name in $formats links; do
    file=docs/$name.md part=
    [ "$name" != links ] || file=docs/probe.md part='The links file'
    roff format.awk "linkwise-$name" 5 -v name="$name" -v part="$part" -v also="$others" <"$file"
done

for program in linkwise bwprobe; do
    for to in "bash/$program" "zsh/_$program" "fish/$program.fish"; do
        awk -f "$here/values.awk" -f "$here/${to%%/*}.awk" -v program="$program" \
            "$out/kinds" "$out/table" >"$out/$to"
    done
done
rm "$out/help" "$out/kinds"
