/* link.h - bytes between two processes, maybe on two machines, over TCP: a file descriptor, which its owner closes. A
 * peer that is gone, also one whose machine vanished, is noticed within LINK_DEAD_S. shutdown(fd, SHUT_RDWR) by another
 * thread ends a wait. */
#pragma once

#include "base/base.h"

#define LINK_DEAD_S 15

/* host NULL: every address of this machine; port 0: any free one. */
enum status link_listen(const char *host, int port, int *ret_fd, int *ret_port, struct error *err) MUST_USE;
/* *ret_fd is -1 if nobody came within wait_s. */
enum status link_accept(int listener, double wait_s, int *ret_fd, struct error *err) MUST_USE;
enum status link_connect(const char *host, int port, double wait_s, int *ret_fd, struct error *err) MUST_USE;
/* All n bytes, however long it takes. ST_IO: the peer has ended or is gone. */
enum status link_send(int fd, const void *bytes, size_t n, struct error *err) MUST_USE;
enum status link_receive(int fd, void *bytes, size_t n, struct error *err) MUST_USE;
void link_set_patience(int fd, double seconds); /* of one wait of link_receive; 0: for ever, as at first */
bool link_has_news(int fd, double wait_s); /* bytes, or its end */
