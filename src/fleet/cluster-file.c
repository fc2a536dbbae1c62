/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "client/json-fields.h"
#include "fleet/cluster.h"
#include "qmp/jsonline.h"

#define DEPTH_MAX 16
#define HOST_NAME_MAX_BYTES 256

/* --- a guest --- */

struct file_guest {
	struct wss_cluster_guest guest;
	char host[HOST_NAME_MAX_BYTES]; /* "": the file's */
	struct wss_amount target_bytes;
	size_t n_hours;
};

static int read_hour(struct json_object *element, void *data, struct wss_error *err)
{
	struct file_guest *file = data;

	if (file->n_hours == WSS_CLUSTER_HOURS)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "\"set_bytes\" has more than %d hours, those of a week",
				     WSS_CLUSTER_HOURS);
	if (wss_json_bytes(element, &file->guest.week_bytes[file->n_hours], err) < 0)
		return wss_error_prefix(err, "\"set_bytes\", hour %zu", file->n_hours);
	file->n_hours++;
	return 0;
}

/* The fields of this one are those of the guest. */
static const struct wss_json_field week_fields[] = {
	{"set_bytes", WSS_JSON_LIST, 0, 0, NULL, read_hour},
};
WSS_JSON_TABLE(week);

struct file_finding {
	struct wss_amount blocks;
};

static const struct wss_json_field finding_fields[] = {
	WSS_JSON_FIELD(file_finding, "blocks", WSS_JSON_BOOL, blocks),
};
WSS_JSON_TABLE(finding);

/* Reads what the guest's configuration costs. */
static int read_finding(struct json_object *element, void *data, struct wss_error *err)
{
	struct file_finding finding = {.blocks = {.known = false}};
	struct file_guest *file = data;

	if (wss_json_read(element, &finding_table, &finding, err) < 0)
		return wss_error_prefix(err, "\"configuration\"");
	file->guest.is_blocked |= finding.blocks.known && finding.blocks.value;
	return 0;
}

static const struct wss_json_field guest_fields[] = {
	WSS_JSON_FIELD(file_guest, "domain", WSS_JSON_TEXT, guest.name),
	WSS_JSON_FIELD(file_guest, "uuid", WSS_JSON_TEXT, guest.uuid),
	WSS_JSON_FIELD(file_guest, "host", WSS_JSON_TEXT, host),
	WSS_JSON_FIELD(file_guest, "status", WSS_JSON_TEXT, guest.status),
	WSS_JSON_FIELD(file_guest, "state", WSS_JSON_TEXT, guest.state),
	WSS_JSON_FIELD(file_guest, "assigned_bytes", WSS_JSON_COUNT, guest.assigned_bytes),
	WSS_JSON_FIELD(file_guest, "held_bytes", WSS_JSON_COUNT, guest.held_bytes),
	WSS_JSON_FIELD(file_guest, "minimum_bytes", WSS_JSON_COUNT, guest.minimum_bytes),
	WSS_JSON_FIELD(file_guest, "recommended_bytes", WSS_JSON_COUNT, guest.recommended_bytes),
	WSS_JSON_FIELD(file_guest, "reclaimable_bytes", WSS_JSON_COUNT, guest.reclaimable_bytes),
	WSS_JSON_FIELD(file_guest, "target_bytes", WSS_JSON_COUNT, target_bytes),
	WSS_JSON_FIELD(file_guest, "peak_bytes", WSS_JSON_COUNT, guest.peak_bytes),
	{"week", WSS_JSON_OBJECT, 0, 0, &week_table, NULL},
	{"configuration", WSS_JSON_LIST, 0, 0, NULL, read_finding},
};
WSS_JSON_TABLE(guest);

/* What is being read. */
struct cluster_file {
	struct wss_cluster *fleet;
	size_t first_host; /* the first one of the file */
	const char *name;  /* of its host, unless guests name theirs */
	size_t n;	   /* guests so far */
	char schema[64];
	struct {
		struct wss_amount host_bytes, overhead_bytes;
		char inventory[16];
	} host;
	bool has_list;
};

