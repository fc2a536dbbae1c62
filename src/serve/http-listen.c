/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#define UNIX_PREFIX "unix:"
#define SOCKET_MODE 0660
/*
 * What the kernel keeps of an answer for a client that reads slowly: by itself it grows to 4 MiB for each, and all
 * together to all memory that the host has for TCP.
 */
#define SEND_BYTES (128 << 10)
/* First descriptor that a service manager passes: sd_listen_fds(3). */
#define ACTIVATED_FIRST_FD 3
#define ACTIVATED_MAX 1000

/* POSIX allows this conversion for every type of socket address. */
static struct sockaddr *address_any(struct wss_http_address *address)
{
	return (struct sockaddr *)&address->addr;
}

void wss_http_address_format(const struct wss_http_address *address, char *ret_text)
{
	const struct sockaddr_in6 *in6 = (const void *)&address->addr;
	const struct sockaddr_in *in = (const void *)&address->addr;
	const struct sockaddr_un *un = (const void *)&address->addr;
	char host[INET6_ADDRSTRLEN] = "";

	switch (address->addr.ss_family) {
	case AF_UNIX:
		snprintf(ret_text, WSS_HTTP_ADDRESS_TEXT_MAX, UNIX_PREFIX "%.*s",
			 (int)sizeof(un->sun_path), un->sun_path);
		break;
	case AF_INET:
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(ret_text, WSS_HTTP_ADDRESS_TEXT_MAX, "%s:%u", host, ntohs(in->sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(ret_text, WSS_HTTP_ADDRESS_TEXT_MAX, "[%s]:%u", host,
			 ntohs(in6->sin6_port));
		break;
	default:
		snprintf(ret_text, WSS_HTTP_ADDRESS_TEXT_MAX, "address family %d",
			 address->addr.ss_family);
		break;
	}
}

static bool address_is_local(const struct wss_http_address *address)
{
	const struct sockaddr_in6 *in6 = (const void *)&address->addr;
	const struct sockaddr_in *in = (const void *)&address->addr;

	switch (address->addr.ss_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	default:
		return false;
	}
}

static int address_parse_unix(const char *path, const char *what, struct wss_http_address *address,
			      struct wss_error *err)
{
	struct sockaddr_un *un = (void *)&address->addr;

	if (!*path)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: unix: lacks the path of the socket",
				     what);
	if (strlen(path) >= sizeof(un->sun_path))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: the path of a UNIX socket has at most %zu bytes", what,
				     sizeof(un->sun_path) - 1);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path) + 1);
	address->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
	return 0;
}

/* Sets all but the port; false if host is no numeric address. */
static bool address_parse_host(const char *host, struct wss_http_address *address)
{
	struct sockaddr_in6 *in6 = (void *)&address->addr;
	struct sockaddr_in *in = (void *)&address->addr;
	char inner[INET6_ADDRSTRLEN + 2];
	size_t len = strlen(host);

	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		address->len = sizeof(*in);
		return true;
	}
	if (len < 3 || len > sizeof(inner) || host[0] != '[' || host[len - 1] != ']')
		return false;
	snprintf(inner, sizeof(inner), "%.*s", (int)len - 2, host + 1);
	if (inet_pton(AF_INET6, inner, &in6->sin6_addr) != 1)
		return false;
	in6->sin6_family = AF_INET6;
	address->len = sizeof(*in6);
	return true;
}

int wss_http_address_parse(const char *text, const char *what, struct wss_http_address *ret_address,
			   struct wss_error *err)
{
	struct wss_http_address address = {.len = 0};
	const char *colon = strrchr(text, ':');
	char host[WSS_HTTP_ADDRESS_TEXT_MAX];
	uint64_t port;

	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX))) {
		if (address_parse_unix(text + strlen(UNIX_PREFIX), what, &address, err) < 0)
			return -1;
		*ret_address = address;
		return 0;
	}
	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - text) : 0, text);
	if (!address_parse_host(host, &address))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is not an address: use unix:PATH, "
				     "127.0.0.1:PORT or [::1]:PORT",
				     what, text);
	if (!address_is_local(&address))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: other hosts reach %s: use unix:PATH, 127.0.0.1:PORT or "
				     "[::1]:PORT",
				     what, host);
	if (wss_number_parse(colon + 1, 0, UINT16_MAX, what, &port, err) < 0)
		return -1;
	/* Both families have their port at the same place. */
	((struct sockaddr_in *)(void *)&address.addr)->sin_port = htons((uint16_t)port);
	*ret_address = address;
	return 0;
}

