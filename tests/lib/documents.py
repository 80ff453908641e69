"""json of tap.sh: reads a file's name and an expression of its document, d, each with a NUL behind it; prints 0 and
what the expression is, or 1 where there is none, and a NUL."""
import json
import os
import sys
import traceback

said = b""
while True:
    while said.count(b"\0") < 2:
        more = os.read(0, 65536)
        if not more:
            sys.exit()
        said += more
    name, expression, said = said.split(b"\0", 2)
    try:
        d = json.load(open(name))
        out = "0%s\n" % (eval(expression.decode(), {"json": json, "d": d}),)
    except Exception:
        traceback.print_exc()
        out = "1"
    os.write(1, out.encode() + b"\0")