/* Finds the host among those of the file, the newest first; adds it if it is a new one. */
static int file_host(struct cluster_file *file, const char *name, uint32_t *ret_index,
		     struct wss_error *err)
{
	struct wss_cluster *fleet = file->fleet;

	for (size_t i = fleet->n_hosts; i > file->first_host; i--)
		if (!strcmp(fleet->hosts[i - 1].name, name)) {
			*ret_index = (uint32_t)(i - 1);
			return 0;
		}
	return wss_cluster_add_host(fleet, name, ret_index, err);
}

static int check_amounts(const struct wss_cluster_guest *guest, struct wss_error *err)
{
	const struct wss_amount *const amounts[] = {&guest->assigned_bytes, &guest->held_bytes,
						    &guest->minimum_bytes,
						    &guest->recommended_bytes, &guest->peak_bytes};

	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++)
		if (amounts[i]->known && amounts[i]->value > WSS_BYTES_MAX)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "%llu bytes of memory: at most 1 EiB can be right",
					     (unsigned long long)amounts[i]->value);
	return 0;
}

/* A word that recommend does not say must not count as "running". */
static int check_state(const struct wss_cluster_guest *guest, struct wss_error *err)
{
	static const char *const states[] = {"", "running", "paused", "shut off"};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (!strcmp(guest->state, states[i]))
			return 0;
	return wss_error_set(
		err, WSS_ERR_FAILED,
		"\"state\" is \"%s\" instead of \"running\", \"paused\" or \"shut off\"",
		guest->state);
}

static int add_file_guest(struct cluster_file *file, struct file_guest *read, struct wss_error *err)
{
	struct wss_cluster_guest *guest = &read->guest;

	if (!guest->name[0])
		return wss_error_set(err, WSS_ERR_FAILED, "no \"domain\": each guest needs a name");
	if (read->n_hours && read->n_hours != WSS_CLUSTER_HOURS)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "\"set_bytes\" has %zu hours instead of %d, those of a week",
				     read->n_hours, WSS_CLUSTER_HOURS);
	if (!guest->recommended_bytes.known)
		guest->recommended_bytes = read->target_bytes;
	if (check_amounts(guest, err) < 0 || check_state(guest, err) < 0 ||
	    file_host(file, read->host[0] ? read->host : file->name, &guest->host, err) < 0)
		return -1;
	return wss_cluster_add_guest(file->fleet, guest, err);
}

static int read_guest(struct json_object *element, void *data, struct wss_error *err)
{
	struct cluster_file *file = data;
	struct file_guest guest = {.host = ""};

	file->n++;
	file->has_list = true;
	if (wss_json_read(element, &guest_table, &guest, err) == 0 &&
	    add_file_guest(file, &guest, err) == 0)
		return 0;
	return guest.guest.name[0] ? wss_error_prefix(err, "guest %s", guest.guest.name)
				   : wss_error_prefix(err, "guest %zu", file->n);
}

/* --- the file --- */

static const struct wss_json_field host_fields[] = {
	WSS_JSON_FIELD(cluster_file, "host_bytes", WSS_JSON_COUNT, host.host_bytes),
	WSS_JSON_FIELD(cluster_file, "overhead_bytes", WSS_JSON_COUNT, host.overhead_bytes),
	WSS_JSON_FIELD(cluster_file, "inventory", WSS_JSON_TEXT, host.inventory),
};
WSS_JSON_TABLE(host);

static const struct wss_json_field file_fields[] = {
	WSS_JSON_FIELD(cluster_file, "schema", WSS_JSON_TEXT, schema),
	/* The fields of this one are those of the file. */
	{"host", WSS_JSON_OBJECT, 0, 0, &host_table, NULL},
	{"recommendations", WSS_JSON_LIST, 0, 0, NULL, read_guest},
	{"profiles", WSS_JSON_LIST, 0, 0, NULL, read_guest},
};
WSS_JSON_TABLE(file);

