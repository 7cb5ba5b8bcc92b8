/* remote_devices.h - the words of sweep.devices that mean workers on other machines. Pure, but for
 * remote_devices_expand, which asks the hosts. A wrong word is ST_CONFIG and names the option. */
#pragma once

#include "base/base.h"

struct devices;
struct strbuf;
struct sweep_settings;

/* "ssh:...", "slurm..." or "cmd...". The text of a command ends only with the option. */
bool remote_devices_is_word(const char *text);
bool remote_devices_is_command(const char *text); /* "cmd:..." or "cmd*4:..." */
enum status remote_devices_add(struct devices *devices, const char *word, const struct sweep_settings *settings,
                               struct error *err) MUST_USE;
/* Adds "KEY=VALUE/KEY=VALUE" (changed) as options of srun or sbatch; option: for messages. *ret_gpu: gpu=1 is among
 * them. */
enum status slurm_options_read(char *text, const char *option, struct strbuf *sb, bool *ret_gpu,
                               struct error *err) MUST_USE;
/* Asks each host that is to give all its devices how many GPUs it has, and replaces its entry. A host that does not
 * answer keeps one worker, for when it does. Waits for up to a minute. */
enum status remote_devices_expand(struct devices *devices, const struct sweep_settings *settings,
                                  struct error *err) MUST_USE;
