/* fault.h - fault injection for tests: the nth allocation, write, fsync or fork from now on fails once.
 * Compiled in when TRAWL_FAULTS is defined (test builds); otherwise fault_hit is a constant false.
 * Armed and counted per process; not meant for several threads arming at a time. */
#pragma once

#include <stdbool.h>

enum fault_kind { FAULT_MALLOC, FAULT_TRY_MALLOC, FAULT_WRITE, FAULT_FSYNC, FAULT_FORK, FAULT_KINDS };

#ifdef TRAWL_FAULTS
void fault_arm(enum fault_kind kind, int nth); /* nth >= 1 */
bool fault_disarm(enum fault_kind kind); /* did it fire since fault_arm? */
bool fault_hit(enum fault_kind kind); /* called by the code under test: fail now? */
#else
static inline bool fault_hit(enum fault_kind kind)
{
    (void)kind;
    return false;
}
#endif
