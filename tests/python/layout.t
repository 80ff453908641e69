#!/bin/bash
# The structs that Python mirrors are those of linkwise.h: sizes, places and kinds of all members.
. tests/lib/tap.sh
. tests/python/python.sh
ready_python ctypes python3
$PY - >"$T/layout.c" 2>"$T/python" <<'P'
import ctypes
import linkwise as lw
from linkwise import cluster, library

structs = {"job": lw.Job, "config": lw.Config, "settings": lw.Settings, "memory": lw.Memory,
           "estimate": lw.Estimate, "node": cluster.Node}
kinds = {ctypes.c_int: "int", ctypes.c_double: "double", ctypes.c_bool: "bool",
         ctypes.c_char_p: "text", ctypes.c_size_t: "long"}
print("""#include <stdio.h>
#include "linkwise.h"
#define MEMBER(S, M) printf ("%s %zu %s\\n", #S "." #M, offsetof (struct S, M), \\
    _Generic (((struct S *) 0)->M, int: "int", double: "double", bool: "bool", \\
              const char *: "text", size_t: "long", default: "other"))
#define SIZE(S) printf ("%s %zu\\n", #S, sizeof (struct S))
int main (void)
{
    SIZE (linkwise_error);""")
said = [f"linkwise_error {ctypes.sizeof(library.CError)}"]
for name, kind in structs.items():
    struct = library.structure(kind)
    print(f"    SIZE (linkwise_{name});")
    said.append(f"linkwise_{name} {ctypes.sizeof(struct)}")
    for member, c in struct._fields_:
        print(f"    MEMBER (linkwise_{name}, {member});")
        said.append(f"linkwise_{name}.{member} {getattr(struct, member).offset} {kinds.get(c, 'other')}")
print("    return 0;\n}")
open(__import__("os").environ["T"] + "/said", "w").write("\n".join(said) + "\n")
P
$CC -std=c11 -I. "$T/layout.c" -o "$T/layout" >>"$T/python" 2>&1 && "$T/layout" >"$T/found" && [ "$(grep -c . "$T/found")" -gt 80 ]
result $? "every member that Python has is in the header" "$T/python"
diff "$T/said" "$T/found" >"$T/diff"
result $? "at the same place, of the same kind; the sizes are the same" "$T/diff"
$PY -c '
from linkwise import errors
words = "INVALID IO NOMEM USAGE NOFIT".split()
kinds = errors.InvalidInput, errors.FileError, errors.OutOfMemory, errors.UsageError, errors.NothingFits
for word, kind in zip(words, kinds): print(f"_Static_assert (LINKWISE_{word} == {kind.status}, \"\");")' >"$T/status"
{ echo '#include "linkwise.h"'; cat "$T/status"; } >"$T/status.c"
[ "$(grep -c . "$T/status")" = 5 ] && $CC -std=c11 -I. -fsyntax-only "$T/status.c" >"$T/out" 2>&1
result $? "statuses have the header's numbers" "$T/out"
done_testing
