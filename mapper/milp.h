/* GLPK without its output and its way of ending the process. */
#ifndef MAPPER_MILP_H
#define MAPPER_MILP_H

#include <glpk.h>

#include "base/error.h"

/** Solve a MIP quietly, with a limit on branch-and-bound nodes; GLPK's own fatal errors
 *  are caught.
 *  @param      mip     set to NULL when GLPK failed and its memory is gone
 *  @return ST_OK, ST_NOFIT when infeasible or nothing was found, ST_NOMEM on GLPK's
 *          errors */
enum status milp_solve (glp_prob **mip, int node_limit, struct error *err);

/** Add a row: n columns at[1..n] with coef[1..n], bounded as glp_set_row_bnds has it. */
void milp_row (glp_prob *mip, int kind, double low, double high, int n, const int *at,
               const double *coef);

/** Delete the problem (NULL is fine) and this thread's GLPK environment. */
void milp_done (glp_prob *mip);

#endif
