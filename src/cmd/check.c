/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * virt-wss check: a plugin for Nagios and Icinga. It measures nothing: the service has the samples, or,
 * where none runs, the history; libvirt says which guests run. So it is cheap, however often it runs.
 */
#include "cmd/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "base/units.h"
#include "client/guest-view.h"
#include "client/service.h"
#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "help-text.h"
#include "host/inventory.h"
#include "measure/policy-element.h"

enum {
	OPT_AGE_WARNING = 1,
	OPT_AGE_CRITICAL,
	OPT_HELD,
	OPT_REFUSED,
	OPT_EMPTY,
	OPT_SOCKET,
	OPT_BRIEF,
};

static const struct option long_options[] = {
	{"warning", required_argument, NULL, 'w'},
	{"critical", required_argument, NULL, 'c'},
	{"age-warning", required_argument, NULL, OPT_AGE_WARNING},
	{"age-critical", required_argument, NULL, OPT_AGE_CRITICAL},
	{"held", required_argument, NULL, OPT_HELD},
	{"refused", required_argument, NULL, OPT_REFUSED},
	{"empty", required_argument, NULL, OPT_EMPTY},
	{"brief", no_argument, NULL, OPT_BRIEF},
	{"timeout", required_argument, NULL, 't'},
	{"socket", required_argument, NULL, OPT_SOCKET},
	WSS_HISTORY_LONG,
	{"connect", required_argument, NULL, WSS_OPT_CONNECT},
	{"help", no_argument, NULL, 'h'},
	{"all", no_argument, NULL, WSS_OPT_ALL},
	{"uuid", no_argument, NULL, WSS_OPT_UUID},
	{"debug", no_argument, NULL, WSS_OPT_DEBUG},
	{NULL, 0, NULL, 0},
};

#define TIMEOUT_NS (10 * WSS_NS_PER_S)
#define GRACE_NS (2 * WSS_NS_PER_S)
/* The service has answered: what it stores meanwhile is worth no more waiting. */
#define STORED_PATIENCE_MS 1000
/* A good window so long before the newest one counts more than that, if that is degraded. */
#define STORED_GOOD_WITHIN_S 3600
#define TIMEOUT_MAX_NS (3600 * WSS_NS_PER_S)

#define CHOSEN_MAX 200

struct check_run {
	struct wss_check_options check;
	struct wss_store_options store;
	const char *socket; /* NULL: the usual one */
	uint64_t timeout_ns;
	uint64_t deadline_ns;
	struct wss_guests guests;
	char chosen
		[CHOSEN_MAX]; /* end of the line: which of several guests of one name it is about */
};

static int check_option(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct check_run *run = opaque;
	struct wss_check_options *check = &run->check;
	int r = wss_store_option(&run->store, c, value, err);

	if (r)
		return r < 0 ? -1 : 0;
	switch (c) {
	case 'w':
		return wss_threshold_parse(value, "--warning", &check->warning, err);
	case 'c':
		return wss_threshold_parse(value, "--critical", &check->critical, err);
	case OPT_AGE_WARNING:
		return wss_threshold_parse(value, "--age-warning", &check->age_warning, err);
	case OPT_AGE_CRITICAL:
		return wss_threshold_parse(value, "--age-critical", &check->age_critical, err);
	case OPT_HELD:
		return wss_plugin_state_parse(value, "--held", &check->held, err);
	case OPT_REFUSED:
		return wss_plugin_state_parse(value, "--refused", &check->refused, err);
	case OPT_EMPTY:
		return wss_plugin_state_parse(value, "--empty", &check->empty, err);
	case 't':
		return wss_duration_parse(value, TIMEOUT_MAX_NS, "--timeout", &run->timeout_ns,
					  err);
	case OPT_SOCKET:
		run->socket = value;
		return 0;
	default:
		check->brief = true;
		return 0;
	}
}

/* --- from the service --- */

static bool has_guest(const struct wss_guests *guests, const char *name, const char *uuid)
{
	for (size_t i = 0; i < guests->n; i++)
		if (!strcmp(guests->list[i].uuid, uuid) &&
		    (uuid[0] || !strcmp(guests->list[i].name, name)))
			return true;
	return false;
}

/* Returns which of two guests of one name was measured last; NULL: neither was, or their names differ. */
static const struct wss_guest_view *served_newer(const struct wss_guest_view *a,
						 const struct wss_guest_view *b)
{
	if (strcmp(a->name, b->name) != 0 || (!a->age_ns.known && !b->age_ns.known))
		return NULL;
	return !b->age_ns.known || (a->age_ns.known && a->age_ns.value < b->age_ns.value) ? a : b;
}

