/* Profiles by name or file, and the facts of their earlier releases.
 *
 * A profile's own facts are those of its current release.  Its "releases" say what was otherwise
 * before: each entry holds for the releases from the entry before it to its own `until`, and has
 * the keys that differ. */
#include "workload/workload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "workload/workload_private.h"

/* ---- releases ---- */

#define NUMBERS_MAX 4
#define YEAR_MIN 20 /* of a release by date; versions begin lower */

#define DATE_DIGITS 8

/* "26.04.01", "v0.15", "2026-04" and "20260401" are numbers; a year is its last two digits.
 * @return how many, 0 where it is none */
static int numbers_of (const char *release, int number[NUMBERS_MAX])
{
    int n = 0;

    if (strspn (release, "0123456789") == DATE_DIGITS && release[DATE_DIGITS] == '\0') {
        int date = atoi (release), year = date / 10000, month = date / 100 % 100,
            day = date % 100;

        number[0] = year - 2000;
        number[1] = month;
        number[2] = day;
        return year >= 2000 && year < 2100 && month >= 1 && month <= 12 && day >= 1 &&
                       day <= 31
                   ? 3
                   : 0;
    }
    release += *release == 'v';
    while (n < NUMBERS_MAX) {
        size_t digits = strspn (release, "0123456789");

        if (digits == 0 || digits > 6)
            return 0;
        number[n++] = atoi (release);
        release += digits;
        if (*release == '\0')
            break;
        if ((*release != '.' && *release != '-') || n == NUMBERS_MAX)
            return 0;
        release++;
    }
    if (number[0] >= 2000)
        number[0] -= 2000;
    return n;
}

bool workload_is_release (const char *s)
{
    int number[NUMBERS_MAX];

    return numbers_of (s, number) > 0;
}

/* Releases by date ("26.04") and versions ("0.4.1") of one framework tell nothing of each other. */
static bool is_alike (const char *release, const char *other)
{
    int a[NUMBERS_MAX], b[NUMBERS_MAX];

    return numbers_of (release, a) > 0 && numbers_of (other, b) > 0 &&
           (a[0] >= YEAR_MIN) == (b[0] >= YEAR_MIN);
}

/* Is the release after another one?  26.04.01 is no later than 26.04, which it mends. */
static bool is_after (const char *release, const char *other)
{
    int a[NUMBERS_MAX] = {0}, b[NUMBERS_MAX], n = numbers_of (other, b);

    numbers_of (release, a);
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] > b[i];
    return false;
}

int workload_release_of (const struct workload_profile *p, const char *release)
{
    int i = 0;

    if (p->n_until == 0 || !is_alike (release, p->until[0]))
        return p->n_until;
    while (i < p->n_until && is_after (release, p->until[i]))
        i++;
    return i;
}

/* What a release cannot have of its own: it would be passed over. */
static enum status refuse_keys (const struct json_at *entry, struct error *err)
{
    static const char *const keys[] = {"releases",   "version", "name",     "sources",
                                       "frameworks", "gpu",     "elsewhere"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct json_at one = json_key (entry, keys[i]);

        if (one.v)
            return json_fail (&one, err, "a key that differs between releases");
    }
    return ST_OK;
}

/* The document with entry i of its releases in place of what it says itself. */
static json_t *with_release (json_t *doc, json_t *entry, const char *until)
{
    json_t *own = json_deep_copy (doc);
    const char *name = json_string_value (json_object_get (doc, "name"));

    if (!own || json_object_update_recursive (own, entry) != 0) {
        json_decref (own);
        return NULL;
    }
    json_object_del (own, "until");
    json_object_del (own, "releases");
    json_object_set_new (own, "name", json_sprintf ("%.40s@%s", name, until));
    return own;
}

/* Entry i's facts with the others of the profile. */
static enum status read_release (json_t *doc, const struct json_at *entry,
                                 const char *until, const char *file,
                                 struct workload_profile *out, struct notes *notes,
                                 struct error *err)
{
    struct text place = {0};
    json_t *own = with_release (doc, entry->v, until);
    enum status st = own ? ST_OK : err_nomem (err);

