/* YAML documents, through libyaml's events.  Aliases are refused: no job's description needs them,
 * and they make little files large. */
#include "jobs/jobs_private.h"

#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 32
#define KEY_MAX 512

/* The way to a value: "model.optim", its length at every level, and where it is in a list.  A
 * list of words alone is one value, "[a, b]". */
struct way {
    char key[KEY_MAX];
    size_t len[DEPTH_MAX];
    int entry[DEPTH_MAX]; /* -1: a mapping */
    bool have_key[DEPTH_MAX];
    int depth;
    struct text list; /* the words of the innermost list so far, */
    int list_line;    /* which begins there */
};

static bool add_key (struct way *w, const char *name)
{
    size_t at = w->depth > 0 ? w->len[w->depth - 1] : 0;
    int n = snprintf (w->key + at, KEY_MAX - at, "%s%s", at ? "." : "", name);

    return n >= 0 && (size_t) n < KEY_MAX - at;
}

/* A value begins: the key of a list's entry is its number. */
static bool begin_value (struct way *w)
{
    char number[16];

    if (w->depth == 0 || w->entry[w->depth - 1] < 0)
        return true;
    snprintf (number, sizeof number, "%d", w->entry[w->depth - 1]++);
    return add_key (w, number);
}

static bool open_level (struct way *w, bool list)
{
    if (!begin_value (w) || w->depth == DEPTH_MAX)
        return false;
    w->len[w->depth] = strlen (w->key);
    w->entry[w->depth] = list ? 0 : -1;
    w->have_key[w->depth++] = false;
    w->list.len = 0;
    return true;
}

static enum status close_level (struct jobs_reading *r, struct way *w)
{
    enum status st = ST_OK;

    w->depth--;
    if (w->list.len > 0 && w->len[w->depth] > 0) {
        w->key[w->len[w->depth]] = '\0';
        text_add (&w->list, "]");
        st = w->list.failed ? err_nomem (r->err)
                            : jobs_say (r, w->list_line, w->key, text_str (&w->list));
    }
    w->list.len = 0;
    if (w->depth > 0)
        w->have_key[w->depth - 1] = false;
    return st;
}

static enum status scalar (struct jobs_reading *r, struct way *w, const yaml_event_t *e)
{
    const char *value = (const char *) e->data.scalar.value;
    int line = (int) e->start_mark.line + 1;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE, key;

    if (w->depth == 0)
        return ST_OK;
    if (w->entry[w->depth - 1] >= 0) {
        if (w->list.len == 0)
            w->list_line = line;
        if (w->list.len < JOBS_VALUE_MAX)
            text_add (&w->list, "%s%s", w->list.len ? ", " : "[", value);
        return ST_OK;
    }
    key = !w->have_key[w->depth - 1];
    if (key && !add_key (w, value))
        return jobs_refuse (r, line, "a name is too long");
    w->have_key[w->depth - 1] = key;
    if (key || (plain && (!*value || strcmp (value, "null") == 0 ||
                          strcmp (value, "~") == 0 || strcmp (value, "None") == 0)))
        return ST_OK;
    return jobs_say (r, line, w->key, value);
}

static enum status take (struct jobs_reading *r, struct way *w, const yaml_event_t *e)
{
    int line = (int) e->start_mark.line + 1;

    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return jobs_refuse (r, line, "an alias (*%s): write out what it stands for",
                            (const char *) e->data.alias.anchor);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        if (!open_level (w, e->type == YAML_SEQUENCE_START_EVENT))
            return jobs_refuse (r, line, "nested too deep");
        return ST_OK;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return close_level (r, w);
    case YAML_SCALAR_EVENT:
        return scalar (r, w, e);
    default:
        return ST_OK;
    }
}

enum status jobs_yaml_read (struct jobs_reading *r, const char *text, size_t len)
{
    yaml_parser_t p;
    struct way w = {.depth = 0};
    enum status st = ST_OK;
    bool end = false;

    if (!yaml_parser_initialize (&p))
        return err_nomem (r->err);
    yaml_parser_set_input_string (&p, (const unsigned char *) text, len);
    while (st == ST_OK && !end) {
        yaml_event_t e;

        if (!yaml_parser_parse (&p, &e)) {
            st =
                p.error == YAML_MEMORY_ERROR
                    ? err_nomem (r->err)
                    : jobs_refuse (r, (int) p.problem_mark.line + 1, "not valid YAML: %s",
                                   p.problem ? p.problem : "cannot be read");
            break;
        }
        end = e.type == YAML_STREAM_END_EVENT;
        st = take (r, &w, &e);
        yaml_event_delete (&e);
    }
    yaml_parser_delete (&p);
    text_free (&w.list);
    return st;
}
