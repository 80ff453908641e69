/* One rate of a link out of many measurements: collisions, changes, accusations by counters,
 * load and age; by the estimator alone and through merged files, good and bad ones. */
#include "tests/lib/folder.h"

#include "base/json.h"
#include "topology/edit/edit.h"
#include "topology/edit/merge_private.h"
#include "topology/links_doc.h"

#define DAY 86400.0

/* ---- the estimator ---- */

/* Daily measurements, oldest first, 0 ends; negative ones are busy. */
static struct history_estimate of_days (const double *rate, double half_life_days,
                                        double accused_day)
{
    struct history_sample s[32], work[64];
    int n = 0;

    for (; rate[n] != 0; n++)
        s[n] = (struct history_sample){n * DAY, fabs (rate[n]), rate[n] < 0};
    return history_estimate (s, n, half_life_days * DAY, accused_day * DAY, work);
}

TEST (estimates)
{
    static const struct {
        const char *what;
        double rate[12], half_life, accused, expected;
        enum history_why why;
    } row[] = {
        {"one", {7}, 7, NAN, 7, HISTORY_NEWEST},
        {"of two the newer", {10, 5}, 7, NAN, 5, HISTORY_NEWEST},
        {"a collision today", {10, 10, 10, 5}, 7, NAN, 10, HISTORY_COLLISION},
        {"a collision long ago", {10, 5, 10, 10}, 7, NAN, 10, HISTORY_NEWEST},
        {"two collisions that do not agree",
         {10, 10, 10, 7, 5},
         7,
         NAN,
         10,
         HISTORY_COLLISION},
        {"twice low is a change", {10, 10, 10, 10, 5, 5.1}, 7, NAN, 5.1, HISTORY_CHANGED},
        {"twice high too", {5, 5, 5, 10, 10.1}, 7, NAN, 10.1, HISTORY_CHANGED},
        {"high once", {5, 5, 5, 10}, 7, NAN, 5, HISTORY_HIGH},
        {"low once and accused", {10, 10, 10, 5}, 7, 2, 5, HISTORY_ACCUSED},
        {"accused, and seen low before", {10, 10, 10, 5, 10}, 7, 2, 5, HISTORY_ACCUSED},
        {"accused and not measured since", {10, 10, 9.8}, 7, 5, 9.8, HISTORY_ACCUSED},
        {"a short half-life: the newest", {10, 10, 10, 8}, .2, NAN, 8, HISTORY_NEWEST},
        {"under load it may be more", {10, 10, 10, -4}, 7, NAN, 10, HISTORY_NEWEST},
        {"more under load than alone", {10, 10, -14, -14, -14}, 7, NAN, 14, HISTORY_BUSY},
        {"under load alone: the highest", {-4, -9, -6}, 7, NAN, 9, HISTORY_BUSY},
        {"... of the last half-life", {-9, -4, -6}, 1.5, NAN, 6, HISTORY_BUSY},
    };

    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct history_estimate e =
            of_days (row[k].rate, row[k].half_life, row[k].accused);

        if (fabs (e.rate - row[k].expected) > 1e-9 || e.why != row[k].why)
            fail_msg ("%s: %g (%s), expected %g (%s)", row[k].what, e.rate,
                      history_why_text (e.why), row[k].expected,
                      history_why_text (row[k].why));
    }
}

/* An estimate lies between the extremes, and does not change when the clock's zero does. */
TEST (invariance)
{
    struct rng rng = seeded (26);

    for (int k = 0; k < 2000; k++) {
        struct history_sample s[12], later[12], work[24];
        int n = 1 + rng_below (&rng, 12);
        double low = INFINITY, high = 0, accused = rng_unit (&rng) < .3 ? 3 * DAY : NAN;
        struct history_estimate a, b;

        for (int i = 0; i < n; i++) {
            s[i] = (struct history_sample){i * DAY, 1 + 9 * rng_unit (&rng),
                                           rng_unit (&rng) < .3};
            later[i] = s[i];
            later[i].when_s += 1e9;
            low = fmin (low, s[i].rate);
            high = fmax (high, s[i].rate);
        }
        a = history_estimate (s, n, 7 * DAY, accused, work);
        b = history_estimate (later, n, 7 * DAY, accused + 1e9, work);
        assert_true (a.rate >= low && a.rate <= high && a.samples <= n && a.age_s >= 0);
        CLOSE (a.rate, b.rate, 1e-9);
        assert_int_equal (a.why, b.why);
    }
}

