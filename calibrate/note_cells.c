/* Notes that say what a cell leaves empty: "full AC; micro batch size 2; ZeRO-2; no flash
 * attention".  An item of the notes fills the cell that it is of where all of it says that and
 * nothing else, and no other item says another thing of it. */
#include "calibrate/calibrate_private.h"

#include <stdlib.h>
#include <string.h>

/* An empty column behind the others. */
static enum status add_column (struct csv_table *t, const char *name, struct error *err)
{
    size_t n = (size_t) t->columns, rows = (size_t) t->rows;
    char **header = realloc (t->header, (n + 1) * sizeof *header), **cell;

    if (!header)
        return err_nomem (err);
    t->header = header;
    if (!(cell = calloc (rows * (n + 1) + 1, sizeof *cell)))
        return err_nomem (err);
    if (!(header[n] = strdup (name))) {
        free (cell);
        return err_nomem (err);
    }
    for (size_t i = 0; i < rows; i++) {
        memcpy (cell + i * (n + 1), t->cell + i * n, n * sizeof *cell);
        t->found[i]++;
    }
    free (t->cell);
    t->cell = cell;
    t->columns++;
    t->cells = (int) (rows * (n + 1));
    for (size_t i = n; i < (size_t) t->cells; i += n + 1)
        if (!(cell[i] = strdup ("")))
            return err_nomem (err);
    return ST_OK;
}

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

/* Fill the empty cells of a column. */
static enum status fill (struct csv_table *t, int notes_at, const char *column,
                         struct error *err)
{
    int at = csv_table_column (t, column, 0);
    char value[CALIBRATE_ITEM], *own;

    for (int row = 0; row < t->rows; row++) {
        size_t first = (size_t) row * (size_t) t->columns;

        if (at >= 0 && t->cell[first + (size_t) at][0] != '\0')
            continue;
        noted (t->cell[first + (size_t) notes_at], column, value);
        if (value[0] == '\0')
            continue;
        if (at < 0) {
            TRY (add_column (t, column, err));
            at = t->columns - 1;
            first = (size_t) row * (size_t) t->columns;
        }
        if (!(own = strdup (value)))
            return err_nomem (err);
        free (t->cell[first + (size_t) at]);
        t->cell[first + (size_t) at] = own;
    }
    return ST_OK;
}

enum status calibrate_fill_cells (struct csv_table *t, struct error *err)
{
    static const char *const columns[] = {
        "recompute", "attention",   "precision",    "zero",
        "oom",       "micro_batch", "global_batch", "gradient_accumulation"};
    int notes_at = csv_table_column (t, "notes", 0);

    for (size_t i = 0; i < COUNT_OF (columns) && notes_at >= 0; i++)
        TRY (fill (t, notes_at, columns[i], err));
    return ST_OK;
}
