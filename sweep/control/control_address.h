/* control_address.h - where the controller of a store listens. */
#ifndef SWEEP_CONTROL_CONTROL_ADDRESS_H
#define SWEEP_CONTROL_CONTROL_ADDRESS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/status.h"
#include "store/store.h"

#define CONTROL_ADDRESSES 3

struct control_address {
    struct sockaddr_un sun; /* with size: of an abstract name */
    socklen_t size;
    bool is_abstract; /* no file, so no mode: the peer's user is checked all the same */
    char path[PATH_MAX]; /* else the socket's file; maybe too long for a sockaddr_un */
    char text[128]; /* for people; '@' in front of an abstract name */
};
/* What bind and connect take, however long the path: *ret_folder (-1: none) is open until they are done, then the caller's to
 * close. False: errno says why. */
bool control_address_open(const struct control_address *address, struct sockaddr_un *ret_sun, socklen_t *ret_size,
                          int *ret_folder);
/* In the order to try: STORE.sock by the store's real path, unless its name alone is too long for a socket; a name made from
 * that path in $XDG_RUNTIME_DIR; the same as an abstract name. */
enum status control_addresses(const char *store_path, struct control_address ret_addresses[CONTROL_ADDRESSES],
                              size_t *ret_n, struct error *err) MUST_USE;

#endif
