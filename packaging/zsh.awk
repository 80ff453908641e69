# Completion for zsh; after values.awk.
function quoted (s) {
    gsub (/'/, "'\\''", s)
    return s
}

function action () {
    if (several)
        return ":_values -s , " "value" all
    if (files == "")
        return all == "" ? ": " : ":(" substr (all, 2) ")"
    return ":{" (all == "" ? "" : "compadd --" all "; ") \
        (files == "dir" ? "_files -/" : "_files") "}"
}

function commands (page,   n, word, i) {
    print "        local -a commands=("
    n = split (substr (menu[page], 2), word, " ")
    for (i = 1; i <= n; i++)
        print "            '" word[i] ":" quoted(does[page, word[i]]) "'"
    print "        )"
    print "        _describe command commands ;;"
}

function spec (page, i,   what, long) {
    what = help[page, i]
    gsub (/\[/, "\\[", what)
    gsub (/]/, "\\]", what)
    what = quoted("[" what "]")
    long = "--" name[page, i] (value[page, i] == "" ? "" : "=")
    if (value[page, i] != "") {
        know(page, value[page, i], name[page, i])
        what = what ":" name[page, i] action()
    }
    print " \\"
    if (letter[page, i] == "")
        printf "            '%s%s'", long, what
    else
        printf "            '(-%s --%s)'{-%s,%s}'%s'", letter[page, i], name[page, i], \
            letter[page, i], long, what
}

END {
    print "#compdef " program
    print "# zsh completion for " program ", made from its table of options"
    print "_" program " () {"
    print "    local at= i=2"
    print "    while (( i < CURRENT )); do"
    print "        case $at in"
    for (p = 1; p <= pages; p++)
        if (own[p] && menu[p] != "")
            print "        '" at[p] "') at=\"${at:+$at }$words[i]\" ;;"
    print "        *) break ;;\n        esac\n        (( i++ ))\n    done"
    print "    words=(" program " \"${(@)words[i,-1]}\")"
    print "    (( CURRENT -= i - 2 ))"
    print "    case $at in"
    for (p = 1; p <= pages; p++) {
        if (!own[p])
            continue
        print "    '" at[p] "')"
        if (menu[p] != "") {
            commands(p)
            continue
        }
        printf "        _arguments -s"
        for (i = 1; i <= options[p]; i++)
            spec(p, i)
        know_arguments(p)
        several = 0
        print " \\\n            '*:argument" action() "' ;;"
    }
    print "    esac\n}"
    print "_" program " \"$@\""
}