/* Whether the file is a socket of ours on which nobody listens. */
static bool socket_is_stale(struct wss_http_address *address)
{
	const struct sockaddr_un *un = (const void *)&address->addr;
	wss_auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	return fd >= 0 && lstat(un->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_uid == geteuid() && connect(fd, address_any(address), address->len) < 0 &&
	       errno == ECONNREFUSED;
}

/* Holds for the connections, too. UNIX sockets have a limit of their own. */
static void listener_limit(int fd)
{
	const int bytes = SEND_BYTES;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static int listener_bind(int fd, struct wss_http_address *address)
{
	const struct sockaddr_un *un = (const void *)&address->addr;

	if (bind(fd, address_any(address), address->len) == 0)
		return 0;
	if (errno != EADDRINUSE || address->addr.ss_family != AF_UNIX ||
	    !socket_is_stale(address)) {
		/* connect() has another reason. */
		errno = errno == ECONNREFUSED || errno == EAGAIN ? EADDRINUSE : errno;
		return -1;
	}
	unlink(un->sun_path);
	return bind(fd, address_any(address), address->len);
}

/* Sets the mode before listen(), because nobody can connect until then. */
static int listener_open_file(struct wss_http_listener *listener, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -1;
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	return fchmodat(AT_FDCWD, path, SOCKET_MODE, AT_SYMLINK_NOFOLLOW);
}

/* Resolves the links in the directory of a UNIX socket, which must be private. */
static int address_resolve(struct wss_http_address *address, struct wss_error *err)
{
	struct sockaddr_un *un = (void *)&address->addr;
	wss_auto_free char *path = NULL;

	if (address->addr.ss_family != AF_UNIX)
		return 0;
	if (wss_place_resolve_private(un->sun_path, &path, err) < 0)
		return -1;
	return address_parse_unix(path, "without links", address, err);
}

static int error_no_socket(const char *name, mode_t mode, struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_FAILED,
			     "cannot listen at %s: it is a %s, not a UNIX socket", name,
			     wss_file_kind(mode));
}

static int address_check_file(const char *path, const char *name, struct wss_error *err)
{
	wss_auto_free char *directory = strndup(path, (size_t)(strrchr(path, '/') - path) + 1);
	struct stat st;

	if (!directory)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (access(directory, W_OK | X_OK) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot listen at %s: cannot write to its directory", name);
	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return error_no_socket(name, st.st_mode, err);
	if (st.st_uid != geteuid())
		return wss_error_errno(err, WSS_ERR_BUSY, EADDRINUSE, "cannot listen at %s", name);
	return 0;
}

int wss_http_listen_check(const struct wss_http_address *address, struct wss_error *err)
{
	struct wss_http_address own = *address;
	const struct sockaddr_un *un = (const void *)&own.addr;
	char name[WSS_HTTP_ADDRESS_TEXT_MAX];
	wss_auto_close int fd = -1;

	wss_http_address_format(&own, name);
	if (address_resolve(&own, err) < 0)
		return wss_error_prefix(err, "cannot listen at %s", name);
	if (own.addr.ss_family == AF_UNIX)
		return address_check_file(un->sun_path, name, err);
	/* Its own port may be the running service's; both families have it at the same place. */
	((struct sockaddr_in *)(void *)&own.addr)->sin_port = 0;
	fd = socket(own.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, address_any(&own), own.len) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot listen at %s", name);
	return 0;
}

int wss_http_listen(const struct wss_http_address *address, struct wss_http_listener *ret_listener,
		    struct wss_error *err)
{
	struct wss_http_listener listener = {.fd = -1, .address = *address};
	struct wss_http_address *own = &listener.address;
	const struct sockaddr_un *un = (const void *)&own->addr;
	const int on = 1;
	struct stat st;
	int r;

	wss_http_address_format(own, listener.name);
	if (address_resolve(own, err) < 0)
		return wss_error_prefix(err, "cannot listen at %s", listener.name);
	listener.fd = socket(own->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener.fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot listen at %s",
				       listener.name);
	listener_limit(listener.fd);
	if (own->addr.ss_family != AF_UNIX)
		setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	r = listener_bind(listener.fd, own);
	listener.made = r == 0;
	if (r == 0 && own->addr.ss_family == AF_UNIX)
		r = listener_open_file(&listener, un->sun_path);
	if (r < 0 || listen(listener.fd, SOMAXCONN) < 0) {
		if (errno == EADDRINUSE && own->addr.ss_family == AF_UNIX &&
		    lstat(un->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode))
			error_no_socket(listener.name, st.st_mode, err);
		else
			wss_error_errno(err, errno == EADDRINUSE ? WSS_ERR_BUSY : WSS_ERR_FAILED,
					errno, "cannot listen at %s", listener.name);
		wss_http_listener_close(&listener);
		return -1;
	}
	/* Now it has its port. */
	if (own->addr.ss_family != AF_UNIX) {
		own->len = sizeof(own->addr);
		if (getsockname(listener.fd, address_any(own), &own->len) == 0)
			wss_http_address_format(own, listener.name);
	}
	*ret_listener = listener;
	return 0;
}

static uint64_t activated_count(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t number, n = 0;

	if (pid && fds && wss_number_parse(pid, 1, INT32_MAX, "LISTEN_PID", &number, NULL) == 0 &&
	    number == (uint64_t)getpid())
		wss_number_parse(fds, 0, ACTIVATED_MAX, "LISTEN_FDS", &n, NULL);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return n;
}

static int listener_adopt(int fd, struct wss_http_listener *ret_listener, struct wss_error *err)
{
	struct wss_http_address address = {.len = sizeof(address.addr)};
	struct wss_http_listener listener = {.fd = fd};
	socklen_t type_len = sizeof(int), listens_len = sizeof(int);
	int type = 0, listens = 0;

	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 || type != SOCK_STREAM ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) < 0 || !listens ||
	    getsockname(fd, address_any(&address), &address.len) < 0)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "descriptor %d of LISTEN_FDS is not a listening stream socket",
				     fd);
	wss_http_address_format(&address, listener.name);
	if (!address_is_local(&address))
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"other hosts reach %s of LISTEN_FDS: pass a UNIX socket, or one "
			"at 127.0.0.1 or [::1]",
			listener.name);
	listener_limit(fd);
	*ret_listener = listener;
	return 0;
}

