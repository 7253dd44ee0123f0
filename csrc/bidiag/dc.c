/*
 * Divide and conquer: the tree of subproblems and the walk from the leaves to the roots; the
 * operations of a level are the back end's.  The mathematics is in dc.h and secular.h.
 */
#include "backend/backend.h"
#include "host/host.h"

/* Columns of the left child: about half, a multiple of DC_ALIGN. */
static int64_t
left_columns(int64_t columns)
{
    return (columns / 2 + DC_ALIGN / 2) / DC_ALIGN * DC_ALIGN;
}

/* Fills the nodes of `levels` levels below the root; returns the most columns of a leaf. */
static int64_t
fill_tree(int64_t n, struct dc_tree *tree)
{
    struct dc_node *node = tree->node;
    const int64_t inner = dc_nodes_above(tree->levels);
    int64_t widest = 0;

    node[0] = (struct dc_node){0, n, n, -1, 0, 0};
    for (int64_t i = 0; i < inner; i++) {
        int64_t columns = left_columns(node[i].columns), first = node[i].first;

        node[i].left = columns - 1;
        node[2 * i + 1] = (struct dc_node){first, columns - 1, columns, -1, 0, 0};
        node[2 * i + 2] = (struct dc_node){
            first + columns, node[i].rows - columns, node[i].columns - columns, -1, 0, 0};
    }
    for (int64_t i = inner; i < 2 * inner + 1; i++) {
        widest = node[i].columns > widest ? node[i].columns : widest;
    }
    return widest;
}

/* The tree of least depth whose leaves are small enough. */
static tsvd_status
make_tree(struct tsvd_context *ctx, int64_t n, struct dc_tree *tree)
{
    tsvd_status ret = TSVD_OK;

    tree->levels = 0;
    while (((int64_t)DC_LEAF_COLUMNS << tree->levels) < n) {
        tree->levels++;
    }
    do { /* rounding to DC_ALIGN may ask for one level more */
        tsvdi_host_free(tree->node);
        tree->node = NULL;
        TSVD_TRY(tsvdi_host_alloc(((size_t)2 << tree->levels) * sizeof *tree->node, ctx->error,
                                  (void **)&tree->node));
    } while (fill_tree(n, tree) > DC_LEAF_COLUMNS && ++tree->levels);
out:
    return ret;
}

tsvd_status
tsvdi_dc(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    const struct tsvd_backend *backend = ctx->backend;
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(make_tree(ctx, job->n, &job->tree));
    TSVD_TRY(backend->dc_begin(ctx, job));
    TSVD_TRY(backend->dc_leaves(ctx, job));
    info->seconds_iterate += tsvdi_host_seconds() - clock;
    for (int level = job->tree.levels - 1; level >= 0; level--) {
        TSVD_TRY(tsvdi_check(ctx, dc_done(level)));
        TSVD_TRY(backend->dc_merge(ctx, job, level, info));
    }
    TSVD_TRY(backend->dc_finish(ctx, job, info));
out:
    if (ret == TSVD_ERR_NO_CONVERGENCE) {
        (void)tsvdi_fail(
            ctx->error, ret,
            "dc: the QR iteration of a leaf did not converge within its usual bound on "
            "sweeps; use method=\"qr\" with a larger max_sweeps");
    }
    backend->dc_end(ctx, job);
    tsvdi_host_free(job->tree.node);
    return ret;
}
