/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the process at the other end of a QMP socket: children of this program listen, accept,
 * fork, and pretend.
 */
#include "hosttest.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "host/qmppeer.h"
#include "qmp/client.h"

#define SERVE "--serve"
#define UUID_NONE NULL

/* How a child serves. */
#define PLAINLY "plainly" /* it listens and accepts by itself */
#define BY_CHILD "child"  /* it listens, a child of it accepts and the listener exits */

static struct wss_root host_root;
static char *tree;
static char qemu[PATH_MAX], other[PATH_MAX], socket_path[PATH_MAX];

static int set_up(void **unused)
{
	assert_int_equal(wss_root_open("/", &host_root, NULL), 0);
	tree = make_tree();
	copy_self(tree, "qemu-system-test");
	copy_self(tree, "harmless");
	make_path(qemu, "%s/qemu-system-test", tree);
	make_path(other, "%s/harmless", tree);
	make_path(socket_path, "%s/a,b", tree);
	return 0;
}

static int tear_down(void **unused)
{
	wss_root_close(&host_root);
	remove_tree(tree);
	return 0;
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	return address;
}

static int listen_at(const char *path)
{
	const struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 5) < 0)
		return -1;
	return fd;
}

static void say(const char *what)
{
	if (write(STDOUT_FILENO, what, 1) != 1)
		_exit(1);
}

/*
 * main() of a child: serves one connection, and reports when it listens and when it has
 * accepted.
 */
static int serve(const char *path, const char *how)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = listen_at(path);
	if (fd < 0)
		return 1;
	say("l");
	if (strcmp(how, PLAINLY) != 0 && fork() > 0)
		_exit(0);
	if (accept(fd, NULL, NULL) < 0)
		return 1;
	close(fd);
	say("a");
	/* Until the test closes the other end of this pipe. */
	return read(STDIN_FILENO, &fd, 1) < 0;
}

/* A child that serves, and our end of its connection. */
struct server {
	pid_t pid;
	int alive, said, fd; /* alive: closed, it ends */
	struct qmp_peer peer;
};

static char wait_word(int fd)
{
	char c = 0;

	return read(fd, &c, 1) == 1 ? c : 0;
}

