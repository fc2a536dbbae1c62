/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The edge of invented guests, whose sets are known, with and without noise. */
#include "hosttest.h"

#include "../random.h"
#include "balloon/edge.h"
#include "base/units.h"

#define MIB WSS_MIB
#define POINTS_MAX 600
#define FULL (1024 * MIB)

/* A guest with a file in its page cache, which it reads all the time. */
struct invented {
	uint64_t kernel_bytes, set_bytes, cold_bytes; /* cold: page cache that nobody reads */
	uint64_t idle_reads_per_s;		      /* bytes that it reads in any case */
	uint64_t noise_bytes;			      /* by which that varies */
	unsigned spike_percent;			      /* of the points have a burst of reads */
};

static struct wss_edge_point points[POINTS_MAX];
static size_t n_points;
static struct wss_edges edges;

static uint64_t noise(uint64_t range)
{
	return range ? random_below(range) : 0;
}

static struct wss_edge_point observe(const struct invented *guest, uint64_t size_bytes)
{
	const uint64_t kept = 4 * MIB;
	uint64_t room = size_bytes - guest->kernel_bytes - kept;
	uint64_t cache = guest->set_bytes + guest->cold_bytes;
	uint64_t missing = room < guest->set_bytes ? guest->set_bytes - room : 0;
	struct wss_edge_point point = {.size_bytes = size_bytes};

	cache = cache < room ? cache : room;
	point.read_bytes_per_s =
		wss_amount_of(guest->idle_reads_per_s + noise(guest->noise_bytes) + missing);
	if (noise(100) < guest->spike_percent)
		point.read_bytes_per_s.value += 100 * MIB;
	point.major_faults_per_s = wss_amount_of(noise(10));
	point.swapped_bytes_per_s = wss_amount_of(0);
	point.pressure_permille = wss_amount_of(noise(5));
	point.free_bytes = wss_amount_of(room - cache + kept);
	point.usable_bytes = wss_amount_of(room - cache + cache / 2);
	return point;
}

static enum wss_edge_verdict add(struct wss_edge_point point)
{
	assert_true(n_points < POINTS_MAX);
	points[n_points++] = point;
	return wss_edge_judge(points, n_points);
}

/* Shrinks the guest by a step in thousandths of its size until it pages, or down to the floor.
 */
static void squeeze(const struct invented *guest, uint64_t step_permille, uint64_t floor_bytes)
{
	uint64_t size_bytes = FULL;

	n_points = 0;
	while (size_bytes >= floor_bytes) {
		enum wss_edge_verdict verdict;

		while ((verdict = add(observe(guest, size_bytes))) == WSS_EDGE_UNSURE)
			;
		if (verdict != WSS_EDGE_CLEAR)
			break;
		size_bytes -= size_bytes / 1000 * step_permille;
	}
	wss_edges_find(points, n_points, &edges);
}

static void assert_encloses(const struct wss_edge *edge, uint64_t bytes)
{
	if (!edge->edge_bytes.known)
		fail_msg("no edge: %s", edge->reason);
	assert_null(edge->reason);
	assert_non_null(edge->sign);
	/* Up to what counts as noise. */
	assert_in_range(bytes, edge->low_bytes.value, edge->high_bytes.value + 2 * MIB);
	assert_in_range(edge->edge_bytes.value, edge->low_bytes.value, edge->high_bytes.value);
}

static void assert_absent(const struct wss_edge *edge, const char *reason)
{
	assert_false(edge->edge_bytes.known);
	assert_false(edge->low_bytes.known);
	assert_null(edge->sign);
	assert_non_null(edge->reason);
	if (!strstr(edge->reason, reason))
		fail_msg("%s", edge->reason);
}

TEST(test_a_known_set)
{
	for (uint64_t set = 100; set <= 700; set += 50) {
		struct invented guest = {
			.kernel_bytes = 70 * MIB, .set_bytes = set * MIB, .cold_bytes = 100 * MIB};

		squeeze(&guest, 20, 64 * MIB);
		assert_encloses(&edges.paging, (set + 70 + 4) * MIB);
		assert_string_equal(edges.paging.sign, "disk reads rose");
		assert_encloses(&edges.scanning, (set + 100 + 70 + 4) * MIB);
		assert_true(edges.scanning.edge_bytes.value > edges.paging.edge_bytes.value);
		/* The bounds are one step apart. */
		assert_in_range(edges.paging.high_bytes.value - edges.paging.low_bytes.value, 1,
				edges.paging.high_bytes.value / 49);
		assert_in_range(edges.scanning.high_bytes.value - edges.scanning.low_bytes.value, 1,
				edges.scanning.high_bytes.value / 49);
	}
}

