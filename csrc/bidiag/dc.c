/*
 * Divide and conquer: the tree of subproblems and the walk from the leaves to the roots.  A back
 * end makes the operations of a level.  The mathematics is in math/dc.h and math/secular.h.
 */
#include "backend/method.h"
#include "bidiag/parts.h"

/* Columns of the left child: about half, a multiple of DC_ALIGN. */
static int64_t
left_columns(int64_t columns)
{
    return (columns / 2 + DC_ALIGN / 2) / DC_ALIGN * DC_ALIGN;
}

/* Fills the nodes of a tree with tree->levels levels below the root; returns the most columns of a
   leaf. */
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
    const int64_t leaf = ctx->plan->backend->dc->leaf_columns(n);
    tsvd_status ret = TSVD_OK;

    tree->levels = dc_halvings(n, leaf);
    do {
        tsvdi_free(ctx, tree->node);
        tree->node = NULL;
        TSVD_TRY(tsvdi_alloc(ctx, ((size_t)2 << tree->levels) * sizeof *tree->node,
                             (void **)&tree->node));
    } while (fill_tree(n, tree) > leaf && ++tree->levels);
out:
    return ret;
}

/* From the leaves to the roots. */
static tsvd_status
walk(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    const struct dc_ops *ops = ctx->plan->backend->dc;
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(make_tree(ctx, job->n, &job->tree));
    TSVD_TRY(ops->begin(ctx, job));
    TSVD_TRY(ops->leaves(ctx, job));
    info->seconds_iterate += tsvdi_host_seconds() - clock;
    for (int level = job->tree.levels - 1; level >= 0; level--) {
        TSVD_TRY(tsvdi_check(ctx, dc_done(level)));
        TSVD_TRY(ops->merge(ctx, job, level, info));
    }
    TSVD_TRY(ops->finish(ctx, job, info));
out:
    ops->end(ctx, job);
    tsvdi_free(ctx, job->tree.node);
    return ret;
}

static tsvd_status
run(struct tsvd_context *ctx, const struct chunk *chunk, struct results to, tsvd_info *info)
{
    const struct svd_problem *p = ctx->problem;
    const struct vectors_ops *ops = ctx->plan->backend->vectors;
    /* If e is the sub-diagonal, the transpose is decomposed: L and R change roles. */
    const int lower = ctx->options->lower;
    struct dc_job job = {.n = p->n,
                         .count = chunk->count,
                         .first = p->first,
                         .k = p->k,
                         .chunk = chunk,
                         .eps = tsvdi_eps(ctx),
                         .s = to.s,
                         .to = to};
    struct vectors left, right;
    double clock;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(ops->begin(ctx, p->n, p->k, chunk->count, to, &left, &right));
    job.right = lower ? left : right;
    job.left = lower ? right : left;
    TSVD_TRY(walk(ctx, &job, info));
    clock = tsvdi_host_seconds();
    if (!job.delivered) {
        TSVD_TRY(ops->end(ctx, left, right, to));
    }
    info->seconds_vectors += tsvdi_host_seconds() - clock;
out:
    ops->free(ctx, &left, &right);
    if (ret == TSVD_ERR_NO_CONVERGENCE) {
        tsvdi_blame(ctx, ctx->index + job.failed);
        tsvdi_advise(ctx->error, "use TSVD_METHOD_QR with a larger options.max_sweeps");
        (void)tsvdi_fail(ctx->error, ret,
                         "dc: the QR iteration of a leaf did not converge within its usual bound "
                         "on sweeps");
    }
    return ret;
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    const struct dc_ops *ops = plan->backend->dc;
    const int levels = dc_halvings(plan->reported.n, ops->leaf_columns(plan->reported.n));
    struct bytes own = ops->bytes(plan);
    struct bytes tree = {0, 0};

    tree.host = bytes_of((int64_t)2 << (levels + 1), sizeof(struct dc_node));
    own = bytes_sum(own, tree);
    own = bytes_sum(own, plan->backend->vectors->begin_bytes(plan));
    return bytes_sum(own, plan->backend->values->bytes(plan));
}

const struct method tsvdi_method_dc = {
    .number = TSVD_METHOD_DC,
    .name = "dc",
    .faster_on_device = FASTER_VALUES | FASTER_VECTORS,
    .with_vectors = 1,
    .part_vectors = 1,
    .batches = 1,
    .needs = NEEDS_DC | NEEDS_VECTORS,
    .run = run,
    .bytes = bytes,
};