static int connect_to(const char *path)
{
	const struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Runs exe, which serves; uuid (or NULL) and one option with its value are on its command line. */
static struct server start_server(const char *exe, const char *how, const char *uuid,
				  const char *option, const char *value)
{
	struct server server;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	server.pid = fork();
	if (server.pid == 0) {
		const char *argv[] = {"qemu-system-x86_64",  SERVE, socket_path, how, option, value,
				      uuid ? "-uuid" : NULL, uuid,  NULL};

		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execv(exe, (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	server.alive = in[1];
	server.said = out[0];
	assert_int_equal(wait_word(server.said), 'l');
	server.fd = connect_to(socket_path);
	assert_int_equal(wait_word(server.said), 'a');
	if (strcmp(how, PLAINLY) != 0)
		waitpid(server.pid, NULL, 0);
	qmp_peer_read(server.fd, &server.peer);
	assert_int_equal(server.peer.pid, server.pid);
	assert_int_equal(server.peer.uid, geteuid());
	assert_string_equal(server.peer.path, socket_path);
	return server;
}

static void end_server(struct server *server)
{
	close(server->alive);
	close(server->fd);
	/* Once the other end is closed everywhere, all serving processes have ended. */
	while (wait_word(server->said))
		;
	close(server->said);
	waitpid(server->pid, NULL, 0);
}

static pid_t hold(const struct qmp_peer *peer, const char *uuid, struct wss_error *err)
{
	struct wss_process process = WSS_PROCESS_INIT;
	pid_t pid;

	wss_error_clear(err);
	if (wss_qmppeer_hold(&host_root, peer, uuid, &process, err) < 0) {
		assert_int_equal(process.pidfd, -1);
		return 0;
	}
	assert_int_equal(wss_qmppeer_check(&process, peer, uuid, err), 0);
	pid = process.pid;
	wss_process_release(&process);
	return pid;
}

TEST(test_listener)
{
	struct server server = start_server(other, PLAINLY, UUID_A, "-name", "x");
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_peer peer = server.peer;

	/* CONFIG_UNIX_DIAG is in every kernel of Debian's. */
	assert_int_not_equal(server.peer.inode, 0);
	assert_int_equal(hold(&server.peer, UUID_A, &err), server.pid);
	assert_int_equal(hold(&server.peer, UUID_B, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "belongs to the guest " UUID_A);
	/* If another user listens, the process that was found is not that user's. */
	peer.uid = 4242;
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "user 4242");
	/* No process holds this socket. */
	peer = server.peer;
	peer.inode = 0xfffffffe;
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	assert_int_not_equal(err.code, WSS_OK);
	end_server(&server);
}

/* If the kernel does not report the socket, one that was accepted at our path counts. */
TEST(test_without_diag)
{
	struct server server = start_server(other, PLAINLY, UUID_A, "-name", "x");
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_peer peer = server.peer;
	char victim_path[PATH_MAX];
	pid_t victim;

	peer.inode = 0;
	assert_int_equal(hold(&peer, UUID_A, &err), server.pid);
	strcat(peer.path, "x");
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "does not hold the connection");
	peer.path[strlen(peer.path) - 2] = '\0';
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	peer.path[0] = '\0';
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	/* A process with the pid, the executable and the UUID, but without such a socket. */
	victim = start_qemu(qemu, UUID_A, make_path(victim_path, "%s", socket_path));
	peer = server.peer;
	peer.inode = 0;
	peer.pid = victim;
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "does not hold the connection");
	end_child(victim);
	end_server(&server);
}

/*
 * The listener has exited, and its pid belongs to nobody or to another process: neither is the
 * guest's.
 */
TEST(test_listener_exited)
{
	struct server server = start_server(qemu, BY_CHILD, UUID_A, "-name", "x");
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_peer peer = server.peer;
	pid_t victim;

	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_GONE, "no such process");
	/* As if the kernel had given the pid to a QEMU with the same UUID. */
	victim = start_qemu(qemu, UUID_A, NULL);
	peer.pid = victim;
	assert_int_equal(hold(&peer, UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "does not hold the connection");
	assert_int_equal(hold(&peer, UUID_NONE, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "does not hold the connection");
	end_child(victim);
	end_server(&server);
}

/* Command lines of a QEMU without a UUID, and whether each is accepted as the guest's. */
TEST(test_no_uuid)
{
	static const struct {
		const char *option, *format;
		bool accepted;
	} table[] = {
		{"-qmp", "unix:%s/a,,b,server=on,wait=off", true},
		{"--qmp", "unix:%s/a,,b", true},
		{"-qmp-pretty", "unix:%s/a,,b,server", true},
		{"-chardev", "socket,id=q,path=%s/a,,b,server=on", true},
		{"-chardev", "socket,path=%s/a,,b", true},
		{"-chardev", "socket,id=q,fd=0,server=on", false}, /* a pipe */
		{"-chardev", "socket,id=q,fd=77,server=on", false},
		{"-chardev", "socket,id=q,fd=", false},
		{"-chardev", "socket,id=nofd=3", false},
		{"-qmp", "unix:%s/a,,bc,server=on", false},
		{"-qmp", "unix:/other%s/a,,b,server=on", false},
		{"-qmp", "unix:%s/a", false},
		{"-name", "unix:%s/a,,b,server=on", false},
		{"qmp", "unix:%s/a,,b,server=on", false},
		{"-qmp", "", false},
	};
	struct wss_error err = WSS_ERROR_INIT;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char value[2 * PATH_MAX];
		struct server server;

		snprintf(value, sizeof(value), table[i].format, tree);
		server = start_server(qemu, PLAINLY, UUID_NONE, table[i].option, value);
		assert_int_equal(hold(&server.peer, UUID_NONE, &err),
				 table[i].accepted ? server.pid : 0);
		if (!table[i].accepted)
			assert_error(&err, WSS_ERR_FAILED, "no option of process");
		end_server(&server);
		if (!table[i].accepted)
			continue;
		/* The same words in a program that is not QEMU. */
		server = start_server(other, PLAINLY, UUID_NONE, table[i].option, value);
		assert_int_equal(hold(&server.peer, UUID_NONE, &err), 0);
		assert_error(&err, WSS_ERR_FAILED, "is not QEMU");
		end_server(&server);
	}
}

/* A process that exits while it is held no longer holds the other end. */
TEST(test_gone)
{
	struct server server = start_server(other, PLAINLY, UUID_A, "-name", "x");
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_qmppeer_hold(&host_root, &server.peer, UUID_A, &process, &err), 0);
	kill(server.pid, SIGKILL);
	end_server(&server);
	assert_int_equal(wss_qmppeer_check(&process, &server.peer, UUID_A, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "has exited");
	wss_process_release(&process);
}

/* With hidepid=invisible its directory is there, but nothing in it. */
TEST(test_hidden)
{
	const struct qmp_peer peer = {.pid = 78};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_process process;
	struct wss_root root;

	put_text(tree, "proc/self/mounts",
		 "proc /proc proc rw 0 0\nproc /proc proc rw,hidepid=invisible 0 0\n");
	put_text(tree, "proc/78/task/nothing", "");
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	assert_int_equal(wss_qmppeer_hold(&root, &peer, NULL, &process, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "hidepid=invisible,");
	wss_root_close(&root);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest skipped[] = {cmocka_unit_test(test_needs_pidfd)};

	if (argc > 3 && !strcmp(argv[1], SERVE))
		return serve(argv[2], argv[3]);
	if (argc > 1 && !strcmp(argv[1], PLAY_QEMU))
		return play_qemu();
	return have_pidfd() ? tests_run_within(set_up, tear_down)
			    : cmocka_run_group_tests(skipped, NULL, NULL);
}