/* ---- merged files ---- */

static struct notes notes;
static int written;

static void forget (void)
{
    written = 0;
    notes_free (&notes);
}

static void write_next (const char *text)
{
    char name[16];

    snprintf (name, sizeof name, "%d", written++);
    write_in_folder (name, text, strlen (text));
}

/* a -> b on a day of March 2026; more: other keys of `measured`. */
static void write_day (int day, double ab, const char *more)
{
    char text[1024];

    snprintf (text, sizeof text,
              "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\"},"
              "{\"name\":\"b\",\"gpus\":1,\"gpu_type\":\"t4\"}],\"links\":{\"inter\":{"
              "\"bandwidth_gb_per_s\":[[null,%g],[20,null]],\"latency_us\":9}},"
              "\"measured\":{\"when\":\"2026-03-%02dT00:00:00Z\"%s}}",
              ab, day, more);
    write_next (text);
}

static void write_counters (int day, const char *entries)
{
    char text[1024];

    snprintf (text, sizeof text,
              "{\"version\":1,\"nodes\":[],\"links\":{},\"measured\":{\"when\":"
              "\"2026-03-%02dT00:00:00Z\",\"counters\":[%s]}}",
              day, entries);
    write_next (text);
}

#define SYMBOLS(NODE, N) \
    "{\"node\":\"" NODE "\",\"port\":\"mlx5_0/1\",\"counts\":{\"symbol_error\":" N "}}"

#define PORT_Y(N) "{\"node\":\"a\",\"port\":\"y\",\"counts\":{\"symbol_error\":" N "}}"

static enum status merge_all (double half_life_days, json_t **doc, struct error *err)
{
    static char path[32][FOLDER_PATH];
    const char *file[32];
    struct topology_document d = {0};
    enum status st;

    for (int k = 0; k < written; k++) {
        snprintf (path[k], sizeof path[k], "%s/%d", folder, k);
        file[k] = path[k];
    }
    st = topology_merge (file, written, NULL, half_life_days * DAY, &d, &notes, err);
    *doc = json_incref (d.doc);
    topology_document_release (&d);
    return st;
}

static bool noted (const char *words)
{
    for (int k = 0; k < notes.n; k++)
        if (strstr (notes.line[k], words))
            return true;
    return false;
}

/* The merged a -> b, and how its history calls it. */
static void expect (double rate, const char *why, double half_life_days)
{
    struct error err = {""};
    json_t *doc, *measured, *m;

    ok (merge_all (half_life_days, &doc, &err), &err);
    m = json_object_get (json_object_get (json_object_get (doc, "links"), "inter"),
                         "bandwidth_gb_per_s");
    CLOSE (json_number_value (json_array_get (json_array_get (m, 0), 1)), rate, 1e-6);
    measured = json_object_get (json_object_get (doc, "measured"), "history");
    m = json_array_get (json_object_get (measured, "findings"), 0);
    if (why)
        assert_string_equal (json_member_text (m, "why"), why);
    else
        assert_null (m);
    json_decref (doc);
}

TEST (collision_or_fault)
{
    for (int day = 1; day <= 5; day++)
        write_day (day, 20, "");
    write_day (6, 10, "");
    write_counters (5, SYMBOLS ("a", "3") "," SYMBOLS ("stranger", "3"));
    write_counters (6, SYMBOLS ("a", "9") "," SYMBOLS ("stranger", "9000"));
    expect (20, "collision", 7); /* six errors are nothing */
    assert_false (noted ("accuse the links"));
    assert_true (noted ("found 1 of 2 that are not"));
    write_counters (7, SYMBOLS ("a", "2000"));
    notes_free (&notes);
    expect (10, "accused", 7);
    assert_true (noted ("counters accuse the links of a (mlx5_0/1): symbol_error grew by "
                        "1991 since 2026-03-06"));
    expect (10, NULL, 0); /* the newest alone */
    /* A reading that is there twice is one. */
    write_counters (7, SYMBOLS ("a", "2000"));
    expect (10, "accused", 7);
    write_counters (8, SYMBOLS ("a", "2000")); /* mended */
    expect (20, "collision", 7);
    forget ();
}

