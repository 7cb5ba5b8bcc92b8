/* base.h - what nearly every file needs: the usual headers of C, status and error, memory, log, clock, and for texts
 * growing strings, numbers and words. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/os/clock.h"
#include "base/status.h"
#include "base/text/num.h"
#include "base/text/strbuf.h"
#include "base/text/words.h"
