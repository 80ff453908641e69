/* One option in Megatron's words: an argument, or a field of Megatron Bridge. */
#include "jobs/megatron_write.h"

#include <string.h>

const char *const jobs_megatron_section[SECTIONS] = {
    [MODEL] = "model",    [TRAIN] = "train",         [DIST] = "dist",
    [DDP] = "ddp",        [OPTIMIZER] = "optimizer", [COMM_OVERLAP] = "comm_overlap",
    [DATASET] = "dataset"};

/* The key below its section, whose name may be in front of it. */
static void write_yaml (struct text *t, const char *section, char *key, const char *value)
{
    char *type = strstr (key, ".-target-"), *own = strrchr (key, '.');

    if (type) /* a type of PyTorch's */
        *type = '\0';
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    if (!type && own && strncmp (key, section, strlen (section)) == 0)
        key = own + 1;
    if (type)
        text_add (t, "  %s:\n    _target_: %s\n    _call_: false\n", key, value);
    else
        text_add (t, "  %s: %s\n", key, value);
}

void jobs_megatron_say (struct writing *w, enum section s, const char *fact,
                        const char *value)
{
    char key[JOBS_KEY_MAX];

    jobs_key_of (w->dialect, fact, key);
    if (w->yaml)
        write_yaml (&w->part[s], jobs_megatron_section[s], key, value);
    else if (strcmp (value, "true") == 0)
        text_add (&w->part[0], "--%s\n", key);
    else
        text_add (&w->part[0], "--%s %s\n", key, value);
}

void jobs_megatron_unset (struct writing *w, enum section s, const char *fact,
                          const char *value)
{
    if (w->yaml)
        jobs_megatron_say (w, s, fact, value);
}

void jobs_megatron_say_flag (struct writing *w, enum section s, const char *fact, bool on)
{
    if (on)
        jobs_megatron_say (w, s, fact, "true");
    else
        jobs_megatron_unset (w, s, fact, "false");
}