/* Times may be ahead of UTC and say so; what else follows the seconds makes none of them. */
TEST (times)
{
    static const struct {
        const char *text;
        double seconds;
    } known[] = {{"2026-03-01T12:00:00Z", 1772366400.0},
                 {"2026-03-01T12:00:00", 1772366400.0},
                 {"2026-03-01T12:00:00.25Z", 1772366400.0},
                 {"2026-03-01T14:00:00+02:00", 1772366400.0},
                 {"2026-03-01T06:30:00.5-05:30", 1772366400.0},
                 {"2026-03-01T12:00:00 CET", NAN},
                 {"2026-03-01T12:00:00+02:", NAN},
                 {"2026-03-01T12:00:00+x", NAN},
                 {"yesterday", NAN}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        json_t *when = json_string (known[i].text);
        double s = topology_links_seconds (when);

        if (isnan (known[i].seconds) ? !isnan (s) : s != known[i].seconds)
            fail_msg ("%s is %.17g", known[i].text, s);
        json_decref (when);
    }
}

TEST (reset_and_congestion)
{
    write_day (1, 20, "");
    write_day (2, 20, "");
    write_day (3, 10, "");
    write_counters (1, SYMBOLS ("b", "5000"));
    write_counters (3, SYMBOLS ("b", "4"));
    expect (20, "collision", 7);
    assert_true (noted ("expected 5000 or more as before, found 4"));
    assert_false (noted ("more counters were cleared"));
    write_counters (1, SYMBOLS ("a", "5000") "," PORT_Y ("5000"));
    write_counters (3, SYMBOLS ("a", "4") "," PORT_Y ("4"));
    expect (20, "collision", 7);
    assert_true (noted ("1 more counters were cleared in between"));
    write_counters (
        4, SYMBOLS (
               "b",
               "5") ",{\"node\":\"a\",\"port\":\"x\",\"counts\":{\"transmit_wait\":1}}");
    write_counters (5, "{\"node\":\"a\",\"port\":\"x\",\"counts\":{\"transmit_wait\":"
                       "1000000000000}}");
    expect (20, "collision", 7); /* waiting is congestion */
    forget ();
}

/* A time that cannot be read is told, whatever else the files have. */
TEST (unread_times)
{
    struct error err = {""};
    json_t *doc;

    write_day (1, 20, "");
    write_next ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1}],"
                "\"measured\":{\"when\":\"noon\"}}");
    write_next ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1}],"
                "\"captured\":[7]}");
    ok (merge_all (7, &doc, &err), &err);
    assert_true (
        noted ("1: measured.when: expected a time as 2025-01-31T12:00:00Z, found "
               "\"noon\": the newer files are those named later"));
    assert_true (noted ("2: captured: expected a time as 2025-01-31T12:00:00Z, found an "
                        "array of 1"));
    json_decref (doc);
    forget ();
}

/* By how much a counter may grow in a day. */
TEST (thresholds)
{
    static const struct {
        const char *name;
        long long may, must_not;
    } known[] = {{"symbol_error", 10, 11},
                 {"link_recovery", 10, 11},
                 {"receive_error", 10, 11},
                 {"link_integrity", 10, 11},
                 {"buffer_overrun", 10, 11},
                 {"link_downed", 1, 2},
                 {"nvlink_replay", 0, 1},
                 {"nvlink_recovery", 0, 1},
                 {"nvlink_crc", 8640000, 8640001},
                 {"nvlink_crc_flit", 8640000, 8640001},
                 {"nvlink_crc_data", 8640000, 8640001}};

    for (size_t i = 0; i < 2 * (sizeof known / sizeof *known); i++) {
        bool accused = i % 2;
        struct error err = {""};
        char entry[128];
        json_t *doc;

        write_day (1, 20, "");
        for (int day = 1; day <= 2; day++) {
            long long grew = accused ? known[i / 2].must_not : known[i / 2].may;

            snprintf (entry, sizeof entry, "{\"node\":\"a\",\"counts\":{\"%s\":%lld}}",
                      known[i / 2].name, day == 1 ? 7 : 7 + grew);
            write_counters (day, entry);
        }
        ok (merge_all (7, &doc, &err), &err);
        if ((json_object_get (json_object_get (doc, "measured"), "accused") != NULL) !=
            accused)
            fail_msg ("%s %s", entry, accused ? "accuses nobody" : "accuses");
        json_decref (doc);
        forget ();
    }
}

