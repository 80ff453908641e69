/* GLPK with its edges covered: quiet, limited by counted nodes, its fatal errors caught.
 *
 * GLPK's environment is thread-local (TLS), so threads of a search can each solve; the
 * hook and the jump buffer are too. */
#include "mapper/milp.h"

#include <setjmp.h>

struct watch {
    int nodes, limit;
};

static void count_nodes (glp_tree *tree, void *context)
{
    struct watch *w = context;

    if (glp_ios_reason (tree) == GLP_ISELECT && ++w->nodes > w->limit)
        glp_ios_terminate (tree);
}

static void jump_out (void *where)
{
    longjmp (*(jmp_buf *) where, 1);
}

static int silent (void *context, const char *text)
{
    (void) context;
    (void) text;
    return 1;
}

enum status milp_solve (glp_prob **mip, int node_limit, struct error *err)
{
    struct watch watch = {.limit = node_limit};
    glp_iocp how;
    jmp_buf where;

    if (setjmp (where)) {
        /* GLPK's own fatal error: its environment is unusable, the problem included. */
        glp_free_env ();
        *mip = NULL;
        return err_set (err, ST_NOMEM, "GLPK failed");
    }
    glp_error_hook (jump_out, &where);
    glp_term_hook (silent, NULL);
    glp_init_iocp (&how);
    how.msg_lev = GLP_MSG_OFF;
    how.presolve = GLP_ON;
    how.cb_func = count_nodes;
    how.cb_info = &watch;
    how.mip_gap = 1e-9;

    int rc = glp_intopt (*mip, &how);
    int status = glp_mip_status (*mip);

    glp_error_hook (NULL, NULL);
    glp_term_hook (NULL, NULL);
    if (status != GLP_OPT && status != GLP_FEAS)
        return err_set (err, ST_NOFIT, "no solution (GLPK %d, status %d)", rc, status);
    return ST_OK;
}

void milp_row (glp_prob *mip, int kind, double low, double high, int n, const int *at,
               const double *coef)
{
    int row = glp_add_rows (mip, 1);

    glp_set_row_bnds (mip, row, kind, low, high);
    glp_set_mat_row (mip, row, n, at, coef);
}

void milp_done (glp_prob *mip)
{
    if (mip)
        glp_delete_prob (mip);
    /* A thread that ends would leave its environment behind. */
    glp_free_env ();
}
