/* control_address.h - where the controller of a store listens: the same addresses for server and client. Plain values,
 * nothing is owned; any thread. */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "store/store.h"

#define CONTROL_ADDRESSES 3

struct control_address {
    struct sockaddr_un sun; /* used with size for an abstract name */
    socklen_t size;
    bool is_abstract; /* no file, so no mode: the peer's user is checked all the same */
    char path[PATH_MAX]; /* otherwise the socket's file; may be too long for a sockaddr_un */
    char text[128]; /* for people; '@' in front of an abstract name */
};
/* Bind or connect a socket, however long the path is. False: errno has the reason. */
bool control_address_bind(const struct control_address *address, int fd);
bool control_address_connect(const struct control_address *address, int fd);
/* In the order to try: STORE.sock by the store's real path, unless its name alone is too long for a socket; a name made
 * from that path in $XDG_RUNTIME_DIR; the same as an abstract name. */
enum status control_addresses(const char *store_path, struct control_address ret_addresses[CONTROL_ADDRESSES],
                              size_t *ret_n, struct error *err) MUST_USE;
