# A man page of section 5 from a page of docs/; of its parts only the one called `part`, if
# that is given.  Lines of a table are entries: the first column is the entry's name.

function flush() {
    if (text != "") {
        if (bullet)
            print ".IP \\(bu 2"
        else if (!fresh)
            print ".PP"
        print words(text)
        fresh = 0
    }
    text = ""
    bullet = 0
}

function code_line(s) {
    if (!code)
        print (fresh ? "" : ".PP\n") ".nf"
    code = 1
    print guard(plain(s))
}

function end_code() {
    if (code)
        print ".fi"
    code = fresh = 0
}

function heading(title) {
    flush()
    print ".SH " plain(toupper(title))
    fresh = 1
}

# "| a | b | c |": b and what follows in one line below a
function row(s,   n, cell, i, more) {
    flush()
    gsub (/^\| *| *\|$/, "", s)
    n = split (s, cell, / *\| */)
    for (i = 2; i <= n; i++)
        more = more (more == "" || cell[i] == "" ? "" : "; ") cell[i]
    print ".TP"
    print words(cell[1])
    print more == "" ? "\\&" : words(more)
    fresh = 0
}

/^# / {
    title = substr ($0, 3)
    head("linkwise-" name, 5, "File formats")
    print ".SH NAME"
    print plain("linkwise-" name) " \\- " plain(tolower(part == "" ? title : part))
    if (part == "")
        heading("description")
    on = part == ""
    next
}
part != "" && /^## / { on = substr ($0, 4) == part; if (on) heading("description"); next }
!on { next }
/^```/ { flush(); fence = !fence; if (!fence) end_code(); next }
fence { code_line($0); next }
/^    / && text == "" { code_line(substr ($0, 5)); next }
code { end_code() }
/^<!--/ { next }
/^## / { heading(substr ($0, 4)); next }
/^### / { flush(); print ".SS " plain(substr ($0, 5)); fresh = 1; next }
/^\|[ -|]*\|$/ && !/[a-z]/ { next }
/^\|/ { if (!table) flush(); else row($0); table = 1; next }
{ table = 0 }
/^ *$/ { flush(); next }
/^- / { flush(); bullet = 1; text = substr ($0, 3); next }
{ sub (/^ +/, ""); text = text (text == "" ? "" : " ") $0 }
END {
    flush()
    end_code()
    print ".SH SEE ALSO"
    print also
}