/*
 * Returns the guest that a word names; NULL: there is none, or there are two. ret_chosen is the end of the line if it is one of
 * several.
 */
static const struct wss_guest_view *served_find(const struct wss_guests *guests, const char *word,
						bool by_uuid, char *ret_why, size_t size,
						char ret_chosen[CHOSEN_MAX])
{
	const struct wss_guest_view *found = NULL, *newer;

	snprintf(ret_why, size, "the service knows no such running domain");
	for (size_t i = 0; i < guests->n; i++) {
		const struct wss_guest_view *guest = &guests->list[i];

		if (strcasecmp(word, guest->uuid) != 0 &&
		    (by_uuid || strcmp(word, guest->name) != 0))
			continue;
		newer = found ? served_newer(found, guest) : guest;
		if (!newer) {
			snprintf(
				ret_why, size,
				"the name fits two guests, '%.80s' (UUID %.36s) and '%.80s' (UUID %.36s): choose one "
				"with --uuid UUID",
				found->name, found->uuid, guest->name, guest->uuid);
			return NULL;
		}
		if (found)
			snprintf(
				ret_chosen, CHOSEN_MAX,
				" (of several guests named %.80s the one measured last, UUID %.36s)",
				newer->name, newer->uuid);
		found = newer;
	}
	return found;
}