TEST(test_noise)
{
	unsigned right = 0;

	for (int i = 0; i < 200; i++) {
		struct invented guest = {.kernel_bytes = 70 * MIB,
					 .set_bytes = 300 * MIB,
					 .cold_bytes = 200 * MIB,
					 .idle_reads_per_s = 2 * MIB,
					 .noise_bytes = MIB,
					 .spike_percent = 3};
		uint64_t at = 374 * MIB;

		squeeze(&guest, 20, 64 * MIB);
		right += edges.paging.edge_bytes.known &&
			 edges.paging.edge_bytes.value > at - at / 20 &&
			 edges.paging.edge_bytes.value < at + at / 20;
	}
	/* A spike at the full size, or two of three at another one, may deceive. */
	assert_in_range(right, 170, 200);
}

TEST(test_a_single_spike_is_no_edge)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 100 * MIB};
	struct wss_edge_point point;

	n_points = 0;
	while (add(observe(&guest, FULL)) == WSS_EDGE_UNSURE)
		;
	assert_int_equal(n_points, WSS_EDGE_BASE_POINTS);
	point = observe(&guest, 900 * MIB);
	point.read_bytes_per_s = wss_amount_of(50 * MIB);
	assert_int_equal(add(point), WSS_EDGE_UNSURE);
	assert_int_equal(add(observe(&guest, 900 * MIB)), WSS_EDGE_UNSURE);
	assert_int_equal(add(observe(&guest, 900 * MIB)), WSS_EDGE_CLEAR);
	wss_edges_find(points, n_points, &edges);
	assert_absent(&edges.paging, "it did not page");
	assert_int_equal(edges.paging.high_bytes.value, 900 * MIB);
}

TEST(test_each_sign)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 100 * MIB};

	for (int sign = 0; sign < 3; sign++) {
		struct wss_edge_point point;

		squeeze(&guest, 50, 800 * MIB);
		point = observe(&guest, 700 * MIB);
		if (sign == 0)
			point.swapped_bytes_per_s = wss_amount_of(MIB);
		if (sign == 1)
			point.major_faults_per_s = wss_amount_of(100);
		if (sign == 2)
			point.read_bytes_per_s = wss_amount_of(MIB);
		assert_int_equal(add(point), WSS_EDGE_UNSURE);
		assert_int_equal(add(point), WSS_EDGE_PAGES);
		wss_edges_find(points, n_points, &edges);
		assert_int_equal(edges.paging.low_bytes.value, 700 * MIB);
		assert_in_range(edges.paging.high_bytes.value, 800 * MIB, 850 * MIB);
	}
}

/* Anonymous memory without swap: nothing is read, and the balloon does not fill. */
TEST(test_a_guest_that_gives_up_nothing)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 100 * MIB};
	struct wss_edge_point point;

	squeeze(&guest, 50, 800 * MIB);
	point = observe(&guest, 790 * MIB);
	point.refused_bytes = wss_amount_of(760 * MIB);
	assert_int_equal(add(point), WSS_EDGE_PAGES);
	wss_edges_find(points, n_points, &edges);
	assert_int_equal(edges.paging.low_bytes.value, 760 * MIB);
	assert_int_equal(edges.paging.high_bytes.value, 790 * MIB);

	/* It still has what it needs, and would not without the rest. */
	squeeze(&guest, 50, 800 * MIB);
	point = observe(&guest, 780 * MIB);
	point.usable_bytes = wss_amount_of(10 * MIB);
	assert_int_equal(add(point), WSS_EDGE_PAGES);
	wss_edges_find(points, n_points, &edges);
	assert_int_equal(edges.paging.low_bytes.value, 770 * MIB);
	assert_int_equal(edges.paging.high_bytes.value, 780 * MIB);

	squeeze(&guest, 50, 800 * MIB);
	point = observe(&guest, 780 * MIB);
	point.grew = true;
	assert_int_equal(add(point), WSS_EDGE_PAGES);
	wss_edges_find(points, n_points, &edges);
	assert_int_equal(edges.paging.low_bytes.value, 780 * MIB);
	assert_true(edges.paging.high_bytes.value > 800 * MIB);

	/* Even at its full size. */
	n_points = 0;
	point = observe(&guest, FULL);
	point.usable_bytes = wss_amount_of(10 * MIB);
	assert_int_equal(add(point), WSS_EDGE_PAGES);
}