int wss_http_listen_activated(struct wss_http_listener *ret_listeners, size_t max, size_t *ret_n,
			      struct wss_error *err)
{
	uint64_t n = activated_count();

	if (n > max)
		return wss_error_set(err, WSS_ERR_USAGE, "LISTEN_FDS: %zu sockets at most", max);
	for (size_t i = 0; i < n; i++)
		if (listener_adopt(ACTIVATED_FIRST_FD + (int)i, &ret_listeners[i], err) < 0)
			return -1;
	*ret_n = (size_t)n;
	return 0;
}

bool wss_http_listener_works(const struct wss_http_listener *listener)
{
	struct pollfd pfd = {.fd = listener->fd, .events = POLLIN | POLLRDHUP};

	return listener->fd >= 0 && poll(&pfd, 1, 0) >= 0 && !(pfd.revents & ~POLLIN);
}

bool wss_http_listener_is_passed(const struct wss_http_listener *listener)
{
	return !listener->address.len;
}

int wss_http_listen_again(struct wss_http_listener *listener, struct wss_error *err)
{
	bool passed = wss_http_listener_is_passed(listener);
	struct wss_http_listener again;

	if (passed && listener->fd < 0)
		return -1;
	if (passed) {
		wss_http_listener_close(listener);
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"%s no longer listens, nor does the service manager's own copy: restart the unit that "
			"passed it (systemctl restart virt-wss.socket)",
			listener->name);
	}
	/* Also for whoever else has it. */
	if (listener->fd >= 0)
		shutdown(listener->fd, SHUT_RDWR);
	if (wss_http_listen(&listener->address, &again, err) < 0) {
		/* A port below 1024, say: the old socket can listen again, if it is not a UNIX socket. */
		if (listener->fd >= 0 && listen(listener->fd, SOMAXCONN) == 0 &&
		    wss_http_listener_works(listener))
			return 0;
		wss_http_listener_close(listener);
		return -1;
	}
	snprintf(again.name, sizeof(again.name), "%s", listener->name);
	if (listener->fd >= 0)
		close(listener->fd);
	*listener = again;
	return 0;
}

void wss_http_listener_close(struct wss_http_listener *listener)
{
	const struct sockaddr_un *un = (const void *)&listener->address.addr;
	struct stat st;

	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	if (listener->made && un->sun_family == AF_UNIX && lstat(un->sun_path, &st) == 0 &&
	    st.st_dev == listener->dev && st.st_ino == listener->ino)
		unlink(un->sun_path);
	listener->made = false;
}
