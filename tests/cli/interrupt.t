#!/bin/bash
# A long search on a terminal: a progress line after a second; Ctrl-C ends it with the best plan
# so far, marked as not proven, whose bound holds.  The line is no wider than the terminal.  With
# -q, or on a terminal that cannot clear lines, there is none.
. tests/lib/tap.sh
needs python3 python3
L="spawn $LINKWISE"
$L cluster synth mixed --nodes 256 --gpus 8 --seed 3 -o "$T/c.json" >/dev/null || exit 1
cat >"$T/onterm.py" <<'P'
import fcntl, os, pty, re, select, struct, sys, termios, time
WIDTH = 56
start, out, sent = time.time(), b"", None
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    os.environ["TERM"] = sys.argv[1]
    os.execvp(sys.argv[2], sys.argv[2:])
while time.time() - start < 60:
    if select.select([fd], [], [], .1)[0]:
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
    if sent is None and b"searching: " in out:
        sent = time.time() - start
        os.write(fd, b"\x03")
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
text = out.decode(errors="replace")
print("progress", "never" if sent is None else "early" if sent < 1 else "after a second")
print("exit", code)
shown = text[:text.rfind("\x1b[K")].replace("^C", "")  # which the terminal echoes
lines = re.findall(r"\r\x1b\[K([^\r\n]+)", shown)
print("widest", "fits" if max(map(len, lines), default=0) < WIDTH else lines)
print(text)
P
timeout 90 python3 "$T/onterm.py" xterm $LINKWISE plan "$T/c.json" llama-3-405b --seq 8192 --global-batch 1024 --threads 1 -o "$T/plan.json" >"$T/out" 2>&1
if grep -q "^progress never" "$T/out" && grep -q "^exit 0" "$T/out"; then
    skip_all "the search ends within a second here"
fi
grep -q "^progress after a second" "$T/out" && grep -Eq "searching: [0-9]+ of [0-9]+ settled, (no plan yet|best )" "$T/out"
result $? "a progress line after a second" "$T/out"
grep -q "^widest fits" "$T/out"
result $? "... that is no wider than the terminal" "$T/out"
grep -q "^exit 0" "$T/out" && grep -q "not proven: the search stopped early" "$T/out"
result $? "Ctrl-C ends with a plan" "$T/out"
python3 -c "
import json
d = json.load(open('$T/plan.json'))
assert d['search']['proven'] is False
assert 0 < d['estimate']['lower_bound_s'] <= d['estimate']['step_s']" >"$T/why" 2>&1
result $? "... not proven, with a bound" "$T/why"
expect 0 "... that checks" "step time +ok" $L check "$T/plan.json"
timeout 90 python3 "$T/onterm.py" xterm $LINKWISE plan "$T/c.json" llama-3-405b --seq 8192 --global-batch 1024 --threads 1 --time-limit 1.1 -q >"$T/out" 2>&1
grep -q "^progress never" "$T/out" && grep -q "^exit 0" "$T/out" && ! grep -q " settled\|warning" "$T/out"
result $? "--quiet: no progress line" "$T/out"
if [ -n "$LINKWISE_LONG" ]; then
    timeout 90 python3 "$T/onterm.py" dumb $LINKWISE plan "$T/c.json" llama-3-405b --seq 8192 --global-batch 1024 --threads 1 --time-limit 1.1 >"$T/out" 2>&1
    grep -q "^progress never" "$T/out" && grep -q "^exit 0" "$T/out" && ! grep -q " settled"$'\\|\e' "$T/out"
    result $? "a terminal that cannot clear a line: none, and no escapes" "$T/out"
fi
done_testing
