"""py and json of tap.sh: runs script after script, since Python takes long to start.  Reads how many words follow, then
these, each with a NUL behind it: a script and its arguments; or json, a file, and an expression of its document, d;
or valid, a schema and a file.  Writes the exit status and a line feed, what was printed, and a NUL."""
import io
import os
import sys


def words():
    text = b""
    while True:
        parts = text.split(b"\0")
        if len(parts) > 1 and len(parts) > int(parts[0]) + 1:
            n = int(parts[0]) + 1
            yield [w.decode() for w in parts[1:n]]
            text = b"\0".join(parts[n:])
            continue
        more = os.read(ASKED, 65536)
        if not more:
            return
        text += more


def run(script, *arguments):
    if script == "json":
        import json
        print(eval(arguments[1], {"json": json, "d": json.load(open(arguments[0]))}))
        return
    if script == "valid":
        import valid
        print(valid.fault(*arguments), end="")
        return
    sys.argv = [script, *arguments]
    names = {"__name__": "__main__"}
    try:
        exec(compile(open(script).read(), script, "exec"), names)
    finally:
        names.clear()  # closes its files


def status(request):
    try:
        run(*request)
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code)
        return e.code if isinstance(e.code, int) else int(bool(e.code))
    except BaseException:
        import traceback  # not before it is needed: it takes long to read
        print(traceback.format_exc())
        return 1
    return 0


# Pipes are the protocol's alone: children of scripts have neither.
ASKED, SAID = os.dup(0), os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)

for request in words():
    said = io.StringIO()
    sys.stdout = sys.stderr = said
    code = status(request)
    os.write(SAID, b"%d\n%s\0" % (code, said.getvalue().encode(errors="replace").replace(b"\0", b"")))