/* Keeps the guests that were named, each once, in that order. */
static int keep_named(const struct wss_cli *cli, struct wss_guests *guests,
		      char ret_chosen[CHOSEN_MAX], struct wss_error *err)
{
	struct wss_guests kept = {.page_age_ns = guests->page_age_ns,
				  .libvirt_up = guests->libvirt_up,
				  .since_ns = guests->since_ns};

	memcpy(kept.state, guests->state, sizeof(kept.state));
	memcpy(kept.held, guests->held, sizeof(kept.held));
	for (int i = 0; i < cli->n_domains; i++) {
		struct wss_guest_view none = {.name = ""}, *copy;
		const struct wss_guest_view *guest =
			served_find(guests, cli->domains[i], cli->by_uuid, none.why,
				    sizeof(none.why), ret_chosen);

		wss_text_fit(cli->domains[i], none.name, sizeof(none.name));
		if (!guest)
			guest = &none;
		if (has_guest(&kept, guest->name, guest->uuid))
			continue;
		copy = wss_guests_add(&kept);
		if (!copy) {
			wss_guests_release(&kept);
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		*copy = *guest;
	}
	wss_guests_release(guests);
	*guests = kept;
	return 0;
}

/* Returns 1; 0 if no service runs; -1. */
static int ask_service(const struct wss_cli *cli, struct check_run *run, struct wss_error *err)
{
	const char *path = run->socket ? run->socket : WSS_SERVICE_SOCKET;

	if (wss_service_guests(path, run->deadline_ns, NULL, &run->guests, err) < 0) {
		if (err->code != WSS_ERR_GONE || run->socket)
			return -1;
		wss_error_clear(err);
		return 0;
	}
	return !cli->n_domains || keep_named(cli, &run->guests, run->chosen, err) == 0 ? 1 : -1;
}

/* --- from the history --- */

/* The newest good window counts, where there is one. */
static void history_on_sample(const struct wss_sample *sample, void *opaque)
{
	struct wss_guest_view *guest = opaque;

	if (sample->quality == WSS_QUALITY_DEGRADED && guest->sample.wss_bytes.known &&
	    !wss_view_is_degraded(guest))
		return;
	wss_view_sample(sample, &guest->sample);
	guest->age_ns = wss_amount_of((uint64_t)wss_clock_age_seconds(sample->wall) * WSS_NS_PER_S);
}

/* Adds the newest good sample of a guest's last hour, else the newest one. */
static int add_stored(struct wss_history *history, struct wss_guest_view *guest,
		      struct wss_error *err)
{
	struct wss_amount last;

	if (wss_history_last(history, guest->uuid, &last, err) < 0)
		return -1;
	if (!last.known) {
		snprintf(guest->why, sizeof(guest->why), "no sample in the history");
		return 0;
	}
	return wss_history_samples(history, guest->uuid, (time_t)last.value - STORED_GOOD_WITHIN_S,
				   (time_t)last.value, history_on_sample, guest, err);
}

static struct wss_guest_view *add_guest(struct check_run *run, const char *name, const char *uuid,
					struct wss_error *err)
{
	struct wss_guest_view *guest = wss_guests_add(&run->guests);

	if (!guest) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	wss_text_fit(name, guest->name, sizeof(guest->name));
	snprintf(guest->uuid, sizeof(guest->uuid), "%s", uuid);
	return guest;
}

/*
 * Adds a running guest; one that its policy leaves out, or that is paused, is marked as such. One that does not run is
 * unknown if it was named, else it ended after it was listed.
 */
static int add_found(struct check_run *run, const struct wss_target *target, bool named,
		     struct wss_error *err)
{
	const struct wss_target_entry *entry = target->data;
	const char *uuid = entry && entry->entry.uuid[0] ? entry->entry.uuid
			   : target->uuid		 ? target->uuid
							 : "";
	const char *name = entry && entry->entry.name[0] ? entry->entry.name : target->name;
	struct wss_policy policy = {.opt_out = false};
	struct wss_error why = target->error;
	struct wss_guest_view *guest;

	if (!why.code && entry && !entry->entry.active) {
		if (!named)
			return 0;
		wss_error_set(&why, WSS_ERR_GONE, "the domain is not running");
	}
	if (named && has_guest(&run->guests, name, uuid))
		return 0;
	guest = add_guest(run, name, uuid, err);
	if (!guest)
		return -1;
	if (!why.code && entry && entry->entry.xml)
		wss_policy_read(entry->entry.xml, &policy, &why);
	if (why.code)
		snprintf(guest->why, sizeof(guest->why), "%s", why.text);
	if (policy.opt_out)
		snprintf(guest->state, sizeof(guest->state), "left out");
	else if (entry && entry->size.paused_bytes.known)
		snprintf(guest->state, sizeof(guest->state), "paused");
	return 0;
}

/*
 * Fills in the newest stored sample of guests whose working set the service has not measured since it started, and the
 * newest good one of those whose last window is degraded. Where there is none, or no history, they stay as they are.
 */
static void fill_from_history(struct check_run *run)
{
	wss_auto_free char *path = wss_store_path(&run->store);
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	for (size_t i = 0; path && i < run->guests.n; i++) {
		struct wss_guest_view stored, *guest = &run->guests.list[i];

		if ((guest->sample.wss_bytes.known && !wss_view_is_degraded(guest)) ||
		    guest->why[0] || !guest->uuid[0] ||
		    (strcmp(guest->state, "waiting") != 0 &&
		     strcmp(guest->state, "measuring") != 0))
			continue;
		if (!history && wss_history_open_readonly(path, &history, &err) < 0)
			return;
		wss_history_set_patience(history, STORED_PATIENCE_MS);
		stored = *guest;
		stored.sample = (struct wss_guest_sample){.quality = ""};
		if (add_stored(history, &stored, &err) < 0)
			break;
		if (stored.sample.wss_bytes.known && !wss_view_is_degraded(&stored))
			*guest = stored;
	}
	wss_history_close(history);
}

/* Finds the guests that were named, or all that run: the history does not know whether a guest still runs. */
static int find_guests(struct wss_cli *cli, struct check_run *run, struct wss_error *err)
{
	struct wss_targets targets = {.n = 0};
	uint64_t now_ns = wss_clock_now_ns();
	int r;

	cli->reader = true;
	if (now_ns >= run->deadline_ns)
		return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out");
	if (wss_cli_find_targets(cli, run->deadline_ns - now_ns, &targets, err) < 0)
		return -1;
	run->guests.libvirt_up = wss_amount_of(true);
	r = wss_targets_read_element(&targets, WSS_POLICY_NAMESPACE, WSS_ENTRY_SIZES, err);
	for (size_t i = 0; r == 0 && i < targets.n; i++)
		r = add_found(run, targets.list[i], cli->n_domains > 0, err);
	wss_targets_free(&targets);
	return r;
}

static int read_history(struct wss_cli *cli, struct check_run *run, struct wss_error *err)
{
	wss_auto_free char *path = wss_store_path(&run->store);
	struct wss_history *history = NULL;
	int r;

	if (!path)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_history_open_readonly(path, &history, err) < 0 && run->store.path)
		return -1;
	if (!history)
		return err->code == WSS_ERR_GONE
			       ? wss_error_set(err, WSS_ERR_GONE,
					       "no service runs (%s), and there is no history (%s)",
					       WSS_SERVICE_SOCKET, path)
			       : wss_error_prefix(err, "no service runs");
	wss_history_set_patience(history, (int)(run->timeout_ns / WSS_NS_PER_MS));
	r = find_guests(cli, run, err);
	for (size_t i = 0; r == 0 && i < run->guests.n; i++)
		if (!run->guests.list[i].state[0] && !run->guests.list[i].why[0])
			r = add_stored(history, &run->guests.list[i], err);
	wss_history_close(history);
	return r;
}

