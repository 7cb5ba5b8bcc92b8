/* plan.c - device tensors are listed, summed with overflow checks, compared with what the device has, and only then
 * allocated, so that absurd settings cost a message and not a machine.
 * Invariants: total is the sum of all items or SIZE_MAX; after plan_alloc failed, what it had got is still listed and
 * plan_free returns it. */
#include "trainer/trainer_priv.h"

void plan_add(struct plan *plan, void *slot, const char *what, size_t size, size_t a, size_t b, size_t c)
{
    size_t bytes = size, factors[3] = {a, b, c};

    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(bytes, factors[i], &bytes))
            bytes = SIZE_MAX;
    if (__builtin_add_overflow(plan->total, bytes, &plan->total))
        plan->total = SIZE_MAX;
    if (slot == NULL)
        return;
    if (plan->n == PLAN_MAX_ITEMS) { /* cannot happen with POLICY_MAX_LAYERS; refuse everything if it does */
        plan->total = SIZE_MAX;
        return;
    }
    plan->items[plan->n++] = (struct plan_item){.slot = slot, .bytes = bytes, .what = what};
}

void plan_format_bytes(size_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double x = (double)bytes;
    size_t u = 0;

    if (bytes == SIZE_MAX) {
        snprintf(buf, size, "more bytes than can be counted");
        return;
    }
    while (x >= 999.5 && u + 1 < COUNT(units)) {
        x /= 1000.0;
        u++;
    }
    snprintf(buf, size, "%.3g %s", x, units[u]);
}

bool plan_fits(const struct plan *plan, const struct kern *kern)
{
    size_t memory = kern_memory_bytes(kern);
    return plan->total != SIZE_MAX &&
           (memory == 0 || plan->total <= memory); /* 0: not known, the allocator will report it */
}

bool plan_could_fit(const struct plan *plan, const struct kern *kern)
{
    return plan->total <= kern_memory_total_bytes(kern);
}

enum status plan_check(const struct plan *plan, const struct kern *kern, const char *lower, struct error *err)
{
    size_t memory = kern_memory_bytes(kern);
    const struct plan_item *most = &plan->items[0];
    char need[48], has[48], part[48];

    if (plan_fits(plan, kern))
        return ST_OK;
    for (size_t i = 1; i < plan->n; i++)
        if (plan->items[i].bytes > most->bytes)
            most = &plan->items[i];
    plan_format_bytes(plan->total, need, sizeof need);
    plan_format_bytes(memory, has, sizeof has);
    plan_format_bytes(most->bytes, part, sizeof part);
    return FAIL(err, ST_NOMEM, "this needs %s (%s for %s), %s has %s%s; lower %s", need, part,
                plan->n > 0 ? most->what : "games", kern_device_name(kern), has,
                kern_kind(kern) == KERN_CUDA ? " free" : "", lower);
}

enum status plan_alloc(struct plan *plan, struct kern *kern, struct error *err)
{
    for (size_t i = 0; i < plan->n; i++) {
        struct plan_item *item = &plan->items[i];
        TRY(kern_alloc(kern, &item->mem, item->bytes, item->what, err));
        memcpy(item->slot, &item->mem, sizeof item->mem);
    }
    return ST_OK;
}

void plan_free(struct plan *plan, struct kern *kern)
{
    for (size_t i = plan->n; i-- > 0;)
        kern_free(kern, plan->items[i].mem);
    plan->n = 0;
}

void plan_clear(const struct plan *plan, struct kern *kern)
{
    for (size_t i = 0; i < plan->n; i++)
        kern_ops(kern)->zero(kern, plan->items[i].mem, plan->items[i].bytes);
}