    text_add (&place, "%s: releases[%zu]", file, entry->index);
    THEN (st, workload_profile_from_current (own, text_str (&place), out, notes, err));
    if (st == ST_OK) {
        snprintf (out->from, sizeof out->from, "%.255s", file);
        snprintf (out->release, sizeof out->release, "%.15s", until);
    }
    json_decref (own);
    text_free (&place);
    return st;
}

/* A framework's word may end in the last release that it ran on. */
static enum status check_frameworks (const struct json_at *root, struct error *err)
{
    struct json_at list = json_key (root, "frameworks");

    json_each (&list, one) {
        const char *at = strchr (json_string_value (one.v), '@');

        if (at && !workload_is_release (at + 1))
            return json_fail (&one, err, "a word, or one and a release (\"fms@25.10\")");
    }
    return ST_OK;
}

enum status workload_profile_from_json (json_t *doc, const char *file,
                                        const char *release, struct workload_profile *out,
                                        struct notes *notes, struct error *err)
{
    struct json_at root = json_root (doc, file), list = json_key (&root, "releases");
    struct workload_profile p, earlier[WORKLOAD_RELEASES_MAX];
    size_t n = 0;
    int chosen;

    TRY (workload_profile_from_current (doc, file, &p, notes, err));
    TRY (check_frameworks (&root, err));
    if (list.v)
        TRY (json_want_array (&list, &n, err));
    if (n > WORKLOAD_RELEASES_MAX)
        return json_fail (&list, err, "at most %d entries", WORKLOAD_RELEASES_MAX);
    json_each (&list, entry) {
        struct json_at until = json_key (&entry, "until");
        size_t i = entry.index;
        const char *s;

        TRY (json_want_object (&entry, err));
        TRY (refuse_keys (&entry, err));
        TRY (json_want_string (&until, &s, err));
        if (!workload_is_release (s) || strlen (s) >= sizeof *p.until ||
            (i > 0 && (!is_alike (s, p.until[0]) || !is_after (s, p.until[i - 1]))))
            return json_fail (&until, err,
                              "a release (\"26.04\"), later than the entry before");
        TRY (read_release (doc, &entry, s, file, &earlier[i], notes, err));
        snprintf (p.until[p.n_until++], sizeof *p.until, "%s", s);
    }
    if (release && n == 0)
        return json_fail_text (&root, err, "it has the facts of one release alone");
    if (release && !is_alike (release, p.until[0]))
        return json_fail_text (&root, err, "expected a release as %s, found %s",
                               p.until[0], release);
    chosen = workload_release_of (&p, release ? release : "");
    *out = chosen < p.n_until ? earlier[chosen] : p;
    return ST_OK;
}

/* ---- by name ---- */

const char *workload_profile_shipped (int i)
{
    for (int k = 0; workload_shipped_profiles[k].name; k++)
        if (k == i)
            return workload_shipped_profiles[k].name;
    return NULL;
}

/* The document of a shipped profile, or a file's. */
static enum status read_document (const char *arg, json_t **doc, struct error *err)
{
    const struct text_shipped *shipped = workload_shipped_profiles;
    struct text list = {0};
    struct text_near near = {.asked = arg};
    char hint[TEXT_HINT];
    struct error why;
    enum status st;

    while (shipped->name && strcmp (shipped->name, arg) != 0)
        shipped++;
    if (shipped->name)
        return json_parse (shipped->name, shipped->text, strlen (shipped->text), doc,
                           err);
    st = json_read (arg, doc, &why);
    if (st == ST_OK)
        return ST_OK;
    for (int i = 0; workload_profile_shipped (i); i++) {
        const char *name = workload_profile_shipped (i);

        text_add (&list, "%s%s", i ? ", " : "", name);
        text_near_try (&near, name, strlen (name));
    }
    if (st == ST_IO)
        err_set (err, st, "profile: %s%s (shipped profiles: %s)", why.text,
                 text_near_hint (&near, "", hint), text_str (&list));
    else
        err_set (err, st, "profile: %s", why.text);
    text_free (&list);
    return st;
}

enum status workload_profile_read (const char *arg, struct workload_profile *p,
                                   struct notes *notes, struct error *err)
{
    const char *at = strrchr (arg, '@'), *release = NULL;
    struct text base = {0};
    json_t *doc = NULL;
    struct stat file;
    enum status st = ST_OK;

