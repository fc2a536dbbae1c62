/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * page-server DIRECTORY: serves host.json, guests.json, trends.json and UUID.json of a directory, and the page, at
 * a loopback port that it prints, by the process that the service uses. A line on standard input makes it read
 * the directory again, and answer with a line; the end of the input ends it. A file that is not there is empty.
 */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/http-child.h"
#include "serve/http-named.h"
#include "serve/http-pages.h"
#include "serve/http.h"

#define BOOK_MAX 4096

static const char *directory;

static void copy(const char *name, FILE *to)
{
	char path[4096], block[65536];
	FILE *from;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	from = fopen(path, "r");
	while (from && (n = fread(block, 1, sizeof(block), from)) > 0)
		fwrite(block, 1, n, to);
	if (from)
		fclose(from);
}

static int make_book(struct wss_error *err)
{
	struct wss_http_named_draft draft = WSS_HTTP_NAMED_DRAFT_INIT;
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	int fd;

	if (!dir || wss_http_named_begin(&draft, BOOK_MAX, err) < 0)
		exit(1);
	while ((entry = readdir(dir))) {
		char name[sizeof(entry->d_name)];
		size_t len = strlen(entry->d_name);

		if (len < 6 || strcmp(entry->d_name + len - 5, ".json") != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(len - 5), entry->d_name);
		copy(entry->d_name, draft.stream);
		wss_http_named_page(&draft, name);
	}
	closedir(dir);
	return wss_http_named_end(&draft, &fd, err) < 0 ? -1 : fd;
}

static void publish(struct wss_http *http)
{
	struct wss_http_draft draft = WSS_HTTP_DRAFT_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	int named = make_book(&err), fd;

	if (named < 0 || wss_http_draft_begin(&draft, &err) < 0)
		exit(1);
	wss_http_set_named(http, named);
	copy("host.json", draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_HOST);
	copy("guests.json", draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_GUESTS);
	if (wss_http_draft_end(&draft, &fd, &err) < 0)
		exit(1);
	wss_http_publish(http, fd);
	/* A client that asks after the answer gets these pages. */
	for (wss_http_step(http); !wss_http_ready(http) || !wss_http_runs(http);
	     wss_http_step(http))
		poll(NULL, 0, 5);
}

/* The address, with the port that was free, is what the service logs. */
static void sink(enum wss_log_level level, const char *text)
{
	const char *address = strstr(text, "HTTP at ");

	(void)level;
	if (address)
		printf("http://%s/\n", address + strlen("HTTP at "));
}

int main(int argc, char **argv)
{
	struct wss_http_options options = {.n_addresses = 1};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_http *http;
	char line[64];

	if (wss_http_child_is(argc, argv))
		return wss_http_child_main(argc, argv);
	if (argc != 2)
		return 2;
	directory = argv[1];
	wss_log_set_sink(sink);
	if (wss_http_address_parse("127.0.0.1:0", "address", &options.addresses[0], &err) < 0 ||
	    wss_http_new(&options, &http, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	do {
		publish(http);
		puts("ready");
		fflush(stdout);
	} while (fgets(line, sizeof(line), stdin));
	wss_http_free(http);
	return 0;
}
