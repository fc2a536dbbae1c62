/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses the columns that a report shows and the column to sort by, and lists all columns. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "show/report-private.h"

/* Finds the column whose key equals the len bytes at name; NULL if there is none. */
static const struct wss_column *column_find(const struct wss_report_layout *layout,
					    const char *name, size_t len)
{
	for (size_t i = 0; i < layout->n_columns; i++)
		if (!strncmp(layout->columns[i].key, name, len) && !layout->columns[i].key[len])
			return &layout->columns[i];
	return NULL;
}

/*
 * Finds the column that a wrong name probably means, by its heading, the start of its key, or
 * a similar key; NULL if there is none.
 */
static const struct wss_column *column_nearest(const struct wss_report_layout *layout,
					       const char *name)
{
	const struct wss_column *nearest = NULL;
	unsigned least = UINT_MAX;

	for (size_t i = 0; i < layout->n_columns; i++) {
		const struct wss_column *column = &layout->columns[i];
		unsigned distance = wss_edit_distance(name, column->key);

		if (*name && column->header && !strcasecmp(name, column->header))
			return column;
		if (*name && !strncasecmp(name, column->key, strlen(name)))
			distance = 0;
		if (distance < least) {
			least = distance;
			nearest = column;
		}
	}
	return nearest && wss_is_slip(name, least) ? nearest : NULL;
}

/* Always returns -1 with WSS_ERR_USAGE. */
static int column_unknown(const struct wss_report_layout *layout, const char *name,
			  struct wss_error *err)
{
	const struct wss_column *nearest = column_nearest(layout, name);
	char list[380] = "";
	size_t len = 0, i;

	for (i = 0; i < layout->n_columns; i++) {
		const char *key = layout->columns[i].key;

		/* Leaves room for the end of the list. */
		if (len + strlen(key) + sizeof(", and 999 more") > sizeof(list))
			break;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", key);
	}
	if (i < layout->n_columns)
		snprintf(list + len, sizeof(list) - len, ", and %zu more", layout->n_columns - i);
	if (nearest)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "no column '%.40s'; did you mean '%s'? Columns: %s", name,
				     nearest->key, list);
	return wss_error_set(err, WSS_ERR_USAGE, "no column '%.40s'. Columns: %s", name, list);
}

bool wss_key_is_in(const char *key, const char *list)
{
	size_t len = strlen(key);

	for (const char *at = list; at && (at = strstr(at, key)); at += len)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* Parses a list of columns into an array to free. */
static int columns_parse(const struct wss_report_layout *layout, const char *list,
			 const struct wss_column ***ret_columns, size_t *ret_n,
			 struct wss_error *err)
{
	const struct wss_column **columns;
	size_t n = 1, i = 0;

	for (const char *s = list; *s; s++)
		n += *s == ',';
	columns = calloc(n, sizeof(const struct wss_column *));
	if (!columns)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (const char *name = list; i < n; i++) {
		size_t len = strcspn(name, ",");

		columns[i] = column_find(layout, name, len);
		if (!columns[i]) {
			wss_auto_free char *copy = strndup(name, len);

			free(columns);
			return column_unknown(layout, copy ? copy : list, err);
		}
		name += len + 1;
	}
	*ret_columns = columns;
	*ret_n = n;
	return 0;
}

int wss_view_check_columns(const struct wss_report_layout *layout, const char *list,
			   struct wss_error *err)
{
	const struct wss_column **columns;
	size_t n;

	if (columns_parse(layout, list, &columns, &n, err) < 0)
		return -1;
	free(columns);
	return 0;
}

int wss_view_check_sort(const struct wss_report_layout *layout, const char *sort,
			struct wss_error *err)
{
	const char *name = sort + (*sort == '-');

	return column_find(layout, name, strlen(name)) ? 0 : column_unknown(layout, name, err);
}

/* Selects the default columns of CSV. */
static int select_records(const struct wss_report_layout *layout,
			  const struct wss_column ***ret_columns, size_t *ret_n,
			  struct wss_error *err)
{
	const struct wss_column **columns =
		calloc(layout->n_columns, sizeof(const struct wss_column *));
	size_t n = 0;

	if (!columns)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < layout->n_columns; i++)
		if (!wss_key_is_in(layout->columns[i].key, layout->table_only))
			columns[n++] = &layout->columns[i];
	*ret_columns = columns;
	*ret_n = n;
	return 0;
}