    text_add (&base, "%s", arg);
    if (at && stat (arg, &file) != 0) {
        release = at + 1;
        text_free (&base);
        text_add (&base, "%.*s", (int) (at - arg), arg);
        if (!workload_is_release (release))
            st = err_set (err, ST_INVALID,
                          "profile: %s: expected a release after @ (26.04), found \"%s\"",
                          text_str (&base), release);
    }
    THEN (st, read_document (text_str (&base), &doc, err));
    THEN (st, workload_profile_from_json (doc, text_str (&base), release, p, notes, err));
    if (st == ST_OK) /* what reads the same again */
        snprintf (p->from, sizeof p->from, "%.255s", arg);
    json_decref (doc);
    text_free (&base);
    return st;
}

/* ---- where none is named ---- */

void workload_gpus_add (struct workload_gpus *all, const char *name)
{
    int k = 0;

    while (k < all->n && strcmp (all->name[k], name) != 0)
        k++;
    if (k == all->n && k < WORKLOAD_GPUS_MAX)
        all->name[all->n++] = name;
}

const char *workload_profile_strange (const struct workload_profile *p,
                                      const struct workload_model *m,
                                      const struct workload_gpus *on)
{
    const struct workload_model dense = {.experts = 0};

    if (p->elsewhere[0] == '\0' || strcmp (p->from, p->name) != 0)
        return NULL;
    for (int i = 0; i < on->n; i++)
        if (!workload_is_fitted (p, &dense, on->name[i]))
            return on->name[i];
    return on->n > 0 && !workload_is_fitted (p, m, on->name[0]) ? "models with experts"
                                                                : NULL;
}

const char *workload_profile_serving (const struct workload_profile *p,
                                      const struct workload_model *m,
                                      const struct workload_gpus *on)
{
    return workload_profile_strange (p, m, on) ? p->elsewhere : p->name;
}

enum status workload_profile_on (const struct workload_profile *named,
                                 const struct workload_model *m,
                                 const struct workload_gpus *on,
                                 struct workload_profile *out, struct notes *notes,
                                 struct error *err)
{
    const char *strange;
    struct workload_profile meant;

    if (named->meant[0]) {
        TRY (workload_profile_read (named->meant, &meant, notes, err));
        named = &meant;
    }
    strange = workload_profile_strange (named, m, on);
    if (!strange) {
        *out = *named;
        return ST_OK;
    }
    TRY (workload_profile_read (named->elsewhere, out, notes, err));
    snprintf (out->meant, sizeof out->meant, "%s", named->name);
    snprintf (out->why, sizeof out->why, "for %s where it was not fitted, as with %.48s",
              named->name, strange);
    return ST_OK;
}

enum status workload_profile_serve (struct workload_profile *p,
                                    const struct workload_gpus *on,
                                    const struct workload_model *m,
                                    enum workload_precision precision, struct error *err)
{
    struct workload_profile serving;

    TRY (workload_profile_on (p, m, on, &serving, NULL, err));
    if (strcmp (serving.name, p->name) == 0)
        return ST_OK;
    if (serving.why[0] == '\0')
        snprintf (serving.why, sizeof serving.why, "for the GPU types in use");
    workload_profile_pace (&serving, m, precision);
    *p = serving;
    return ST_OK;
}

enum status workload_profile_for (const char *arg, const struct workload_model *m,
                                  const struct workload_gpus *on,
                                  struct workload_profile *out, struct notes *notes,
                                  struct error *err)
{
    struct workload_profile named;

    TRY (workload_profile_read (arg, &named, notes, err));
    return workload_profile_on (&named, m, on, out, notes, err);
}

enum status workload_profile_default (const struct workload_model *m,
                                      const struct workload_gpus *on,
                                      struct workload_profile *out, struct error *err)
{
    TRY (workload_profile_for (WORKLOAD_PROFILE_DEFAULT, m, on, out, NULL, err));
    if (out->why[0] == '\0')
        snprintf (out->why, sizeof out->why, "the default");
    return ST_OK;
}
