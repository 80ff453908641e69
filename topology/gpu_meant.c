/* Which built-in GPU type people mean: by parts of its name, or as drivers call it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "topology/gpu_product.h"
#include "topology/topology.h"

/* Is one word the beginning of the other, and no number cut in two ("h20" of "h200")?  What the
 * asked one has more is letters ("80gb"). */
static bool word_meant (const char *asked, size_t n, const char *own, size_t m)
{
    size_t least = n < m ? n : m;
    bool same = strncasecmp (asked, own, least) == 0,
         cut = least > 0 && isdigit ((unsigned char) own[least - 1]);

    if (n > m)
        return same && n == m + 1 && tolower ((unsigned char) asked[m]) == 'b';
    return same && n > 0 && (n == m || !cut || !isdigit ((unsigned char) own[n]));
}

/* Every word of the name in one of the type's, the first in its family ("rtx" is none). */
static bool spells (const char *name, const char *type)
{
    static const char marks[] = "-_ ";
    const char *family = type + (strncmp (type, "rtx-", 4) == 0 ? 4 : 0), *own = family;

    if (strncasecmp (name, "rtx", 3) == 0)
        name += 3 + strspn (name + 3, marks);
    for (const char *s = name; *s; s += strspn (s, marks)) {
        size_t n = strcspn (s, marks);
        bool found = false;

        for (const char *w = own; *w && !found && (w == family || s > name);) {
            size_t m = strcspn (w, "-");

            found = word_meant (s, n, w, m);
            w += m + (w[m] == '-');
        }
        if (!found)
            return false;
        s += n;
    }
    return strpbrk (name, "0123456789") != NULL;
}

/* The type of a product by the whole name that a driver gives it.  Without one of these words it
 * is no such name: of "h20-141g" the size counts. */
static const struct topology_gpu_type *type_of_product (const char *name)
{
    static const char *const first[] = {"NVIDIA", "AMD", "Tesla", "Quadro", "GeForce"};
    const char *type = NULL;

    for (size_t i = 0; i < sizeof first / sizeof *first && !type; i++)
        if (strncasecmp (name, first[i], strlen (first[i])) == 0)
            type = topology_gpu_type_of_product (name, 0);
    return type ? topology_gpu_type_builtin (type) : NULL;
}

const struct topology_gpu_type *topology_gpu_type_meant (const char *name)
{
    const struct topology_gpu_type *exact = topology_gpu_type_builtin (name);
    int n;
    const struct topology_gpu_type *types = topology_gpu_types_builtin (&n);

    for (int i = 0; i < n && !exact; i++)
        if (spells (name, types[i].name))
            exact = &types[i];
    return exact ? exact : type_of_product (name);
}

const char *topology_gpu_type_hint (const char *name, char buf[TEXT_HINT])
{
    struct text_near near = {.asked = name};
    char family[TEXT_FAR]; /* "h100" of "h100-nvl" */
    const struct topology_gpu_type *meant = topology_gpu_type_meant (name);
    int n;
    const struct topology_gpu_type *types = topology_gpu_types_builtin (&n);

    if (topology_gpu_product_other (name)) {
        snprintf (buf, TEXT_HINT, "; that GPU is not built in");
        return buf;
    }
    snprintf (family, sizeof family, "%.*s", (int) strcspn (name, "-_ "), name);
    if (!meant)
        meant = topology_gpu_type_meant (family);

    for (int i = 0; i < n && !meant; i++) {
        const char *own = types[i].name;

        if (text_near_try (&near, own, strlen (own)) ||
            text_near_try (&near, own, strcspn (own, "-")))
            snprintf (near.word, sizeof near.word, "%s", own);
    }
    if (meant)
        snprintf (near.word, sizeof near.word, "%s", meant->name);
    return text_near_hint (&near, "", buf);
}
