# Completion for fish; after values.awk.
function quoted (s) {
    gsub (/\\/, "\\\\", s)
    gsub (/'/, "\\'", s)
    return "'" s "'"
}

# Files, or else words alone; a list's words come one by one.
function offer () {
    if (several)
        return " -x -a " quoted("(__fish_complete_list , 'printf %s\\\\n" all "')")
    if (files == "dir")
        return " -x -a '(__fish_complete_directories)'"
    return (files == "file" ? " -r -F" : " -x") (all == "" ? "" : " -a " quoted(substr (all, 2)))
}

END {
    print "# fish completion for " program ", made from its table of options"
    print "function __" program "_at"
    print "    set -l words (commandline -opc)"
    print "    set -e words[1]"
    print "    string match -qr -- \"^$argv\\$\" \"$words\""
    print "end"
    print "complete -c " program " -f"
    for (p = 1; p <= pages; p++) {
        if (!own[p])
            continue
        where = "complete -c " program " -n '__" program "_at \"" at[p] \
            (menu[p] != "" ? "" : at[p] == "" ? ".*" : "( .*)?") "\"'"
        if (menu[p] != "") {
            n = split (substr (menu[p], 2), word, " ")
            for (i = 1; i <= n; i++)
                print where " -a " word[i] " -d " quoted(does[p, word[i]])
            continue
        }
        for (i = 1; i <= options[p]; i++) {
            know(p, value[p, i], name[p, i])
            print where (letter[p, i] == "" ? "" : " -s " quoted(letter[p, i])) " -l " name[p, i] \
                (value[p, i] == "" ? "" : offer()) " -d " quoted(help[p, i])
        }
        know_arguments(p)
        several = 0
        if (files != "" || all != "")
            print where (files == "" ? "" : " -F") (all == "" ? "" : " -a " quoted(substr (all, 2)))
    }
}
