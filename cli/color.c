/* Cells in colour, where the terminal has it; what they say stands in letters too. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum cli_colors cli_colors (int when)
{
    const char *no = getenv ("NO_COLOR"), *color = getenv ("COLORTERM"),
               *term = getenv ("TERM");

    if (when == CLI_COLOR_NEVER ||
        (when == CLI_COLOR_AUTO && ((no && *no) || (term && strcmp (term, "dumb") == 0) ||
                                    isatty (STDOUT_FILENO) != 1)))
        return CLI_COLORS_NONE;
    if (color && (strcmp (color, "truecolor") == 0 || strcmp (color, "24bit") == 0))
        return CLI_COLORS_ALL;
    return when == CLI_COLOR_ALWAYS || (term && strstr (term, "256color"))
               ? CLI_COLORS_256
               : CLI_COLORS_NONE;
}

void cli_paint (enum cli_colors colors, struct topology_shade shade, const char *text)
{
    unsigned r = shade.fill >> 16, g = shade.fill >> 8 & 255, b = shade.fill & 255;
    int ink = shade.light ? 16 : 231;

    if (colors == CLI_COLORS_NONE)
        cli_print ("%s", text);
    else if (colors == CLI_COLORS_ALL)
        printf ("\033[48;2;%u;%u;%u;38;5;%dm%s\033[0m", r, g, b, ink, text);
    else /* the nearest of the cube of 6 x 6 x 6 */
        printf ("\033[48;5;%u;38;5;%dm%s\033[0m",
                16 + 36 * ((r + 25) / 51) + 6 * ((g + 25) / 51) + (b + 25) / 51, ink,
                text);
}
