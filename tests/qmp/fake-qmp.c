/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A QMP server for tests that follows a script.
 *
 *	fake-qmp [-v] SOCKET SCRIPT [ARGUMENT…]
 *
 * Listens on SOCKET, prints "ready SOCKET PID" on stdout, then serves one client at a time,
 * as QEMU does, until it is killed or its parent dies. -v prints each command on stderr.
 * More arguments are QEMU's: for what looks for "-uuid UUID" in the command line, and the built-in
 * replies say whether they, or a file that "-readconfig" names, encrypt the guest.
 *
 * A script is text, one item a line; blank lines and lines that start with # are skipped:
 *
 *	set uuid|name|status|kvm|balloon|version VALUE
 *	                        values in the built-in replies (kvm on|off, balloon BYTES)
 *	ram MIB TOUCH_MIB [memfd|anonymous]
 *	                        hold that much memory, all of it written once, and keep
 *	                        touching the first TOUCH_MIB: a guest to measure
 *	fork                    the process that listens forks and exits, its child serves; the
 *				child ends with the test's pid namespace, or must be ended
 *	connect                 starts the actions that replace the greeting
 *	on COMMAND              starts the actions for a command; the second section of the
 *	                        same name is for its second call and so on, the last repeats;
 *	                        "on *" is for commands without a section of their own;
 *	                        "on qom-get" is for the machine's type, "on qom-get PROPERTY"
 *	                        for another property
 *
 * and the actions, done in this order when the client connects or sends the command:
 *
 *	default                 the built-in greeting or reply (also where there is no section)
 *	return JSON             {"return": JSON, "id": ID}
 *	error CLASS TEXT        {"error": …, "id": ID}
 *	event NAME [JSON]       an event, with its data
 *	events N                N events FLOOD
 *	flood                   events FLOOD until the client leaves
 *	line TEXT               TEXT and \r\n; in TEXT \n \r \t \\ \0 \xHH are bytes and %ID%
 *	                        is the id of the command
 *	raw TEXT                the same without the end of line
 *	huge MIB                a reply of that size
 *	deep N                  a reply with N nested arrays
 *	delay MS                wait
 *	split N [MS]            from now on send N bytes at a time, MS apart
 *	close                   close the connection
 *	end MS                  close the connection, and end that much later
 *	owe                     send the reply to the next client, before its first one, as QEMU does
 *				if a client has gone meanwhile
 *	hang                    do nothing more until the client leaves
 *
 * An empty section is silence: the next command is served normally.
 */
#include "fake-qmp.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 65536

struct client {
	struct fake_script *script;
	int fd;
	size_t split_bytes; /* 0: all at once */
	long split_ms;
	char command[FAKE_COMMAND_MAX];
	char id[128]; /* as JSON */
};

/* The id of a command whose reply goes to the next client, "": there is none. */
static char owed_id[128];

