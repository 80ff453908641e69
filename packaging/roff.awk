# Words for man pages: what both kinds of page share.

# The text without what roff would take for its own.
function plain(s) {
    gsub (/\\/, "\\e", s)
    gsub (/-/, "\\-", s)
    return s
}

# A line of text: `code` and **strong** are bold; links are their words.
function words(s,   out, n, part, i) {
    n = split (s, part, "`")
    for (i = 1; i <= n; i++)
        out = out (i % 2 ? strong(links(part[i])) : "\\fB" plain(part[i]) "\\fR")
    return guard(out)
}

function strong(s,   out, n, part, i) {
    n = split (s, part, /\*\*/)
    for (i = 1; i <= n; i++)
        out = out (i % 2 || n == 1 ? plain(part[i]) : "\\fB" plain(part[i]) "\\fR")
    return out
}

# A link to a page that is a man page too is named as such.
function links(s,   name, target) {
    while (match (s, /\[[^]]*\]\([^)]*\)/)) {
        name = substr (s, RSTART + 1, RLENGTH - 2)
        target = name
        sub (/\].*/, "", name)
        sub (/.*\(/, "", target)
        if (name ~ /\.md$/ && index (" " formats " ", " " substr (name, 1, length (name) - 3) " "))
            name = "linkwise-" substr (name, 1, length (name) - 3) "(5)"
        s = substr (s, 1, RSTART - 1) name substr (s, RSTART + RLENGTH)
    }
    return s
}

# A line that begins with a dot or a quote is no request.
function guard(s) { return s ~ /^[.']/ ? "\\&" s : s }

function head(page, section, manual) {
    printf ".TH %s %s %s \"linkwise %s\" \"%s\"\n", \
        toupper (plain(page)), section, date, version, manual
}
