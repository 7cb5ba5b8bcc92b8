/* machine.h - what the operating system says of this machine. */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stddef.h>

size_t machine_cores(void); /* that this process may use, at least 1 */
size_t machine_memory_bytes(void); /* physical; 0 if unknown. For "this does not fit" before allocating */
size_t machine_resident_bytes(void); /* of this process; 0 if unknown */
/* The processor's model name, "unknown processor" when the system does not tell. */
void machine_cpu_name(char *ret_name, size_t size);

#endif
