/* standby.c - waits for the lock of a store in PostgreSQL; another that waits too may be faster. */
#include "sweep/control/standby.h"

#include "base/log.h"
#include "store/store.h"
#include "sweep/signals.h"

enum status standby_open(struct store **ret_store, const char *path, struct error *err)
{
    struct error why = {0};
    enum status rc = ST_BUSY;

    while (rc == ST_BUSY) {
        TRY(store_stand_by(path, signals_stop, err));
        error_clear(&why);
        rc = store_open_writer(ret_store, path, &why);
    }
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", why.text);
    log_info("%s: its controller has ended; this one continues its studies", path);
    return ST_OK;
}
