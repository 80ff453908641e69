#include "base/usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void usage_error (const struct argp_state *state, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (line, sizeof line, fmt, ap);
    va_end (ap);
    text_clean_line (line);
    argp_error (state, "%s", line);
}

int usage_word (const char *words, const char *given)
{
    size_t len = strlen (given);

    for (int i = 0;; i++) {
        size_t n = strcspn (words, "|");

        if (n == len && strncmp (words, given, n) == 0)
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}