int wss_view_select(const struct wss_view *view, const struct wss_report_layout *layout,
		    enum wss_format format, const struct wss_column ***ret_columns, size_t *ret_n,
		    struct wss_error *err)
{
	const char *list = view->columns;

	if (!list && format != WSS_FORMAT_TABLE)
		return select_records(layout, ret_columns, ret_n, err);
	if (!list)
		list = view->wide ? layout->wide : layout->shown;
	return columns_parse(layout, list, ret_columns, ret_n, err);
}

int wss_view_sort_column(const struct wss_view *view, const struct wss_report_layout *layout,
			 const struct wss_column **ret_column, bool *ret_falling,
			 struct wss_error *err)
{
	*ret_column = NULL;
	*ret_falling = view->sort && *view->sort == '-';
	if (!view->sort)
		return 0;
	if (wss_view_check_sort(layout, view->sort, err) < 0)
		return -1;
	*ret_column =
		column_find(layout, view->sort + *ret_falling, strlen(view->sort + *ret_falling));
	return 0;
}

/* Row of the table that lists columns: one column of a layout. */
struct column_row {
	const struct wss_report_layout *layout;
	const struct wss_column *column;
};

static const void *column_row_of(const void *row)
{
	return ((const struct column_row *)row)->column;
}

static struct wss_value get_where(const void *row)
{
	const struct wss_report_layout *layout = ((const struct column_row *)row)->layout;
	const char *key = ((const struct column_row *)row)->column->key;

	if (!layout->shown)
		return wss_value_text("JSON");
	return wss_value_text(wss_key_is_in(key, layout->shown)	 ? "default"
			      : wss_key_is_in(key, layout->wide) ? "wide"
								 : NULL);
}

#define COLUMN(member) WSS_FIELD_OF(column_row_of, struct wss_column, member, TEXT)

static const struct wss_column column_columns[] = {
	{"name", NULL, "NAME", -26, COLUMN(key), "Name of the column"},
	{"heading", NULL, "HEADING", -9, COLUMN(header), "Its heading in a table"},
	{"shown", NULL, "SHOWN", -7, WSS_GET(get_where), "Where it is shown without being named"},
	{"meaning", NULL, "MEANING", -20, COLUMN(help), "Its meaning"},
};

static const struct wss_report_layout column_layout = {
	.columns = column_columns,
	.n_columns = sizeof(column_columns) / sizeof(column_columns[0]),
	.shown = "name,heading,shown,meaning",
	.wide = "name,heading,shown,meaning",
};

static int print_layout(FILE *stream, const struct wss_report_layout *layout, int width,
			struct wss_error *err)
{
	const struct wss_view view = {.width = width};
	struct wss_report *report;

	if (wss_report_open(stream, WSS_FORMAT_TABLE, &view, &column_layout, &report, err) < 0)
		return -1;
	for (size_t i = 0; i < layout->n_columns; i++)
		wss_report_row(report, &(struct column_row){layout, &layout->columns[i]});
	return wss_report_close(report, err);
}

int wss_columns_print(FILE *stream, const struct wss_report_layout *const *layouts, int width,
		      struct wss_error *err)
{
	for (size_t i = 0; layouts[i]; i++) {
		if (i)
			fprintf(stream, "\n%s:\n", layouts[i]->array_key);
		if (print_layout(stream, layouts[i], width, err) < 0)
			return -1;
	}
	return 0;
}
