/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

/* Room for one socket's answer: the message and a few bytes of attributes. */
#define ANSWER_BYTES 4096

struct diag_request {
	struct nlmsghdr header;
	struct unix_diag_req unix_socket;
};

static int diag_send_request(int netlink, uint32_t inode)
{
	const struct diag_request request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST},
		.unix_socket = {.sdiag_family = AF_UNIX,
				.udiag_states = ~0U,
				.udiag_ino = inode,
				.udiag_show = UDIAG_SHOW_PEER,
				.udiag_cookie = {~0U, ~0U}}, /* no cookie */
	};
	ssize_t n;

	do
		n = send(netlink, &request, sizeof(request), 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(request) ? 0 : -1;
}

/*
 * Extracts the peer's inode from the kernel's answer about the socket with that inode; 0 if it
 * has none.
 */
static uint32_t diag_parse_peer(const struct nlmsghdr *header, size_t len, uint32_t inode)
{
	const struct unix_diag_msg *message = NLMSG_DATA(header);
	struct rtattr *attribute;
	uint32_t peer = 0;
	int left;

	if (!NLMSG_OK(header, len) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    header->nlmsg_len < NLMSG_LENGTH(sizeof(*message)) || message->udiag_ino != inode)
		return 0;
	left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)));
	attribute = (struct rtattr *)((char *)NLMSG_DATA(header) + NLMSG_ALIGN(sizeof(*message)));
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) >= sizeof(peer))
			memcpy(&peer, RTA_DATA(attribute), sizeof(peer));
	return peer;
}

/*
 * Returns the inode of the socket that ours is connected to. The kernel answers within send();
 * without unix_diag it answers with an error.
 */
static uint32_t read_peer_inode(int fd)
{
	wss_auto_close int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	union {
		struct nlmsghdr header;
		char bytes[ANSWER_BYTES];
	} answer;
	struct stat st;
	ssize_t n;

	if (netlink < 0 || fstat(fd, &st) < 0 ||
	    diag_send_request(netlink, (uint32_t)st.st_ino) < 0)
		return 0;
	do
		n = recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < (ssize_t)sizeof(answer.header)
		       ? 0
		       : diag_parse_peer(&answer.header, (size_t)n, (uint32_t)st.st_ino);
}

void qmp_peer_read(int fd, struct qmp_peer *ret_peer)
{
	struct sockaddr_un address = {.sun_path = ""};
	socklen_t address_len = sizeof(address);
	struct ucred cred;
	socklen_t len = sizeof(cred);

	memset(ret_peer, 0, sizeof(*ret_peer));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && len == sizeof(cred)) {
		ret_peer->pid = cred.pid;
		ret_peer->uid = cred.uid;
		ret_peer->gid = cred.gid;
	}
	if (getpeername(fd, (struct sockaddr *)&address, &address_len) == 0)
		memcpy(ret_peer->path, address.sun_path, sizeof(address.sun_path));
	ret_peer->inode = read_peer_inode(fd);
}