void fake_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("fake-qmp: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

/* Returns false if the client has gone. */
static bool send_bytes(struct client *c, const char *text, size_t len)
{
	while (len) {
		size_t piece = c->split_bytes && c->split_bytes < len ? c->split_bytes : len;
		ssize_t n = send(c->fd, text, piece, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		text += n;
		len -= (size_t)n;
		if (c->split_bytes && len)
			pause_ms(c->split_ms);
	}
	return true;
}

static bool send_line(struct client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool send_line(struct client *c, const char *fmt, ...)
{
	va_list ap;
	char *text;
	bool sent;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		fake_die("out of memory");
	/* In one write, so that "split" and a reader see it as QEMU would send it. */
	text = realloc(text, (size_t)len + 3);
	if (!text)
		fake_die("out of memory");
	memcpy(text + len, "\r\n", 3);
	sent = send_bytes(c, text, (size_t)len + 2);
	free(text);
	return sent;
}

static bool send_default(struct client *c)
{
	char *text = c->command[0] ? fake_default_reply(&c->script->guest, c->command)
				   : fake_default_greeting(&c->script->guest);
	bool sent = c->command[0] ? send_line(c, "{%s, \"id\": %s}", text, c->id)
				  : send_line(c, "%s", text);

	free(text);
	return sent;
}

static size_t put_escape(const char **text, char *out)
{
	unsigned int byte;

	switch (*++*text) {
	case 'n':
		*out = '\n';
		break;
	case 'r':
		*out = '\r';
		break;
	case 't':
		*out = '\t';
		break;
	case '0':
		*out = '\0';
		break;
	case 'x':
		if (sscanf(*text + 1, "%2x", &byte) != 1)
			fake_die("bad \\x escape");
		*out = (char)byte;
		*text += 2;
		break;
	case '\0':
		fake_die("\\ at the end of a line");
	default:
		*out = **text;
	}
	++*text;
	return 1;
}

static bool send_escaped(struct client *c, const char *text, const char *end)
{
	size_t size = (strlen(text) + 1) * sizeof(c->id), len = 0;
	char *out = malloc(size);
	bool sent;

	if (!out)
		fake_die("out of memory");
	while (*text) {
		if (*text == '\\') {
			len += put_escape(&text, out + len);
		} else if (!strncmp(text, "%ID%", 4)) {
			len += (size_t)sprintf(out + len, "%s", c->id);
			text += 4;
		} else {
			out[len++] = *text++;
		}
	}
	memcpy(out + len, end, strlen(end));
	sent = send_bytes(c, out, len + strlen(end));
	free(out);
	return sent;
}

static bool send_repeated(struct client *c, const char *text, size_t count)
{
	size_t len = strlen(text), per_chunk = 65536 / len;
	char *chunk = malloc(per_chunk * len);
	bool sent = true;

	if (!chunk)
		fake_die("out of memory");
	for (size_t i = 0; i < per_chunk; i++)
		memcpy(chunk + i * len, text, len);
	for (; sent && count; count -= count < per_chunk ? count : per_chunk)
		sent = send_bytes(c, chunk, len * (count < per_chunk ? count : per_chunk));
	free(chunk);
	return sent;
}

#define FLOOD_EVENT \
	"{\"event\": \"FLOOD\", \"timestamp\": {\"seconds\": 1, \"microseconds\": 2}}\r\n"

static bool send_event(struct client *c, char *args)
{
	char *data = strchr(args, ' ');
	int name_len = data ? (int)(data - args) : (int)strlen(args);

	return send_line(c,
			 "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, "
			 "\"event\": \"%.*s\"%s%s}",
			 name_len, args, data ? ", \"data\":" : "", data ? data : "");
}

static bool send_error(struct client *c, const char *args)
{
	const char *desc = strchr(args, ' ');

	return send_line(c, "{\"id\": %s, \"error\": {\"class\": \"%.*s\", \"desc\": \"%s\"}}",
			 c->id, desc ? (int)(desc - args) : (int)strlen(args), args,
			 desc ? desc + 1 : "");
}

static void wait_gone(struct client *c)
{
	struct pollfd pfd = {.fd = c->fd, .events = POLLRDHUP};

	while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
}

/* Returns false if the connection is over. */
static bool run_action(struct client *c, const struct fake_action *action)
{
	const char *verb = action->verb;
	unsigned long number = strtoul(action->args, NULL, 10);

	if (!strcmp(verb, "default"))
		return send_default(c);
	if (!strcmp(verb, "return"))
		return send_line(c, "{\"return\": %s, \"id\": %s}", action->args, c->id);
	if (!strcmp(verb, "error"))
		return send_error(c, action->args);
	if (!strcmp(verb, "event"))
		return send_event(c, action->args);
	if (!strcmp(verb, "events"))
		return send_repeated(c, FLOOD_EVENT, number);
	if (!strcmp(verb, "flood"))
		return send_repeated(c, FLOOD_EVENT, SIZE_MAX);
	if (!strcmp(verb, "line"))
		return send_escaped(c, action->args, "\r\n");
	if (!strcmp(verb, "raw"))
		return send_escaped(c, action->args, "");
	if (!strcmp(verb, "huge"))
		return send_bytes(c, "{\"return\": \"", 12) &&
		       send_repeated(c, "x", number << 20) &&
		       send_line(c, "\", \"id\": %s}", c->id);
	if (!strcmp(verb, "deep"))
		return send_bytes(c, "{\"return\": ", 11) && send_repeated(c, "[", number) &&
		       send_repeated(c, "]", number) && send_line(c, ", \"id\": %s}", c->id);
	if (!strcmp(verb, "delay")) {
		pause_ms((long)number);
		return true;
	}
	if (!strcmp(verb, "split")) {
		const char *ms = strchr(action->args, ' ');

		c->split_bytes = number;
		c->split_ms = ms ? atol(ms) : 0;
		return true;
	}
	if (!strcmp(verb, "end")) {
		shutdown(c->fd, SHUT_RDWR);
		pause_ms((long)number);
		exit(0);
	}
	if (!strcmp(verb, "owe")) {
		strcpy(owed_id, c->id);
		wait_gone(c);
	}
	if (!strcmp(verb, "hang"))
		wait_gone(c);
	return false;
}

static bool respond(struct client *c)
{
	struct fake_section *section = fake_script_find(c->script, c->command);

	if (c->command[0] && owed_id[0]) {
		if (!send_line(c, "{\"return\": {}, \"id\": %s}", owed_id))
			return false;
		owed_id[0] = '\0';
	}
	if (!section)
		return send_default(c);
	for (size_t i = 0; i < section->count; i++)
		if (!run_action(c, &section->actions[i]))
			return false;
	return true;
}

static void take_command(struct client *c, const char *line)
{
	struct json_object *object = json_tokener_parse(line), *execute = NULL, *id = NULL;
	struct json_object *arguments = NULL, *property = NULL;
	const char *name;

	if (!json_object_object_get_ex(object, "execute", &execute))
		fake_die("not a command: %s", line);
	json_object_object_get_ex(object, "id", &id);
	json_object_object_get_ex(object, "arguments", &arguments);
	json_object_object_get_ex(arguments, "property", &property);
	name = json_object_get_string(property);
	snprintf(c->command, sizeof(c->command), "%s%s%s", json_object_get_string(execute),
		 name && strcmp(name, "type") ? " " : "", name && strcmp(name, "type") ? name : "");
	snprintf(c->id, sizeof(c->id), "%s",
		 json_object_to_json_string_ext(id, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
}

static void serve(struct fake_script *script, int fd, bool verbose)
{
	struct client c = {.script = script, .fd = fd, .id = "null"};
	FILE *in = fdopen(dup(fd), "r");
	char *line = NULL;
	size_t size = 0;
	bool open = in && respond(&c);

	while (open && getline(&line, &size, in) > 0) {
		if (verbose)
			fputs(line, stderr);
		take_command(&c, line);
		open = respond(&c);
	}
	free(line);
	if (in)
		fclose(in);
	close(fd);
}

static int listen_on(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(addr.sun_path))
		fake_die("socket path too long: %s", path);
	strcpy(addr.sun_path, path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1) < 0)
		fake_die("cannot listen on %s: %s", path, strerror(errno));
	return fd;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	pid_t parent = getppid();
	struct fake_script script;
	int listener;

	/* Nothing that a test starts may outlive it. The parent may already have died. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return 1;
	argv += verbose;
	if (argc - verbose < 3)
		fake_die("usage: fake-qmp [-v] SOCKET SCRIPT [ARGUMENT…]");
	fake_script_load(argv[2], &script);
	script.guest.arguments = argv + 3;
	listener = listen_on(argv[1]);
	if (script.fork && fork() > 0)
		return 0;
	if (script.guest.ram_mib)
		fake_ram_start(&script.guest);
	printf("ready %s %d\n", argv[1], (int)getpid());
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			serve(&script, fd, verbose);
	}
}
