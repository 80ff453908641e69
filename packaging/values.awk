# Completion, for all shells: what may stand where, by what help.awk read and the kinds of
# pages.sh.  The shell's own script calls these at the end, when all is read.
BEGIN { FS = "\t" }

$1 == "kind" { kind[$2] = kind[$2] " " $3 }
# Commands by what stands before them: "" for plan, "cluster" for cluster show.
$1 == "page" {
    here = ++pages
    split ($2, word, " ")
    own[here] = word[1] == program
    at[here] = substr ($2, length ($2) > length (program) ? length (program) + 2 : 99)
    listed = ""
}
$1 == "text" { listed = $2 }
$1 == "use" { usage[here] = usage[here] " " $2 }
$1 == "item" {
    if (listed == "Commands:") {
        menu[here] = menu[here] " " $2
        does[here, $2] = $3
    } else
        named[here] = named[here] " " $2
}
$1 == "opt" {
    n = ++options[here]
    letter[here, n] = $2
    name[here, n] = $3
    value[here, n] = $4
    help[here, n] = $5
}

# What a value on the page may be, as its argument says it: sets `all` (words, each with a
# blank before it), `files` ("file", "dir" or "") and `several` (a list with commas).
function know (page, argument, option,   n, part, i, j) {
    all = files = ""
    several = argument ~ /,\.\.\./
    n = split (argument, part, "|")
    for (i = 1; i <= n; i++) {
        sub (/,?\.\.\.$/, "", part[i])
        if (part[i] == "NAME" && option == "profile")
            all = all kind["profile"]
        else if (part[i] == "NAME" || part[i] == "PRESET")
            all = all named[page]
        else if (part[i] in kind)
            all = all kind[part[i]]
        else if (part[i] ~ /^[0-9]\.\.[0-9]$/)
            for (j = substr (part[i], 1, 1); j <= substr (part[i], 4); j++)
                all = all " " j
        else if (part[i] !~ /[A-Z]/)
            all = all " " part[i]
        if (part[i] == "DIR")
            files = "dir"
        else if (part[i] ~ /^(FILE|PLAN|LINKS|CLUSTER|MODEL|PROFILE|TABLE|TIMES|RUNS)(\.csv)?$/)
            files = "file"
    }
}

# The same of the arguments that are no options.
function know_arguments (page,   s) {
    s = usage[page]
    gsub (/\[OPTION\.\.\.\]|--[a-z]+ [A-Z]+|[][]|\.\.\./, "", s)
    sub (/^ +/, "", s)
    sub (/ +$/, "", s)
    gsub (/ +/, "|", s)
    know(page, s, "")
}