/* Of list where libvirt is not asked. */
#define VMS_SCHEMA "virt-wss/vms/1"

static const char *const schemas[] = {"virt-wss/recommendations/1", "virt-wss/inventory/1"};

static int check_schema(const struct cluster_file *file, struct wss_error *err)
{
	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++)
		if (!strcmp(file->schema, schemas[i]))
			return 0;
	if (!strcmp(file->schema, VMS_SCHEMA))
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"\"schema\" is \"" VMS_SCHEMA
			"\": a list of guests without libvirt has no sizes that they need: give the "
			"JSON of recommend, which finds them in the history of the same guests");
	if (!file->schema[0])
		return wss_error_set(err, WSS_ERR_FAILED,
				     "no \"schema\": give the JSON of recommend or list");
	return wss_error_set(err, WSS_ERR_FAILED,
			     "\"schema\" is \"%s\" instead of \"%s\" or \"%s\": give the JSON "
			     "of recommend or list",
			     file->schema, schemas[0], schemas[1]);
}

int wss_cluster_parse(struct wss_cluster *fleet, const char *name, const char *text, size_t len,
		      struct wss_error *err)
{
	struct cluster_file parsed = {.fleet = fleet, .first_host = fleet->n_hosts, .name = name};
	struct cluster_file *file = &parsed;
	static const struct qmp_limits limits = {.tree_bytes = WSS_CLUSTER_TREE_MAX,
						 .depth = DEPTH_MAX};
	qmp_auto_json struct json_object *object = NULL;
	struct wss_cluster_host *host;
	uint32_t index;

	if (qmp_json_parse(text, len, &limits, &object, NULL, err) < 0 ||
	    wss_json_read(object, &file_table, file, err) < 0 || check_schema(file, err) < 0)
		return -1;
	/* A host without guests is one to move them to. */
	if (!file->n && file_host(file, file->name, &index, err) < 0)
		return -1;
	if (file->fleet->n_hosts - file->first_host > 1)
		return 0;
	host = &file->fleet->hosts[file->first_host];
	if (file->host.host_bytes.known && file->host.host_bytes.value > WSS_BYTES_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "\"host_bytes\" is %llu: at most 1 EiB can be right",
				     (unsigned long long)file->host.host_bytes.value);
	host->memory_bytes = file->host.host_bytes;
	host->overhead_bytes = file->host.overhead_bytes;
	strcpy(host->inventory, file->host.inventory);
	return 0;
}

/* Copies "host1" of "DIRECTORY/host1.json"; false: it is too long. */
static bool host_name_of(const char *path, char name[HOST_NAME_MAX_BYTES])
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = strlen(base);

	if (len > 5 && !strcmp(base + len - 5, ".json"))
		len -= 5;
	if (len >= HOST_NAME_MAX_BYTES)
		return false;
	memcpy(name, base, len);
	name[len] = '\0';
	return true;
}

int wss_cluster_read(struct wss_cluster *fleet, const char *path, struct wss_error *err)
{
	char name[HOST_NAME_MAX_BYTES];
	wss_auto_free char *text = NULL;
	size_t len;

	if (!host_name_of(path, name))
		return wss_error_set(err, WSS_ERR_FAILED, "%s: the name is too long for a host's",
				     path);
	if (wss_file_read(path, WSS_CLUSTER_FILE_MAX, &text, &len, err) < 0)
		return wss_error_prefix(err, "%s", path);
	if (!len)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "%s: the file is empty: give the JSON of recommend or list",
				     path);
	if (wss_cluster_parse(fleet, name, text, len, err) < 0)
		return wss_error_prefix(err, "%s", path);
	return 0;
}