TEST(test_nothing_is_found)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 100 * MIB};

	squeeze(&guest, 50, 500 * MIB);
	assert_absent(&edges.paging, "it did not page at any size");
	assert_absent(&edges.scanning, "it had free memory at every size");
	assert_int_equal(edges.paging.high_bytes.value, points[n_points - 1].size_bytes);
	wss_edges_find(points, 2, &edges);
	assert_absent(&edges.paging, "too few observations");
	assert_absent(&edges.scanning, "too few observations");
	wss_edges_find(points, 0, &edges);
	assert_absent(&edges.paging, "too few observations");
}

/* Rates that the guest or libvirt do not report are no zeros that a later figure exceeds. */
TEST(test_unknown_figures)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 100 * MIB};
	struct wss_edge_point point;

	n_points = 0;
	for (int i = 0; i < WSS_EDGE_BASE_POINTS; i++)
		add((struct wss_edge_point){.size_bytes = FULL});
	point = observe(&guest, 900 * MIB);
	point.read_bytes_per_s = wss_amount_of(100 * MIB);
	assert_int_equal(add(point), WSS_EDGE_CLEAR);
	assert_int_equal(add((struct wss_edge_point){.size_bytes = 800 * MIB}), WSS_EDGE_CLEAR);
	n_points = 0;
	for (int i = 0; i < WSS_EDGE_BASE_POINTS; i++)
		add((struct wss_edge_point){.size_bytes = FULL});
	add((struct wss_edge_point){.size_bytes = 900 * MIB});
	wss_edges_find(points, n_points, &edges);
	assert_absent(&edges.scanning, "does not report its free memory");
}

TEST(test_a_full_page_cache)
{
	struct invented guest = {
		.kernel_bytes = 70 * MIB, .set_bytes = 300 * MIB, .cold_bytes = 2000 * MIB};

	squeeze(&guest, 20, 64 * MIB);
	assert_int_equal(edges.scanning.high_bytes.value, FULL);
	assert_encloses(&edges.paging, 374 * MIB);
}

TEST(test_freed_memory_is_no_scanning)
{
	struct invented guest = {
		.kernel_bytes = 70 * MIB, .set_bytes = 300 * MIB, .cold_bytes = 100 * MIB};
	uint64_t low;

	squeeze(&guest, 20, 64 * MIB);
	low = edges.scanning.low_bytes.value;
	points[6].free_bytes.value += 30 * MIB;
	wss_edges_find(points, n_points, &edges);
	assert_int_equal(edges.scanning.low_bytes.value, low);
}

TEST(test_pressure_of_the_host)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 100 * MIB};
	struct wss_edge_point point;

	squeeze(&guest, 50, 800 * MIB);
	point = observe(&guest, 700 * MIB);
	point.read_bytes_per_s = wss_amount_of(100 * MIB);
	point.pressure_permille = wss_amount_of(300);
	assert_int_equal(add(point), WSS_EDGE_UNSURE);
	assert_int_equal(add(point), WSS_EDGE_UNSURE);
	assert_int_equal(add(point), WSS_EDGE_DISTURBED);
	wss_edges_find(points, n_points, &edges);
	assert_absent(&edges.paging, "the host itself was short of memory");
}

TEST(test_paging_must_end_at_the_full_size)
{
	struct invented guest = {.kernel_bytes = 70 * MIB, .set_bytes = 300 * MIB};
	struct wss_edge_point point;
	uint64_t edge;

	squeeze(&guest, 20, 64 * MIB);
	edge = edges.paging.edge_bytes.value;
	point = observe(&guest, FULL);
	point.returned = true;
	point.read_bytes_per_s = wss_amount_of(50 * MIB);
	/* It reads its page cache back. */
	assert_int_equal(add(point), WSS_EDGE_UNSURE);
	wss_edges_find(points, n_points, &edges);
	assert_absent(&edges.paging, "did not end");
	point.read_bytes_per_s = wss_amount_of(0);
	add(point);
	wss_edges_find(points, n_points, &edges);
	assert_int_equal(edges.paging.edge_bytes.value, edge);
}

int main(void)
{
	return tests_run();
}
