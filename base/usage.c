#include "base/usage.h"

#include <stdarg.h>
#include <stdio.h>

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
