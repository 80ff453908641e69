/* Lists of layers in Megatron's words. */
#include "jobs/jobs_private.h"

#include <stdlib.h>
#include <string.h>

#define TIMES_MAX 4096

/* A layout with its repeated parts, "Et|(tt|)*30L", written out; a letter's too, "t*3".
 * @return false where it is none, or too long */
static bool write_out (const char *s, struct text *out, int depth)
{
    for (; *s && out->len < JOBS_VALUE_MAX; s++) {
        const char *close = *s == '(' ? strchr (s, ')') : s;
        struct text part = {0};
        long times = 1;
        bool whole;

        if (!close || depth > 1 || !strchr ("(ELtm|,", *s))
            return false;
        if (*s == '(')
            text_add_mem (&part, s + 1, (size_t) (close - s) - 1);
        else
            text_add_mem (&part, s, 1);
        s = close;
        if (s[1] == '*') {
            char *end;

            times = strtol (s + 2, &end, 10);
            s = end - 1;
        }
        for (whole = times >= 0 && times <= TIMES_MAX;
             whole && times > 0 && out->len < JOBS_VALUE_MAX; times--)
            if (*close == ')')
                whole = write_out (text_str (&part), out, depth + 1);
            else
                text_add (out, "%s", text_str (&part));
        text_free (&part);
        if (!whole)
            return false;
    }
    return *s == '\0' && !out->failed;
}

/* The same as a list of lists of words, "[['embedding', 'decoder'], ['loss']]". */
static bool spell_list (const char *s, struct text *out)
{
    static const struct {
        const char *word;
        char letter;
    } words[] = {{"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}};
    int depth = 0;

    while (*s) {
        size_t len = strspn (s, "abcdefghijklmnopqrstuvwxyz"), i = 0;

        while (len > 0 && i < COUNT_OF (words) &&
               (strlen (words[i].word) != len || strncmp (words[i].word, s, len) != 0))
            i++;
        if (i == COUNT_OF (words) || (len == 0 && !strchr ("[]'\", ", *s)) || depth > 2)
            return false;
        depth += (*s == '[') - (*s == ']');
        if (len > 0)
            text_add_mem (out, &words[i].letter, 1);
        else if (*s == ',' && depth == 1)
            text_add (out, "|");
        s += len > 0 ? len : 1;
    }
    return depth == 0 && !out->failed;
}

int jobs_layout (const char *s, int *part)
{
    struct text whole = {0};
    int parts = *s == '[' ? spell_list (s, &whole) : write_out (s, &whole, 0);

    part[0] = 0;
    for (s = text_str (&whole); parts > 0 && *s; s++)
        if (*s == 't')
            part[parts - 1]++;
        else if (*s == '|' && parts == JOBS_CHUNKS_MAX)
            parts = -1;
        else if (*s == '|')
            part[parts++] = 0;
    text_free (&whole);
    return parts > 0 ? parts : 0;
}

bool jobs_stages_filled (const int *part, int parts, long pp)
{
    for (int i = 0; i < pp; i++) {
        int layers = 0;

        for (int k = i; k < parts; k += (int) pp)
            layers += part[k];
        if (layers == 0)
            return false;
    }
    return true;
}

void jobs_partition (struct jobs_reading *r, const int *part, int parts)
{
    struct text t = {0};
    int layers = 0;

    for (int i = 0; i <= parts; i++) {
        text_add (&t, "%s%d", i ? ", " : "", layers);
        layers += i < parts ? part[i] : 0;
    }
    if (t.failed)
        r->st = err_nomem (r->err);
    jobs_default (r, "partition", text_str (&t));
    text_free (&t);
}

bool jobs_frequency (const char *s, long *dense, long *sparse)
{
    while (*s) {
        long zeros = 0, ones = 0, times = 1;
        char *end;

        s += strspn (s, "'\"( +");
        if (*s++ != '[')
            return false;
        for (; *s && *s != ']'; s++) {
            if (*s == '0' && ones > 0)
                return false;
            zeros += *s == '0';
            ones += *s == '1';
        }
        s += *s == ']';
        if (*s == '*') {
            times = strtol (s + 1, &end, 10);
            s = end;
        }
        if (times < 0 || times > 1 << 20 ||
            (zeros > 0 && (*sparse > 0 || (ones > 0 && times > 1))))
            return false;
        *dense += zeros * times;
        *sparse += ones * times;
        s += strspn (s, "'\") ");
    }
    return *sparse > 0;
}
