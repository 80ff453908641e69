# What --help prints, on lines that are not broken, as a table: one record a line, fields between
# tabs.  Man pages and completions are made of it, so that the option tables are their one source.
#
#   page  NAME SUMMARY            begins a program's or a command's records
#   use   ARGUMENTS               one line of its usage
#   text  PARAGRAPH               "Title:" begins a list of items
#   code  LINE                    as it stands
#   group HEADING                 of the options below it; empty: those before ended
#   opt   LETTER NAME VALUE HELP  letter and value may be empty
#   item  NAME HELP
BEGIN { OFS = "\t"; print "page", name, summary }

function end_paragraph() {
    if (paragraph != "")
        print "text", paragraph
    paragraph = ""
}

# "  -o, --output=PLAN    help"
function option(line,   letter, help) {
    letter = substr (line, 3, 1) == "-" ? substr (line, 4, 1) : ""
    help = line
    sub (/^ *(-.,)? *--[^ ]+ */, "", help)
    sub (/^ *(-.,)? *--/, "", line)
    sub (/ .*/, "", line)
    split (line "=", part, "=")
    print "opt", letter, part[1], part[2], help
}

# "  name  help", of a list
function item(line,   word) {
    sub (/^ +/, "", line)
    word = line
    sub (/ .*/, "", word)
    sub (/^[^ ]+ +/, "", line)
    print "item", word, line
}

/^(Usage|  or): / {
    sub (/^(Usage|  or): +/, "")
    sub(/ +$/, "")
    print "use", substr ($0, length (name) + 2)
    next
}
/^Mandatory or optional arguments/ { next }
/^ *$/ { end_paragraph(); list = 0; if (grouped) print "group", ""; grouped = 0; next }
/^  +(-., )?--[a-z]/ { end_paragraph(); option($0); next }
/^ [^ ].*:$/ {
    end_paragraph()
    print "group", substr ($0, 2, length ($0) - 2)
    grouped = 1
    next
}
/^  / {
    if (paragraph ~ /:$/)
        list = 1
    end_paragraph()
    if (list)
        item($0)
    else
        print "code", substr ($0, 3)
    next
}
/^Formats of [a-z]+: / {
    end_paragraph()
    print "text", $1 " " $2 " " $3
    for (i = 4; i <= NF; i++)
        print "item", $i, ""
    next
}
/^Example: / {
    end_paragraph()
    print "text", "Example:"
    print "code", substr ($0, 10)
    next
}
{ paragraph = paragraph (paragraph == "" ? "" : " ") $0 }
END { end_paragraph() }
