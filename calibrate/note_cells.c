/* Notes that say what a cell leaves empty: "full AC; micro batch size 2; ZeRO-2; no flash
 * attention".  An item of the notes fills the cell that it is of where all of it says that and
 * nothing else. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
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

static enum status fill (struct csv_table *t, int row, const char *column, const char *value,
                         struct error *err)
{
    int at = csv_table_column (t, column, 0);
    char **cell, *own;

    if (at < 0) {
        TRY (add_column (t, column, err));
        at = t->columns - 1;
    }
    cell = &t->cell[(size_t) row * (size_t) t->columns + (size_t) at];
    if ((*cell)[0] != '\0')
        return ST_OK;
    if (!(own = strdup (value)))
        return err_nomem (err);
    free (*cell);
    *cell = own;
    return ST_OK;
}

/* Is it made of these words alone, and of one of the list before the bar at least? */
static bool made_of (const char *item, const char *needed, const char *idle)
{
    bool has = false;
    char word[CALIBRATE_JOINED];

    while (*item) {
        size_t n = 0;

        while (isalnum ((unsigned char) item[n]))
            n++;
        snprintf (word, sizeof word, "%.*s", (int) n, item);
        calibrate_join (word, word);
        if (word[0] && !text_has_word (needed, word) && !text_has_word (idle, word))
            return false;
        has = has || (word[0] && text_has_word (needed, word));
        item += n + (item[n] != '\0');
    }
    return has;
}

/* What an item says of recomputation; NULL: nothing */
static const char *recompute_of (const char *item)
{
    static const char *const names[] = {"checkpoint", "recomput", "remat"};
    static const char words[] = "checkpointing checkpoint recompute recomputation remat ac sac",
                      about[] = "no without with using full selective activation activations "
                                "gradient gradients off on disabled enabled none false true";
    char joined[CALIBRATE_JOINED];

    if (!made_of (item, words, about))
        return NULL;
    for (size_t i = 0; i < COUNT_OF (names); i++)
        if (calibrate_says (item, names[i]) == SAID_NO)
            return "none";
    calibrate_join (item, joined);
    return calibrate_word_of (strncmp (joined, "with", 4) == 0 ? joined + 4 : joined,
                              CELL_RECOMPUTE);
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
static const char *said_of (const char *item, const char *column)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (item, joined);
    if (strcmp (column, "recompute") == 0)
        return recompute_of (item);
    if (strcmp (column, "attention") == 0)
        return made_of (item, "flash flashattention flashattn fa2 fa3",
                        "attention attn no without with using off on 2 3 v2 v3 disabled")
                   ? item
                   : NULL;
    if (strcmp (column, "precision") == 0)
        return text_has_word ("fp8 mxfp8 nvfp4 bf16 fp16 fp32 tf32 amp bf16mixed fp16mixed",
                              joined)
                   ? item
                   : NULL;
    if (strcmp (column, "zero") == 0)
        return strncmp (joined, "zero", 4) == 0 || strncmp (joined, "deepspeedzero", 13) == 0
                   ? calibrate_word_of (joined, CELL_STAGE)
                   : NULL;
    return text_has_word ("oom outofmemory ranoutofmemory", joined) ? "1" : NULL; /* of oom */
}

static enum status fill_from (struct csv_table *t, int row, const char *item, struct error *err)
{
    static const char *const columns[] = {"recompute", "attention", "precision", "zero", "oom"};
    char number[16];
    const char *column = numbered (item, number);

    for (size_t i = 0; i < COUNT_OF (columns); i++) {
        const char *value = said_of (item, columns[i]);

        if (value)
            TRY (fill (t, row, columns[i], value, err));
    }
    return column ? fill (t, row, column, number, err) : ST_OK;
}

enum status calibrate_fill_cells (struct csv_table *t, struct error *err)
{
    int notes_at = csv_table_column (t, "notes", 0);

    for (int row = 0; row < t->rows && notes_at >= 0; row++) {
        char *notes = strdup (t->cell[(size_t) row * (size_t) t->columns + (size_t) notes_at]),
             item[CALIBRATE_ITEM];
        const char *left = notes;
        enum status st = notes ? ST_OK : err_nomem (err);

        while (st == ST_OK && calibrate_next_item (&left, item))
            st = fill_from (t, row, item, err);
        free (notes);
        TRY (st);
    }
    return ST_OK;
}
