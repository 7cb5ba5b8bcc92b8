/* fault.c - counters for fault.h; empty outside test builds. */
#include "base/fault.h"

#ifdef TRAWL_FAULTS
#include <stdatomic.h>

static atomic_int left[FAULT_KINDS]; /* 0: not armed; n: the nth call from now fails */
static atomic_bool fired[FAULT_KINDS];

void fault_arm(enum fault_kind kind, int nth)
{
    atomic_store(&fired[kind], false);
    atomic_store(&left[kind], nth);
}

bool fault_disarm(enum fault_kind kind)
{
    atomic_store(&left[kind], 0);
    return atomic_load(&fired[kind]);
}

bool fault_hit(enum fault_kind kind)
{
    if (atomic_load(&left[kind]) == 0 || atomic_fetch_sub(&left[kind], 1) != 1)
        return false;
    atomic_store(&fired[kind], true);
    return true;
}
#endif
