/*
 * Divide and conquer on the CPU: z, deflation, and the numbering of slots before and after a
 * merge (dc.h).  Mirrors cuda/dc/deflate.cu.
 */
#include "cpu/dc/dc_run.h"

/* Finds z, scaled by the node's unit.  Returns the limits in the same unit. */
static struct dc_limits
find_z(const struct cpu_dc *run, const struct dc_node *node, struct dc_merge *merge)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = node->first, center = first + node->left, end = first + node->rows;
    const int has_null = node->columns > node->rows;
    real alpha = run->d[center], beta = run->e[center], largest, down;
    int exponent;

    largest = r_max(r_abs(alpha), r_abs(beta));
    for (int64_t j = first; j < end; j++) {
        largest = j != center ? r_max(largest, slot->value[j]) : largest;
    }
    exponent = dc_exponent(largest);
    merge->unit = r_pow2(exponent);
    down = r_pow2(-exponent);
    alpha *= down;
    beta *= down;
    for (int64_t j = first; j < center; j++) {
        slot->z[j] = slot->high[j] > center ? alpha * row_of(run, RIGHT, node, j)[center] : 0;
    }
    for (int64_t j = center + 1; j < end; j++) {
        slot->z[j] =
            slot->low[j] <= center + 1 ? beta * row_of(run, RIGHT, node, j)[center + 1] : 0;
    }
    merge->null_turn = rotation_make(
        alpha * row_of(run, RIGHT, node, center)[center],
        has_null ? beta * row_of(run, RIGHT, node, end)[center + 1] : 0, &slot->z[center]);
    return dc_limits_for(run->eps[node->matrix] * down, run->job->tree.levels, node->rows);
}

/* The threshold on |z|. */
static real
find_threshold(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit)
{
    const int64_t center = node->first + node->left;
    real dropped[DC_THRESHOLDS] = {0};

    for (int64_t j = node->first; j < node->first + node->rows; j++) {
        real z = r_abs(slot->z[j]), part = z / limit.z;

        for (int c = 0; c < DC_THRESHOLDS && j != center && z <= dc_candidate(limit, c); c++) {
            dropped[c] += part * part;
        }
    }
    return dc_threshold(limit, dropped);
}

/* Two ascending lists of slots become one. */
static void
merge_orders(const real *value, const int64_t *a, int64_t count_a, const int64_t *b,
             int64_t count_b, int64_t *merged)
{
    while (count_a > 0 || count_b > 0) {
        if (count_b == 0 || (count_a > 0 && value[*a] <= value[*b])) {
            *merged++ = *a++;
            count_a--;
        } else {
            *merged++ = *b++;
            count_b--;
        }
    }
}

/* Makes the list, and sets `deflated` of every slot that z deflates.  Returns how many entries of
   the list are close to the entry before. */
static int64_t
make_list(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit,
          real threshold, struct dc_merge *merge)
{
    const int64_t first = node->first, center = first + node->left;
    int64_t *ascending = slot->from + first, *list = slot->list + first, close = 0;
    const real down = 1 / merge->unit;

    merge_orders(slot->value, slot->order + first, node->left, slot->order + center + 1,
                 node->rows - node->left - 1, ascending);
    slot->value[center] = 0;
    slot->deflated[center] = 0;
    list[0] = center;
    merge->listed = 1;
    for (int64_t i = 0; i < node->rows - 1; i++) {
        const int64_t j = ascending[i], before = list[merge->listed - 1];

        slot->order[first + i] = j;
        slot->deflated[j] = r_abs(slot->z[j]) <= threshold;
        if (!slot->deflated[j]) {
            close += dc_close(limit, slot->value[before] * down, slot->value[j] * down);
            list[merge->listed++] = j;
        }
    }
    return close;
}

