/* The table of a running job's ranks is read, or refused with line and reason. */
#include "check/check.h"
#include "tests/lib/fixture.h"

TEST (tables)
{
    static const struct {
        const char *text, *says; /* NULL: the table is read */
    } t[] = {{"", NULL},
             {"# rank host gpu\n\n0 a 1\r\n  1\tb GPU-12ab-34\n2 c -", NULL},
             {"0 a", "line 1: expected `rank host gpu`, found \"0 a\""},
             {"0 a 1\n1 a 1 2\n", "line 2: expected `rank host gpu`"},
             {"3 a 1", "line 1: expected a rank from 0 to 2, found \"3\""},
             {"-1 a 1", "expected a rank from 0 to 2, found \"-1\""},
             {"1x a 1", "expected a rank from 0 to 2, found \"1x\""},
             {"99999999999999999999 a 1", "expected a rank from 0 to 2"},
             {"0 a/b 1", "expected a host's name, found \"a/b\""},
             {"0 a -1", "expected a GPU's UUID or index, or -, found \"-1\""},
             {"0 a 1\n\n0 a 2", "line 3: rank 0 appears twice"}};
    struct check_place place[3];

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct error err = {""};
        enum status st = check_running_parse ("table", t[i].text, 3, place, &err);

        assert_int_equal (st, t[i].says ? ST_INVALID : ST_OK);
        if (t[i].says && !strstr (err.text, t[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, t[i].says);
        if (i != 1)
            continue;
        assert_string_equal (place[0].host, "a");
        assert_string_equal (place[0].gpu, "1");
        assert_string_equal (place[1].host, "b");
        assert_string_equal (place[1].gpu, "GPU-12ab-34");
        assert_string_equal (place[2].gpu, "-");
    }
    /* The longest name of a GPU that there is room for, and one more. */
    for (size_t n = sizeof place[0].gpu - 1; n <= sizeof place[0].gpu; n++) {
        char line[256] = "0 a ";

        memset (line + 4, 'x', n);
        assert_int_equal (check_running_parse ("table", line, 3, place, NULL),
                          n < sizeof place[0].gpu ? ST_OK : ST_INVALID);
    }
}
