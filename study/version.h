/* version.h - which build this is, and the largest text that it makes. Constants. */
#pragma once

/* version.c: "0.1.0", "abc1234", "trawl 0.1.0 (abc1234)" */
extern const char program_version[], program_commit[], program_text[];

#define OUTPUT_MAX_BYTES (256u << 20) /* of any text we build: reports, listings */
