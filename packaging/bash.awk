# Completion for bash; after values.awk.
function offer (pattern) {
    printf "    %s) words='%s' files=%s list=%s ;;\n", pattern, substr (all, 2), files, \
        several ? 1 : ""
}

function options_of (page,   i, s) {
    for (i = 1; i <= options[page]; i++)
        s = s " --" name[page, i] (letter[page, i] == "" ? "" : " -" letter[page, i])
    return substr (s, 2)
}

END {
    print "# bash completion for " program ", made from its table of options"
    print "_" program " ()\n{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
    print "    local at= i words= files= list= head="
    print "    # --option=value comes as three words."
    print "    if [ \"$cur\" = = ]; then cur="
    print "    elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi"
    print "    for ((i = 1; i < COMP_CWORD; i++)); do"
    print "        case $at in"
    for (p = 1; p <= pages; p++)
        if (own[p] && menu[p] != "")
            print "        '" at[p] "') at=\"${at:+$at }${COMP_WORDS[i]}\" ;;"
    print "        *) break ;;\n        esac\n    done"
    print "    case \"$at $prev\" in"
    for (p = 1; p <= pages; p++)
        for (i = 1; own[p] && i <= options[p]; i++)
            if (value[p, i] != "") {
                know(p, value[p, i], name[p, i])
                if (letter[p, i] != "")
                    offer("'" at[p] " -" letter[p, i] "' | '" at[p] " --" name[p, i] "'")
                else
                    offer("'" at[p] " --" name[p, i] "'")
            }
    print "    *) case \"$at $cur\" in"
    for (p = 1; p <= pages; p++)
        if (own[p] && menu[p] == "") {
            know_arguments(p)
            several = 0
            print "    '" at[p] " -'*) words='" options_of(p) "' ;;"
            offer("'" at[p] " '*")
        }
    # Behind the others: what begins with a menu's name may be a command of it.
    for (p = 1; p <= pages; p++)
        if (own[p] && menu[p] != "") {
            all = menu[p] " --help" (at[p] == "" ? " --version" : "")
            files = ""
            offer("'" at[p] " '*")
        }
    print "    esac ;;\n    esac"
    print "    [ -z \"$list\" ] || case $cur in *,*) head=${cur%,*}, cur=${cur##*,} ;; esac"
    # compgen -W would take a process each time a key is pressed.
    print "    read -ra words <<<\"$words\""
    print "    COMPREPLY=()"
    print "    for i in \"${words[@]}\"; do [[ $i != \"$cur\"* ]] || COMPREPLY+=(\"$head$i\"); done"
    print "    case $files in file) i=-f ;; dir) i=-d ;; *) return ;; esac"
    print "    compopt -o filenames"
    print "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen $i -- \"$cur\")\n}"
    print "complete -F _" program " " program
}
