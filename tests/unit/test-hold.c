/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"

#include <poll.h>
#include <sys/mman.h>

#include "measure/control.h"
#include "measure/hold.h"

static struct fake *fake;

/* No time passes, also for watchdogs, until a test says that it is up for whoever waits then. */
static atomic_bool *time_is_up;

static uint64_t still_now_ns(void *unused)
{
	return 1000 * WSS_NS_PER_S;
}

static void still_poll(void *unused, struct pollfd *fds, nfds_t n, uint64_t timeout_ns)
{
	while (poll(fds, n, 10) <= 0 && !atomic_exchange(time_is_up, false))
		;
}

static int set_up(void **unused)
{
	static const struct wss_clock_source source = {.now_ns = still_now_ns, .poll = still_poll};

	time_is_up = mmap(NULL, sizeof(*time_is_up), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(time_is_up != MAP_FAILED);
	wss_clock_inject(&source);
	/* Adopt orphaned watchdogs, so that their end can be waited for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fake = fake_new("hold");
	return wss_guest_attach(fake->guest, NULL, NULL);
}

static int tear_down(void **unused)
{
	fake_free(fake);
	wss_clock_inject(NULL);
	return 0;
}

static bool is_stopped(void)
{
	return fake_state(fake) == 'T';
}

/* Finds the watchdog of a holder: its child of that name; 0 if there is none. */
static pid_t find_watchdog(pid_t holder)
{
	wss_auto_dir DIR *proc = opendir("/proc");
	char path[PATH_MAX], comm[32];
	struct wss_root root;
	pid_t found = 0;

	assert_int_equal(wss_root_open("/", &root, NULL), 0);
	for (struct dirent *entry; (entry = readdir(proc));) {
		wss_auto_free char *stat = NULL;
		char *rest;
		int parent;

		if (atoi(entry->d_name) <= 0 ||
		    wss_root_read_line(&root, make_path(path, "proc/%s/comm", entry->d_name), comm,
				       sizeof(comm)) < 0 ||
		    strcmp(comm, "virt-wss-hold") != 0 ||
		    wss_root_read(&root, make_path(path, "proc/%s/stat", entry->d_name), 4096,
				  &stat, NULL) < 0)
			continue;
		rest = strrchr(stat, ')');
		if (rest && sscanf(rest + 1, " %*c %d", &parent) == 1 && parent == holder)
			found = atoi(entry->d_name);
	}
	wss_root_close(&root);
	return found;
}

static pid_t get_watchdog(pid_t holder)
{
	pid_t pid = find_watchdog(holder);

	assert_true(pid > 0);
	return pid;
}

static struct wss_hold *open_hold(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_hold *hold = NULL;

	if (wss_hold_open(&fake->guest->process, &hold, &err) < 0)
		fail_msg("%s", err.text);
	return hold;
}

static void assert_stops(struct wss_hold *hold)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_hold_stop(hold, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(is_stopped());
}

TEST(test_stop_and_release)
{
	unsigned fds = count_fds();
	struct wss_hold *hold = open_hold();

	/* Opening does not stop the guest. */
	assert_false(is_stopped());
	for (int i = 0; i < 20; i++) {
		assert_stops(hold);
		wss_hold_release(hold);
		wait_until(!is_stopped());
		/* A second release does nothing. */
		wss_hold_release(hold);
	}
	assert_stops(hold);
	wss_hold_close(hold);
	wait_until(!is_stopped());
	/* The guest still works. */
	fake_touch(fake, 1);
	assert_int_equal(find_watchdog(getpid()), 0);
	assert_int_equal(count_fds(), fds);
	wss_hold_close(NULL);
}

/* A dead holder's lock and open files must not live on in the watchdog. */
TEST(test_watchdog_holds_nothing)
{
	struct wss_hold *hold;
	wss_auto_dir DIR *dir = NULL;
	char path[PATH_MAX];
	int extra = open("/dev/null", O_RDONLY);
	unsigned n = 0;

	assert_int_equal(wss_control_take(&fake->guest->process, NULL), 0);
	hold = open_hold();
	assert_stops(hold);
	dir = opendir(make_path(path, "/proc/%d/fd", get_watchdog(getpid())));
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	/* Its end of the socket, and the guest's pidfd. */
	assert_int_equal(n, 2);
	/* So once it is closed here the lock is free, although the watchdog lives. */
	wss_control_release(&fake->guest->process);
	assert_int_equal(wss_control_take(&fake->guest->process, NULL), 0);
	wss_control_release(&fake->guest->process);
	close(extra);
	wss_hold_close(hold);
}

/* Starts a child that holds the guest, reports that, and then calls how. */
static pid_t start_holder(void (*how)(void))
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct wss_hold *hold = NULL;

		setpgid(0, 0);
		if (wss_hold_open(&fake->guest->process, &hold, NULL) < 0 ||
		    wss_hold_stop(hold, NULL) < 0 || write(fds[1], "", 1) != 1)
			_exit(1);
		how();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static void return_at_once(void)
{
}

/* Asserts that after the end of the holder the guest continues and its watchdog ends. */
static void assert_let_go(pid_t holder, pid_t watchdog)
{
	int status;

	waitpid(holder, NULL, 0);
	wait_until(!is_stopped());
	if (watchdog)
		assert_int_equal(waitpid(watchdog, &status, 0), watchdog);
	fake_touch(fake, 1);
}

TEST(test_holder_killed)
{
	pid_t holder = start_holder(wait_for_ever), watchdog = get_watchdog(holder);

	assert_true(is_stopped());
	kill(holder, SIGKILL);
	assert_let_go(holder, watchdog);
}

/* Killed with its whole process group, as by a terminal or a job scheduler. */
TEST(test_group_killed)
{
	pid_t holder = start_holder(wait_for_ever), watchdog = get_watchdog(holder);

	kill(-holder, SIGTERM);
	kill(-holder, SIGKILL);
	assert_let_go(holder, watchdog);
}

TEST(test_holder_exits)
{
	pid_t holder = start_holder(return_at_once);

	assert_let_go(holder, 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* The holder hangs until the watchdog's own deadline. */
TEST(test_timeout)
{
	struct wss_hold *hold = open_hold();

	assert_stops(hold);
	*time_is_up = true;
	wait_until(!is_stopped());
	/* The holder learns that the guest continued. */
	assert_false(wss_hold_release(hold));
	/* Its watchdog ended with that: the next hold gets a new one. */
	assert_stops(hold);
	assert_true(wss_hold_release(hold));
	wait_until(!is_stopped());
	wss_hold_close(hold);
}

/* Only whoever else stopped the guest may resume it. */
TEST(test_stopped_already)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_hold *hold = open_hold();

	kill(fake->child, SIGSTOP);
	wait_until(is_stopped());
	assert_int_equal(wss_hold_stop(hold, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "somebody else");
	wss_hold_release(hold);
	wss_hold_close(hold);
	assert_true(is_stopped());
	kill(fake->child, SIGCONT);
	wait_until(!is_stopped());
}

/* A watchdog that does not answer, or is dead, is replaced. */
TEST(test_watchdog_lost)
{
	struct wss_hold *hold = open_hold();
	pid_t watchdog;

	assert_stops(hold);
	wss_hold_release(hold);
	watchdog = get_watchdog(getpid());
	assert_int_equal(kill(watchdog, SIGSTOP), 0);
	*time_is_up = true;
	/* The old one is killed, so that it cannot continue the guest once it wakes up. */
	assert_stops(hold);
	assert_int_equal(kill(watchdog, 0), -1);
	assert_int_not_equal(get_watchdog(getpid()), watchdog);
	assert_true(wss_hold_release(hold));
	wait_until(!is_stopped());
	wss_hold_close(hold);

	hold = open_hold();
	assert_stops(hold);
	/* The watchdog is killed while it watches: the holder itself still releases the guest. */
	kill(get_watchdog(getpid()), SIGKILL);
	wss_hold_release(hold);
	wait_until(!is_stopped());
	wss_hold_close(hold);
}

TEST(test_guest_gone)
{
	struct fake *gone = fake_new("gone");
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_hold *hold = NULL;

	assert_int_equal(wss_guest_attach(gone->guest, NULL, NULL), 0);
	assert_int_equal(wss_hold_open(&gone->guest->process, &hold, NULL), 0);
	assert_int_equal(wss_hold_stop(hold, NULL), 0);
	/* The watchdog is killed during the hold. */
	fake_kill(gone);
	wss_hold_release(hold);
	assert_int_equal(wss_hold_stop(hold, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	wss_hold_close(hold);
	fake_free(gone);
}

/* Stops and releases the guest until SIGTERM. */
static int hold_in_storm(int ready)
{
	struct wss_hold *hold = NULL;

	setpgid(0, 0);
	wss_stop_install();
	signal(SIGALRM, SIG_IGN);
	if (wss_hold_open(&fake->guest->process, &hold, NULL) < 0 || write(ready, "", 1) != 1)
		return 2;
	while (wss_stop_signal() != SIGTERM) {
		if (wss_hold_stop(hold, NULL) < 0)
			return 3;
		wss_hold_release(hold);
	}
	wss_hold_close(hold);
	return 0;
}

/* Signals arrive at any moment, for the whole process group and for the watchdog. */
TEST(test_signal_storm)
{
	pid_t holder, watchdog;
	int fds[2], status;
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	holder = fork();
	if (holder == 0)
		_exit(hold_in_storm(fds[1]));
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	wait_until((watchdog = find_watchdog(holder)) > 0);
	for (int i = 0; i < 2000; i++) {
		kill(-holder, SIGINT);
		kill(-holder, SIGALRM);
		kill(watchdog, i % 2 ? SIGTERM : SIGUSR1);
	}
	/* The last signal wins, whatever is pending. */
	do
		kill(holder, SIGTERM);
	while (waitpid(holder, &status, WNOHANG) == 0);
	assert_int_equal(status, 0);
	wait_until(!is_stopped());
	fake_touch(fake, 1);
}

int main(void)
{
	const struct CMUnitTest skipped[] = {cmocka_unit_test(test_needs_pidfd)};

	return have_pidfd() ? tests_run_within(set_up, tear_down)
			    : cmocka_run_group_tests(skipped, NULL, NULL);
}
