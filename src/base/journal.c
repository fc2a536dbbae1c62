/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fault.h"

#define JOURNAL_SOCKET "run/systemd/journal/socket"
/* A message, a name and the names of the fields. */
#define DATAGRAM_MAX 2048

/* Set before threads start. */
static int journal_fd = -1;

bool wss_journal_has_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void wss_journal_open(void)
{
	if (journal_fd < 0)
		journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

bool wss_journal_send(int priority, const char *text, const char *name, const char *uuid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char datagram[DATAGRAM_MAX];
	int len;

	len = snprintf(address.sun_path, sizeof(address.sun_path), "%s/" JOURNAL_SOCKET,
		       wss_test_sysroot());
	if (journal_fd < 0 || len < 0 || (size_t)len >= sizeof(address.sun_path))
		return false;
	len = snprintf(
		datagram, sizeof(datagram),
		"PRIORITY=%d\nSYSLOG_IDENTIFIER=virt-wss\nDOMAIN_NAME=%s\n%s%s%sMESSAGE=%s\n",
		priority, name, uuid[0] ? "DOMAIN_UUID=" : "", uuid, uuid[0] ? "\n" : "", text);
	return len > 0 && (size_t)len < sizeof(datagram) &&
	       sendto(journal_fd, datagram, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT,
		      (const struct sockaddr *)&address, sizeof(address)) == len;
}