TEST (load_and_failures)
{
    write_day (1, 20, "");
    write_day (2, 6, ",\"load\":\"busy\"");
    expect (20, NULL, 7);
    write_day (3, 30, ",\"load\":\"busy\"");
    write_day (4, 30, ",\"load\":\"busy\"");
    expect (30, "busy", 7);
    /* What a newer file found failed is forgotten: only what comes after counts. */
    write_day (5, 19,
               ",\"endpoints\":[{\"node\":\"a\",\"gpu\":0},{\"node\":\"b\",\"gpu\":0}],"
               "\"pairs\":[{\"src\":0,\"dst\":1,\"failed\":\"timeout\"}]");
    write_day (6, 11, "");
    expect (11, NULL, 7);
    forget ();
}

/* Two nodes of two GPUs, linked one by one: a:0 -> a:1 and a:0 -> b:0, the rest 30. */
static void write_gpus (int day, double inside, double between)
{
    char text[1024];

    snprintf (text, sizeof text,
              "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":2,\"gpu_type\":\"t4\","
              "\"gpu_uuid\":[\"GPU-a\",\"GPU-b\"],\"gpu_nic\":[\"mlx5_0\",\"mlx5_1\"]},"
              "{\"name\":\"b\",\"gpus\":2,\"gpu_type\":\"t4\"}],\"links\":{\"gpu\":{"
              "\"bandwidth_gb_per_s\":[[null,%g,%g,30],[30,null,%g,30],[30,30,null,30],"
              "[30,30,30,null]],\"latency_us\":9}},"
              "\"measured\":{\"when\":\"2026-03-%02dT00:00:00Z\"}}",
              inside, between, between, day);
    write_next (text);
}

static double gpu_rate (const json_t *doc, size_t i, size_t j)
{
    const json_t *m = json_object_get (
        json_object_get (json_object_get (doc, "links"), "gpu"), "bandwidth_gb_per_s");

    return json_number_value (json_array_get (json_array_get (m, i), j));
}

/* An NVLink accuses its GPU's links inside, a card those of its GPU to other nodes. */
TEST (single_gpus)
{
    struct error err = {""};
    json_t *doc;

    for (int day = 1; day <= 4; day++)
        write_gpus (day, 100, 30);
    write_gpus (5, 40, 10);
    write_counters (4, "{\"uuid\":\"GPU-a\",\"counts\":{\"nvlink_replay\":0}},"
                       "{\"node\":\"a\",\"port\":\"mlx5_1/1\",\"counts\":{"
                       "\"link_downed\":0}}");
    write_counters (5, "{\"uuid\":\"GPU-a\",\"counts\":{\"nvlink_replay\":1}},"
                       "{\"node\":\"a\",\"port\":\"mlx5_1/1\",\"counts\":{"
                       "\"link_downed\":3}}");
    ok (merge_all (7, &doc, &err), &err);
    CLOSE (gpu_rate (doc, 0, 1), 40.0, 1e-6); /* inside: accused */
    CLOSE (gpu_rate (doc, 0, 2), 30.0, 1e-6); /* mlx5_0 is not */
    CLOSE (gpu_rate (doc, 1, 2), 10.0, 1e-6); /* mlx5_1 is */
    assert_true (noted ("accuse the links of a:0"));
    json_decref (doc);
    forget ();
}

/* Three GPUs of a node whose links are one number, or rows; more: other keys of `measured`. */
static void write_inside (int day, const char *bandwidth, const char *more)
{
    char text[1024];

    snprintf (text, sizeof text,
              "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":3,\"gpu_type\":\"t4\","
              "\"gpu_uuid\":[\"GPU-0\",\"GPU-1\",\"GPU-2\"]}],"
              "\"links\":{\"intra\":{\"bandwidth_gb_per_s\":%s,\"latency_us\":9}},"
              "\"measured\":{\"when\":\"2026-03-%02dT00:00:00Z\"%s}}",
              bandwidth, day, more);
    write_next (text);
}

/* Why a link is not as in its newest measurement; NULL: it is, or nobody says. */
static const char *why_of (const json_t *doc, const char *from, const char *to)
{
    const json_t *list = json_object_get (
                     json_object_get (json_object_get (doc, "measured"), "history"),
                     "findings"),
                 *one;
    size_t k;

    json_array_foreach (list, k,
                        one) if (strcmp (json_member_text (one, "from"), from) == 0 &&
                                 strcmp (json_member_text (one, "to"), to) ==
                                     0) return json_member_text (one, "why");
    return NULL;
}

