/* Texts grow, shell words are never expanded, tables align. */
#include "tests/lib/fixture.h"

#include "base/text.h"

TEST (shell_words)
{
    static const char *const words[] = {"plain",     "two words", "it's",
                                        "$(reboot)", "`x`",       "a\nb",
                                        "",          "\\",        "'; rm -rf /; '"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct text t = {0};
        char got[64] = "";
        FILE *p;

        text_add (&t, "printf %%s ");
        text_add_sh (&t, words[i]);
        p = popen (text_str (&t), "r");
        assert_non_null (p);
        got[fread (got, 1, sizeof got - 1, p)] = '\0';
        pclose (p);
        assert_string_equal (got, words[i]);
        text_free (&t);
    }
}

/* Letters added, dropped, changed, swapped; what is nearest, and what is too far. */
TEST (near_words)
{
    static const struct {
        const char *a, *b;
        int distance;
    } rows[] = {{"", "", 0},         {"", "abc", 3},
                {"plan", "plna", 1}, {"seq", "sqe", 1},
                {"1F1B", "1f1b", 0}, {"kitten", "sitting", 3},
                {"abcd", "badc", 2}, {"selectiv", "selective", 1},
                {"ca", "abc", 3}};
    static const char *const words[] = {"tp", "pp", "seq", "micro-batch", "memory-limit"};
    char many[200], hint[TEXT_HINT];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal (text_distance (rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal (text_distance (rows[i].b, rows[i].a), rows[i].distance);
    }
    memset (many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_int_equal (text_distance (many, many), TEXT_FAR);
    for (int k = 0; k < 3; k++) {
        const char *asked[] = {"micro-batches", "frobnicate", many},
                   *expected[] = {"; did you mean --micro-batch?", "", ""};
        struct text_near near = {.asked = asked[k]};

        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            text_near_try (&near, words[i], strlen (words[i]));
        text_near_try (&near, many, strlen (many));
        assert_string_equal (text_near_hint (&near, "--", hint), expected[k]);
    }
    /* Of two that are as near, the one that was begun, in either order. */
    for (int k = 0; k < 2; k++) {
        struct text_near near = {.asked = "h10"};

        text_near_try (&near, k ? "h100" : "a10", k ? 4 : 3);
        text_near_try (&near, k ? "a10" : "h100", k ? 3 : 4);
        assert_string_equal (near.word, "h100");
    }
}

TEST (table)
{
    static const char *const header[] = {"<name", "GB/s", "<note", NULL};
    struct table *t = table_create (header);
    char *out;
    size_t len;
    FILE *f = open_memstream (&out, &len);

    table_cell (t, "a");
    table_cell (t, "%.1f", 1.0);
    table_cell (t, "x");
    table_cell (t, "long name");
    table_number (t, "%.1f", 100.25);
    table_cell (t, "longer");
    table_cell (t, "none");
    table_number (t, "%.1f", NAN);
    table_cell (t, "no number");
    table_print (t, f);
    fclose (f);
    assert_string_equal (out, "name        GB/s  note\n"
                              "a            1.0  x\n"
                              "long name  100.2  longer\n"
                              "none           -  no number\n");
    free (out);
    table_destroy (t);
}

TEST (notes_are_bounded)
{
    struct notes n = {0};

    for (int i = 0; i < NOTES_MAX + 5; i++)
        notes_add (&n, "note %d", i);
    assert_int_equal (n.n, NOTES_MAX);
    assert_int_equal (n.dropped, 5);
    notes_free (&n);
    notes_add (NULL, "lost");
}

/* ASCII's and ISO 8859's control characters go, and bytes that are no UTF-8; letters stay. */
TEST (control_characters)
{
    static const struct {
        const char *in, *out;
    } line[] = {{"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", NULL},
                {"a\x1b[31m\n\x7f", "a?[31m??"},
                {"a\xc2\x9b"
                 "31m",
                 "a??31m"},
                {"\x9b"
                 "31m\xff",
                 "?31m?"},
                {"cut \xe2\x82", "cut ??"},
                {"\xe2\x80\xaetxt.exe \xe2\x81\xa9\xe2\x80\xa8", "???txt.exe ??????"},
                {"\xe2\x80\x94 \xe2\x80\xaf", NULL}};

    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        char s[64];

        strcpy (s, line[i].in);
        text_clean_line (s);
        assert_string_equal (s, line[i].out ? line[i].out : line[i].in);
    }
}

/* A number is all of the text; where it is none, what was there stays. */
TEST (numbers)
{
    static const char *const none[] = {"", " ", "x", "7x", "7 ", "nan"},
                             *const too_far[] = {"-3", "10", "99999999999999999999"};
    long n = 5;
    double x = 5;

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false (text_whole (none[i], -2, 9, &n) || text_number (none[i], &x));
    for (size_t i = 0; i < sizeof too_far / sizeof *too_far; i++)
        assert_false (text_whole (too_far[i], -2, 9, &n));
    assert_false (text_whole ("7.0", -2, 9, &n) || text_number ("1e999", &x));
    assert_true (n == 5 && x == 5);
    assert_true (text_whole ("-2", -2, 9, &n) && n == -2);
    assert_true (text_whole ("9", -2, 9, &n) && n == 9);
    assert_true (text_number (" -2.5e1", &x) && x == -25);
}

/* A word is whole, wherever it stands in the list; words of a text are none. */
TEST (words_of_lists)
{
    static const struct {
        const char *words, *word;
        bool is;
    } t[] = {{"full fits fit", "full", true}, {"full fits fit", "fits", true},
             {"full fits fit", "fit", true},  {"fit", "fit", true},
             {"full fits fit", "ful", false}, {"full fits fit", "its", false},
             {"full fits", "fitsy", false},   {"full fits", "full fits", false},
             {"full fits", "", false},        {"", "full", false}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (text_has_word (t[i].words, t[i].word) != t[i].is)
            fail_msg ("\"%s\" in \"%s\"", t[i].word, t[i].words);
}