/* Lets list entries absorb those that follow. */
static void
absorb(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit,
       int64_t close, struct dc_merge *merge)
{
    const int64_t *list = slot->list + node->first;
    int64_t *head = slot->head + node->first, last = 0;
    struct dc_purse purse = dc_fill_purse(limit, close);
    const real down = 1 / merge->unit;

    head[0] = 0;
    merge->absorbed = 0;
    for (int64_t i = 1; i < merge->listed; i++) {
        const real d = slot->value[list[i]] * down;

        head[i] = i;
        if (!dc_close(limit, slot->value[list[i - 1]] * down, d)) {
            purse.left = 0;
            last = i;
        } else if (dc_absorb(limit, &purse, slot->value[list[last]] * down, d, &slot->z[list[last]],
                             &slot->z[list[i]], &slot->turn[node->first + i])) {
            head[i] = last;
            slot->deflated[list[i]] = 1;
            merge->absorbed++;
        } else {
            last = i;
        }
    }
}

/* Extends both vectors of slot j by zeros to the columns low .. high - 1.  The center has a vector
   on the right only. */
static void
widen(const struct cpu_dc *run, const struct dc_node *node, int64_t j, int64_t low, int64_t high)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t center = node->first + node->left;

    for (int side = 0; side < (j == center ? LEFT : SIDES); side++) {
        real *x = row_of(run, side, node, j);

        for (int64_t i = low; i < slot->low[j]; i++) {
            x[i] = 0;
        }
        for (int64_t i = slot->high[j]; i < high; i++) {
            x[i] = 0;
        }
    }
    slot->low[j] = low;
    slot->high[j] = high;
}

/* Rotates the null vectors of both children, in the center's slot and the node's null slot.  Then
   rotates the vectors of each absorbed slot with those of the slot that absorbed it. */
static void
turn_vectors(const struct cpu_dc *run, const struct dc_node *node, const struct dc_merge *merge)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = node->first, center = first + node->left, end = first + node->columns;
    const int64_t null = first + node->rows;

    slot->low[center] = first;
    slot->high[center] = center + 1;
    if (null < end) { /* the right child's null vector has no entry in slot->low */
        real *x = row_of(run, RIGHT, node, null);

        widen(run, node, center, first, end);
        for (int64_t i = first; i <= center; i++) {
            x[i] = 0;
        }
        tsvdi_kernels()->turn(end - first, merge->null_turn,
                              row_of(run, RIGHT, node, center) + first, x + first);
    }
    for (int64_t i = 1; i < merge->listed && merge->absorbed > 0; i++) {
        const int64_t a = slot->list[first + slot->head[first + i]], b = slot->list[first + i];
        const int64_t low = slot->low[a] < slot->low[b] ? slot->low[a] : slot->low[b];
        const int64_t high = slot->high[a] > slot->high[b] ? slot->high[a] : slot->high[b];

        if (a == b) {
            continue;
        }
        widen(run, node, a, low, high);
        widen(run, node, b, low, high);
        for (int side = 0; side < (a == center ? LEFT : SIDES); side++) {
            tsvdi_kernels()->turn(high - low, slot->turn[first + i],
                                  row_of(run, side, node, a) + low,
                                  row_of(run, side, node, b) + low);
        }
    }
}

/* Numbers survivors by value and by place. */
static void
number_survivors(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit,
                 struct dc_merge *merge)
{
    const int64_t first = node->first, center = first + node->left;
    const real down = 1 / merge->unit;
    int64_t survivors = 0, place[3] = {0, 0, 0};

    for (int64_t i = 0; i < merge->listed; i++) {
        const int64_t j = slot->list[first + i];

        if (slot->head[first + i] == i) {
            place[dc_group(slot->low[j], slot->high[j], center, j)]++;
            survivors++;
        }
    }
    merge->count = (struct dc_count){survivors, place[0], place[1], 0, survivors};
    if (survivors > 1 && r_abs(slot->z[center]) < limit.floor) {
        slot->z[center] = r_copysign(limit.floor, slot->z[center]);
    }
    place[2] = place[0] + place[1];
    place[1] = place[0];
    place[0] = 0;
    survivors = 0;
    for (int64_t i = 0; i < merge->listed; i++) {
        const int64_t j = slot->list[first + i];

        if (slot->head[first + i] == i) {
            int64_t p = place[dc_group(slot->low[j], slot->high[j], center, j)]++;

            slot->pole[first + survivors] = slot->value[j] * down;
            slot->square[first + survivors] = slot->z[j] * slot->z[j];
            slot->place[first + survivors++] = p;
            slot->source[first + p] = j;
            slot->placed_pole[first + p] = slot->value[j] * down;
            slot->placed_weight[first + p] = slot->z[j];
        }
    }
}