/* The merged rate of GPU i -> j inside, and why; NULL: as in the newest. */
static void expect_inside (int i, int j, double rate, const char *why)
{
    struct error err = {""};
    char from[8] = "a", to[8] = "a";
    const char *found;
    json_t *doc, *m;

    ok (merge_all (7, &doc, &err), &err);
    m = json_object_get (json_object_get (json_object_get (doc, "links"), "intra"),
                         "bandwidth_gb_per_s");
    if (json_is_array (m)) {
        m = json_array_get (json_array_get (m, (size_t) i), (size_t) j);
        snprintf (from, sizeof from, "a:%d", i);
        snprintf (to, sizeof to, "a:%d", j);
    }
    CLOSE (json_number_value (m), rate, 1e-6);
    found = why_of (doc, from, to);
    assert_string_equal (found ? found : "", why ? why : "");
    json_decref (doc);
}

TEST (inside_nodes)
{
    write_inside (1, "240", "");
    expect_inside (0, 1, 240, NULL);
    write_inside (2, "120", "");
    expect_inside (0, 1, 120, NULL); /* of two the newer */
    write_inside (3, "238", "");
    write_inside (4, "241", "");
    write_inside (5, "300", "");
    expect_inside (0, 1, 240, "high");
    write_inside (6, "121", ""); /* of all pairs at once: no collision */
    expect_inside (0, 1, 121, "changed");
    write_inside (7, "60", ",\"load\":\"busy\"");
    expect_inside (0, 1, 121, "changed");
    forget ();

    /* One pair is slow once; another since its GPU's counters grew. */
    for (int day = 1; day <= 4; day++)
        write_inside (day, "[[null,200,200],[200,null,200],[200,200,null]]", "");
    write_inside (5, "[[null,90,200],[200,null,80],[200,200,null]]", "");
    expect_inside (0, 1, 200, "collision");
    expect_inside (1, 2, 200, "collision");
    write_counters (4, "{\"uuid\":\"GPU-2\",\"counts\":{\"nvlink_replay\":0}}");
    write_counters (5, "{\"uuid\":\"GPU-2\",\"counts\":{\"nvlink_replay\":5}}");
    expect_inside (0, 1, 200, "collision");
    expect_inside (1, 2, 80, "accused");
    forget ();

    /* Numbers of all pairs, and a counter that accuses one GPU's. */
    for (int day = 1; day <= 4; day++)
        write_inside (day, "200", "");
    write_inside (5, "[[null,90,90],[200,null,200],[200,200,null]]", "");
    write_counters (4, "{\"uuid\":\"GPU-2\",\"counts\":{\"nvlink_replay\":0}}");
    write_counters (5, "{\"uuid\":\"GPU-2\",\"counts\":{\"nvlink_replay\":5}}");
    expect_inside (0, 1, 200, "collision");
    expect_inside (0, 2, 90, "accused");
    forget ();
}

static void refused (const char *words)
{
    struct error err = {""};
    json_t *doc;

    assert_int_equal (merge_all (7, &doc, &err), ST_INVALID);
    if (!strstr (err.text, words))
        fail_msg ("\"%s\" does not say \"%s\"", err.text, words);
    forget ();
}

TEST (bad_input)
{
    write_day (1, 20, ",\"load\":\"heavy\"");
    refused ("0: measured.load: expected \"idle\" or \"busy\", found \"heavy\"");
    write_day (1, 20, "");
    write_counters (2, "{\"node\":\"a\",\"counts\":{\"symbol_error\":-1}}");
    refused ("1: measured.counters[0].counts.symbol_error: expected a number >= 0");
    write_day (1, 20, "");
    write_counters (2, "7");
    refused ("measured.counters[0]");
    write_day (1, 20, "");
    write_next (
        "{\"version\":1,\"nodes\":[],\"links\":{},\"measured\":{\"counters\":[" SYMBOLS (
            "a", "1") "]}}");
    refused ("1: measured.when: expected a time as 2025-01-31T12:00:00Z");
    write_next ("{\"version\":1,\"nodes\":[],\"links\":{},\"measured\":{\"when\":"
                "\"2999-01-01T00:00:00Z\",\"counters\":[]}}");
    refused ("nodes: expected 1 to 1048576 nodes");
    write_day (1, 20, "");
    write_next ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1},{\"name\":\"b\","
                "\"gpus\":1}],\"links\":{\"inter\":{\"bandwidth_gb_per_s\":9,"
                "\"latency_us\":9}},\"measured\":{\"when\":\"2999-01-01T00:00:00Z\"}}");
    expect (9, NULL, 7);
    assert_true (noted ("measured.when: expected a time until now"));
    forget ();
}
