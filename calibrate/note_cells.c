/* Notes that say what a cell leaves empty: "full AC; micro batch size 2; ZeRO-2; no flash
 * attention".  An item of the notes fills the cell that it is of where all of it says that and
 * nothing else, and no other item says another thing of it. */
#include "calibrate/calibrate_private.h"

#include <stdlib.h>
#include <string.h>

/* Are its words in the list: all of them, or any? */
static bool words_among (const char *item, const char *list, bool all)
{
    bool any = false;
    char word[CALIBRATE_ITEM];

    while ((item = calibrate_next_word (item, word))) {
        bool is = text_has_word (list, word);

        if (all && !is)
            return false;
        any = any || is;
    }
    return any;
}

/* What an item says of recomputation; NULL: nothing */
static const char *recompute_of (const char *item)
{
    static const char names[] = "checkpointing recompute recomputation remat ac sac",
                      no[] = "no without off disabled none false",
                      all[] =
                          "checkpointing recompute recomputation remat ac sac no without "
                          "off disabled none false with using on enabled true full "
                          "selective activation activations gradient gradients";
    bool selective = words_among (item, "selective sac", false);

    if (!words_among (item, all, true) || !words_among (item, names, false))
        return NULL;
    if (words_among (item, no, false)) /* not full is not none */
        return selective || words_among (item, "full", false) ? NULL : "none";
    return selective ? "selective" : "full";
}

/* The column of batches that an item has a number of, before or behind its name: "mbs 4", "8 grad
 * acc steps".
 * @param[out] number  it
 * @return NULL: none */
static const char *numbered (const char *item, char number[16])
{
    static const char batches[] = "micro_batch global_batch gradient_accumulation";
    const struct calibrate_column *c;
    char name[CALIBRATE_ITEM];
    size_t from = strcspn (item, "0123456789"), n = strspn (item + from, "0123456789"),
           rest = from + n;
    double factor;

    if (n == 0 || n > 9 || (from > 0 && item[rest] != '\0'))
        return NULL;
    snprintf (name, sizeof name, "%.*s", from > 0 ? (int) from : CALIBRATE_ITEM - 1,
              from > 0 ? item : item + rest);
    snprintf (number, 16, "%.*s", (int) n, item + from);
    c = calibrate_column_named (name, &factor);
    return c && factor == 1.0 && text_has_word (batches, c->name) ? c->name : NULL;
}

/* What an item of the notes says of a column; NULL: nothing */
static const char *said_of (const char *item, const char *column, char number[16])
{
    static const char flash[] = "flash flashattention flashattn fa";
    char joined[CALIBRATE_JOINED];
    const char *batches;

    calibrate_join (item, joined);
    if (strcmp (column, "recompute") == 0)
        return recompute_of (item);
    if (strcmp (column, "attention") == 0)
        return words_among (item, flash, false) &&
                       words_among (item,
                                    "flash flashattention flashattn fa attention attn no "
                                    "without with using off on v 2 3 disabled",
                                    true)
                   ? item
                   : NULL;
    if (strcmp (column, "precision") == 0)
        return text_has_word (
                   "fp8 mxfp8 nvfp4 bf16 fp16 fp32 tf32 amp bf16mixed fp16mixed", joined)
                   ? item
                   : NULL;
    if (strcmp (column, "zero") == 0)
        return strncmp (joined, "zero", 4) == 0 ||
                       strncmp (joined, "deepspeedzero", 13) == 0
                   ? calibrate_word_of (joined, CELL_STAGE)
                   : NULL;
    if (strcmp (column, "oom") == 0)
        return text_has_word ("oom outofmemory ranoutofmemory", joined) ? "1" : NULL;
    batches = numbered (item, number);
    return batches && strcmp (batches, column) == 0 ? number : NULL;
}

/* What a row's notes say of a column; "": nothing, or items say different things */
static void noted (const char *notes, const char *column, char value[CALIBRATE_ITEM])
{
    char item[CALIBRATE_ITEM], number[16];
    bool agree = true;

    value[0] = '\0';
    while (calibrate_next_item (&notes, item)) {
        const char *said = said_of (item, column, number);

        agree = agree && (!said || !value[0] || strcmp (value, said) == 0);
        if (said)
            snprintf (value, CALIBRATE_ITEM, "%s", said);
    }
    if (!agree)
        value[0] = '\0';
}

/* Put another text in a cell's place. */
static enum status put (char **cell, const char *text, struct error *err)
{
    char *own = strdup (text);

    if (!own)
        return err_nomem (err);
    free (*cell);
    *cell = own;
    return ST_OK;
}

/* Fill the empty cells of a column; where there is none, of a spare one, which then is it. */
static enum status fill (struct csv_table *t, int notes_at, const char *column, int spare,
                         struct error *err)
{
    int own = csv_table_column (t, column, 0), at = own >= 0 ? own : spare;
    char value[CALIBRATE_ITEM];

    for (char **row = t->cell; row < t->cell + t->cells; row += t->columns) {
        if (row[at][0] != '\0')
            continue;
        noted (row[notes_at], column, value);
        if (value[0] == '\0')
            continue;
        TRY (put (&row[at], value, err));
        TRY (put (&t->header[at], column, err));
    }
    return ST_OK;
}

enum status calibrate_fill_cells (struct csv_table *t, struct error *err)
{
    static const char *const columns[CALIBRATE_SPARE] = {
        "recompute", "attention",   "precision",    "zero",
        "oom",       "micro_batch", "global_batch", "gradient_accumulation"};
    int notes_at = csv_table_column (t, "notes", 0);

    for (int i = 0; i < CALIBRATE_SPARE && notes_at >= 0; i++)
        TRY (fill (t, notes_at, columns[i], t->columns - CALIBRATE_SPARE + i, err));
    return ST_OK;
}