/* Finds the moves: the new vectors take the node's first slots, and deflated ones there make
   room. */
static void
find_moves(const struct dc_slots *slot, const struct dc_node *node, struct dc_merge *merge)
{
    const int64_t first = node->first, boundary = first + merge->count.survivors;
    int64_t to = boundary;

    merge->moves = 0;
    for (int64_t j = first; j < boundary; j++) {
        if (slot->deflated[j]) {
            while (slot->deflated[to]) {
                to++;
            }
            slot->from[first + merge->moves] = j;
            slot->to[first + merge->moves++] = to++;
        }
    }
}

void
tsvdi_cpu_dc_deflate(const struct cpu_dc *run, const struct dc_node *node, struct dc_merge *merge)
{
    const struct dc_limits limit = find_z(run, node, merge);
    const real threshold = find_threshold(&run->slot, node, limit);

    absorb(&run->slot, node, limit, make_list(&run->slot, node, limit, threshold, merge), merge);
    turn_vectors(run, node, merge);
    number_survivors(&run->slot, node, limit, merge);
    find_moves(&run->slot, node, merge);
}

/* Moves deflated vectors, with their values and ranges.  Survivors' rows may be overwritten, since
   DC_FACTORS has gathered them. */
static void
move_deflated(const struct cpu_dc *run, const struct dc_node *node, const struct dc_merge *merge)
{
    const struct dc_slots *slot = &run->slot;

    for (int64_t i = 0; i < merge->moves; i++) {
        const int64_t from = slot->from[node->first + i], to = slot->to[node->first + i];
        const int64_t low = slot->low[from], count = slot->high[from] - low;

        for (int side = 0; side < SIDES; side++) {
            memcpy(row_of(run, side, node, to) + low, row_of(run, side, node, from) + low,
                   (size_t)count * sizeof(real));
        }
        slot->value[to] = slot->value[from];
        slot->low[to] = slot->low[from];
        slot->high[to] = slot->high[from];
        slot->place[from] = to; /* where it went */
    }
}

/* Finds which of the new vectors of a root are wanted. */
static void
choose_wanted(const struct cpu_dc *run, const struct dc_node *node, struct dc_merge *merge)
{
    const int64_t end = node->rows - run->job->first, begin = end - run->job->k;
    struct dc_count *count = &merge->count;

    count->begin = count->end = 0;
    for (int64_t i = 0; i < end; i++) {
        const int fresh = run->slot.order[node->first + i] < node->first + count->survivors;

        count->begin += fresh && i < begin;
        count->end += fresh;
    }
}

void
tsvdi_cpu_dc_settle(const struct cpu_dc *run, const struct dc_node *node, struct dc_merge *merge)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = node->first, survivors = merge->count.survivors;
    int64_t *ascending = slot->list + first, *fresh = slot->source + first, others = 0;

    move_deflated(run, node, merge);
    for (int64_t i = 0; i < node->rows - 1; i++) {
        int64_t j = slot->order[first + i];

        if (slot->deflated[j]) {
            ascending[others++] = j < first + survivors ? slot->place[j] : j;
        }
    }
    for (int64_t i = 0; i < survivors; i++) {
        fresh[i] = first + i;
        slot->value[first + i] = (slot->base[first + i] + slot->tau[first + i]) * merge->unit;
        slot->low[first + i] = first;
        slot->high[first + i] = first + node->columns;
    }
    merge_orders(slot->value, fresh, survivors, ascending, others, slot->order + first);
    if (run->level == 0) {
        choose_wanted(run, node, merge);
    }
}
