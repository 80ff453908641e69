"""TAP for tests in Python: every function test_* of a file, by its docstring."""
import traceback


def run(names):
    failed = 0
    tests = [f for name, f in names.items() if name.startswith("test_")]
    print(f"1..{len(tests)}")
    for n, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {n} - {test.__doc__}", flush=True)
        except Exception:
            failed = 1
            print(f"not ok {n} - {test.__doc__}")
            print("".join(f"#   {line}\n" for line in traceback.format_exc().splitlines()), flush=True)
    raise SystemExit(failed)


def refused(kind, words, function, *arguments, **named):
    """A call raises this exception, whose text has these words."""
    try:
        function(*arguments, **named)
    except kind as why:
        assert type(why) is kind, type(why)
        assert words in str(why), str(why)
        return why
    raise AssertionError(f"expected {kind.__name__} with {words!r}")
