# A man page of section 1 from a page's records of help.awk.
BEGIN { FS = "\t" }

function section(title) {
    if (title == now)
        return
    print ".SH " toupper (plain(title))
    now = title
    fresh = 1
}

# Between paragraphs, but not below a heading.
function gap() {
    if (!fresh)
        print ".PP"
    fresh = 0
}

function end_code() {
    if (code)
        print ".fi"
    code = 0
}

$1 != "code" { end_code() }
$1 == "page" {
    file = $2
    gsub (/ /, "-", file)
    head(file, 1, "User commands")
    section("name")
    print plain(file) " \\- " words($3)
    program = $2
}
$1 == "use" {
    section("synopsis")
    if (!fresh)
        print ".br"
    fresh = 0
    print "\\fB" plain(program) "\\fR " plain($2)
}
$1 == "text" && $2 == "Example:" { section("example"); next }
$1 == "text" && $2 ~ /:$/ { section(substr($2, 1, length($2) - 1)); next }
$1 == "text" {
    if (now == "synopsis")
        section("description")
    else if (now == "options" || now == "example")
        section("notes")
    gap()
    print words($2)
}
$1 == "code" {
    if (!code) {
        gap()
        print ".nf"
    }
    code = 1
    print guard(plain($2))
}
$1 == "group" { group = $2; grouped = 1; next }
$1 == "opt" {
    section("options")
    if (grouped)
        print ".SS " plain(group != "" ? group : $3 == "help" ? "Help" : "Other options")
    grouped = 0
    print ".TP"
    printf "%s\\fB\\-\\-%s\\fR%s\n", $2 == "" ? "" : "\\fB\\-" $2 "\\fR, ", plain($3), \
        $4 == "" ? "" : "=\\fI" plain($4) "\\fR"
    print words($5)
}
$1 == "item" && $3 == "" { print plain($2); next }
$1 == "item" { print ".TP"; print "\\fB" plain($2) "\\fR"; print words($3); fresh = 0 }
END {
    end_code()
    print ".SH SEE ALSO"
    print also
}
