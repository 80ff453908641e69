/* JSON faults are told with file, place, expected and found. */
#include "tests/lib/folder.h"

#include "base/json.h"

TEST (parse_faults)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "empty file"},
               {"{", "line 1"},
               {"{\"a\":1,\"a\":2}", "duplicate"},
               {"[NaN]", "line 1"},
               {"[1e999]", "overflow"},
               {"[1] x", "line 1"},
               {"{\"a\": 99999999999999999999}", "too big"}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *root = NULL;
        struct error err = {""};

        assert_int_equal (
            json_parse ("f.json", bad[i].text, strlen (bad[i].text), &root, &err),
            ST_INVALID);
        assert_null (root);
        assert_non_null (strstr (err.text, "f.json: "));
        if (!strstr (err.text, bad[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, bad[i].says);
    }
}

struct told {
    double share[16];
    int n;
};

static void tell (void *context, const char *file, double share)
{
    struct told *t = context;

    assert_string_equal (file, in_folder ("large.json"));
    assert_true (t->n < 16);
    t->share[t->n++] = share;
}

/* A large file is the same document, its faults have their lines, and who wants is told how far
 * reading is: from 0, ever more, to 1. */
TEST (large)
{
    const char *path = in_folder ("large.json");
    enum { ENTRIES = 350000 }; /* just more than what is told at once */
    const char long_name[] = "\"0123456789012345678901234567890123456789012345678901\",";
    struct error err = {""};

    for (int faulty = 0; faulty < 2; faulty++) {
        struct told told = {.n = 0};
        struct notes notes = {.reading = tell, .context = &told};
        FILE *f = fopen (path, "w");
        json_t *root = NULL;

        assert_non_null (f);
        fputs ("[\n", f);
        for (int i = 0; i < ENTRIES; i++)
            fputs (i % 10 ? long_name : "7,\n", f);
        fputs (faulty ? "nil]" : "8]", f);
        assert_int_equal (fclose (f), 0);
        assert_int_equal (json_read_told (path, &notes, &root, &err),
                          faulty ? ST_INVALID : ST_OK);
        assert_true (told.n > 2 && told.share[0] == 0 && told.share[told.n - 1] == 1);
        for (int k = 1; k < told.n; k++)
            assert_true (told.share[k] > told.share[k - 1]);
        if (faulty) {
            assert_non_null (strstr (err.text, "line 35002"));
        } else {
            assert_int_equal (json_array_size (root), ENTRIES + 1);
            assert_int_equal (json_integer_value (json_array_get (root, ENTRIES)), 8);
        }
        json_decref (root);
    }
}

TEST (place_expected_found)
{
    json_t *doc = json_loads ("{\"a\":{\"b\":[1,-2.5,\"x\\u001b\",null,[3]]}}", 0, NULL);
    struct json_at root = json_root (doc, "f.json"), a = json_key (&root, "a"),
                   b = json_key (&a, "b"), e;
    struct error err = {""};
    double x = 7;
    long long n = 7;

    e = json_entry (&b, 1);
    assert_int_equal (json_want_number (&e, 0, false, INFINITY, &x, &err), ST_INVALID);
    assert_string_equal (err.text, "f.json: a.b[1]: expected a number > 0, found -2.5");
    e = json_entry (&b, 2);
    assert_int_equal (json_want_int (&e, 1, 5, &n, &err), ST_INVALID);
    assert_string_equal (err.text, "f.json: a.b[2]: expected a whole number from 1 to 5, "
                                   "found \"x?\"");
    e = json_entry (&b, 4);
    assert_int_equal (json_want_bool (&e, NULL, &err), ST_INVALID);
    assert_string_equal (err.text,
                         "f.json: a.b[4]: expected true or false, found an array of 1");
    e = json_key (&a, "missing");
    assert_int_equal (json_want_object (&e, &err), ST_INVALID);
    assert_string_equal (err.text,
                         "f.json: a.missing: expected an object, found nothing");
    /* Outputs are untouched. */
    assert_true (x == 7 && n == 7);
    json_decref (doc);
}

TEST (whole_numbers)
{
    json_t *doc = json_loads ("[12, 12.0, 12.5, 1e30]", 0, NULL);
    struct json_at root = json_root (doc, "f");

    for (size_t i = 0; i < 4; i++) {
        struct json_at e = json_entry (&root, i);
        long long n = 0;
        enum status st = json_want_int (&e, 1, 100, &n, NULL);

        assert_int_equal (st, i < 2 ? ST_OK : ST_INVALID);
        if (i < 2)
            assert_int_equal (n, 12);
    }
    json_decref (doc);
}

TEST (unknown_keys_are_noted)
{
    json_t *doc = json_loads ("{\"a\":1,\"b\":2}", 0, NULL);
    struct json_at root = json_root (doc, "f");
    struct notes notes = {0};

    json_note_unknown (&root, "a c", &notes);
    assert_int_equal (notes.n, 1);
    assert_string_equal (notes.line[0], "f: b: unknown key, ignored");
    notes_free (&notes);
    json_decref (doc);
}

/* Python's words for what JSON has no numbers for are read in a config.json, and change no place.
 */
TEST (configs)
{
    json_t *doc = NULL, *same;
    struct error err = {""};

    ok (json_parse_config ("c",
                           "{\"time_step_limit\": [0.0, Infinity], \"a\": -Infinity,\n"
                           "\"NaN\": \"x\\\" NaN, Infinity\", \"b\": NaN}",
                           &doc, &err),
        &err);
    same = json_pack ("{s:[f, n], s:n, s:s, s:s}", "time_step_limit", 0.0, "a", "NaN",
                      "x\" NaN, Infinity", "b", "?");
    assert_true (json_equal (doc, same));
    json_decref (same);
    json_decref (doc);
    doc = NULL;
    for (int i = 0; i < 3; i++) {
        const char *const text[] = {"[NaN, -Infinity,\n Infinity, x]", "[1,\nInfinity2]",
                                    "[\"\\"},
                          *const says[] = {"c: line 2, column 12: ", "near 'Infinity'",
                                           "c: line 1"};

        assert_int_equal (json_parse_config ("c", text[i], &doc, &err), ST_INVALID);
        assert_null (doc);
        if (!strstr (err.text, says[i]))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, says[i]);
    }
}
