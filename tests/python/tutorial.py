"""See tutorial.t."""
import contextlib
import io
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    blocks = re.findall(r"```python\n(.*?)```\n(?:```\n(.*?)```\n)?", page.read(), re.DOTALL)
print(f"1..{len(blocks) + 1}")
names, failed = {}, len(blocks) < 5
print("not ok 1" if failed else "ok 1", "- the page has code")
for n, (code, expected) in enumerate(blocks, 2):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    same = printed.getvalue() == expected
    failed = failed or not same
    print("ok" if same else "not ok", n, "-", code.splitlines()[0])
    if not same:
        print("".join(f"#   {line}\n" for line in printed.getvalue().splitlines()))
sys.exit(failed)