/* --- the command --- */

/* Nothing is measured or held, so that the process may end anywhere. */
static void on_timeout(int signal)
{
	static const char text[] = "WSS UNKNOWN - timed out\n";

	(void)signal;
	(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
	_exit(WSS_PLUGIN_UNKNOWN);
}

/*
 * Sets the time after which the process ends, whatever hangs; 0: never. What has a deadline of its own
 * and says more about it ends before.
 */
static void set_timeout(uint64_t timeout_ns)
{
	const struct sigaction action = {.sa_handler = on_timeout};
	struct itimerval timer = {.it_value.tv_sec = 0};

	if (timeout_ns) {
		timer.it_value.tv_sec = (time_t)((timeout_ns + GRACE_NS) / WSS_NS_PER_S);
		timer.it_value.tv_usec = (suseconds_t)(timeout_ns % WSS_NS_PER_S / 1000);
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Asks the service, unless a history was named, then the history. Returns the source for the line. */
static const char *check_gather(struct wss_cli *cli, struct check_run *run, struct wss_error *err)
{
	int found = run->store.path ? 0 : ask_service(cli, run, err);

	if (found < 0)
		return NULL;
	if (found) {
		fill_from_history(run);
		return run->chosen;
	}
	return read_history(cli, run, err) < 0 ? NULL : " (from the history)";
}

static int check_parse(struct wss_cli *cli, int argc, char **argv, struct check_run *run,
		       struct wss_error *err)
{
	struct wss_check_options *check = &run->check;

	wss_threshold_parse("90", "--warning", &check->warning, err);
	wss_threshold_parse("95", "--critical", &check->critical, err);
	wss_threshold_parse("600", "--age-warning", &check->age_warning, err);
	wss_threshold_parse("3600", "--age-critical", &check->age_critical, err);
	check->held = check->refused = WSS_PLUGIN_WARNING;
	check->empty = WSS_PLUGIN_OK;
	run->timeout_ns = TIMEOUT_NS;
	if (wss_cli_parse(cli, argc, argv, run, err) < 0)
		return -1;
	if (run->socket && run->store.path)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--socket and --history exclude each other");
	if (cli->qmp)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--qmp: check takes no socket: use -c kvm:///, which knows the same guest");
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	wss_cli_take_ids(cli);
	return 0;
}

/* Returns the exit status. A line that cannot be written tells its reader nothing, whatever it said. */
static enum wss_plugin_state check_end(enum wss_plugin_state state)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_io_flush_output(&err) == 0)
		return state;
	wss_cli_error(&err);
	return WSS_PLUGIN_UNKNOWN;
}

static int check_run(struct wss_cli *cli, int argc, char **argv)
{
	struct check_run run = {.store = WSS_STORE_OPTIONS_INIT};
	struct wss_error err = WSS_ERROR_INIT;
	enum wss_plugin_state state;
	const char *source = NULL;

	if (check_parse(cli, argc, argv, &run, &err) == 0) {
		run.deadline_ns = wss_clock_now_ns() + run.timeout_ns;
		set_timeout(run.timeout_ns);
		source = check_gather(cli, &run, &err);
		set_timeout(0);
	}
	state = source ? wss_check_print(&run.check, &run.guests, !cli->n_domains, source)
		       : wss_check_print_unknown(&err);
	wss_guests_release(&run.guests);
	return (int)check_end(state);
}

#define STATES "ok warning critical unknown"

static const struct wss_option_values values[] = {
	{"held", STATES},
	{"refused", STATES},
	{"empty", STATES},
	{NULL, NULL},
};

const struct wss_command wss_cmd_check = {
	.name = "check",
	.summary = "check working sets, as a Nagios or Icinga plugin",
	.help = wss_help_check,
	.short_options = ":c:w:t:h",
	.long_options = long_options,
	.take = check_option,
	.own_short = "c",
	.takes = WSS_WORDS_DOMAINS,
	.values = values,
	.run = check_run,
};
