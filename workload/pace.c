/* Whose pace a profile has: models by their names. */
#include "workload/workload.h"

#include <string.h>

const char *workload_pace_name (const char *model)
{
    const struct workload_model *preset = workload_preset_meant (model);

    return preset ? preset->name : model;
}

static struct workload_pace *pace_called (struct workload_profile *p, const char *name,
                                          enum workload_precision precision)
{
    for (struct workload_pace *at = p->pace; at < p->pace + p->n_paces; at++)
        if (at->precision == precision && strcmp (at->model, name) == 0)
            return at;
    return NULL;
}

/* Every estimate asks: to find what a name means takes longer than some estimates, so it is not
 * looked for where no pace is of a preset. */
struct workload_pace *workload_pace_of (struct workload_profile *p, const char *model,
                                        enum workload_precision precision)
{
    struct workload_pace *own = pace_called (p, model, precision);

    for (int i = 0; i < p->n_paces && !own; i++)
        if (p->pace[i].precision == precision && workload_preset_find (p->pace[i].model))
            return pace_called (p, workload_pace_name (model), precision);
    return own;
}
