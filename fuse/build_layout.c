/*
 * The tree of a build: its inputs, its outputs and `.incr`.
 */
#include "config.h"

#include "error_map.h"
#include "fs.h"
#include "layout.h"
#include "output_fs.h"
#include "staging_fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Directories of a view carry the time of the transaction that it shows. */
static void set_dir_time(struct incr_mount *m, struct view_slot *slot)
{
	struct incr_txn_info info;
	uint64_t txn = incr_view_txn(slot->view);

	if (txn == 0 || incr_txn_find(m->store, txn, &info, NULL) != 0)
		return;
	if (info.closed_ns != 0)
		slot->dir_time = fs_timespec(info.closed_ns);
	incr_txn_info_release(&info);
}

static int add_view(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, struct incr_view *view)
{
	struct view_slot *slot;
	int r;

	/* The number of the slot is the same in each mount of this build. */
	r = view_slot_new(m, view, m->slots.n_used, false, &slot);
	if (r < 0)
		return r;
	set_dir_time(m, slot);
	return layout_add_view(dir, name, slot);
}

static int add_lists(struct incr_mount *m, struct layout_dir *info,
		     const char *alias, size_t idx)
{
	char name[128];
	int r = 0;

	for (int kind = 0; kind < INCR_N_VIEW_KINDS && r == 0; kind++) {
		(void)snprintf(name, sizeof(name), "%s.%s", alias,
			       incr_view_kind_name((enum incr_view_kind)kind));
		r = layout_add_list(
			m, info, name,
			incr_build_input_view(m->build, idx,
					      (enum incr_view_kind)kind));
	}
	return r;
}

static int add_input(struct incr_mount *m, struct layout_dir *root,
		     const char *alias, size_t idx)
{
	struct layout_dir *dir;
	int r;

	r = layout_add_dir(m, root, alias, &dir);
	for (int kind = 0; kind < INCR_N_VIEW_KINDS && r == 0; kind++)
		r = add_view(m, dir,
			     incr_view_kind_name((enum incr_view_kind)kind),
			     incr_build_input_view(m->build, idx,
						   (enum incr_view_kind)kind));
	return r;
}

static int add_previous(struct incr_mount *m, struct layout_dir *dir,
			size_t idx)
{
	struct layout_dir *previous;
	const char *empty;
	size_t size;
	int r;

	empty = incr_build_empty_previous(m->build, idx, &size);
	if (empty == NULL)
		return add_view(m, dir, "previous",
				incr_build_output_previous(m->build, idx));
	r = layout_add_dir(m, dir, "previous", &previous);
	return r == 0 ?
		       layout_add_bytes(m, previous, "empty.csv", empty, size) :
		       r;
}

static int add_live(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, struct output *o, bool is_current)
{
	struct node *n;
	int r;

	r = output_root_new(o, is_current, &n);
	return r == 0 ? layout_add_node(m, dir, name, n) : r;
}

static int add_staging(struct incr_mount *m, struct layout_dir *dir, size_t idx,
		       struct incr_error *err)
{
	struct node *n;
	int r;

	if (m->options.is_readonly)
		return 0;
	if (m->options.staging == INCR_STAGING_LINK)
		return layout_add_link(m, dir, "staging",
				       incr_build_staging(m->build, idx));
	r = staging_root_new(m, idx, &n, err);
	return r == 0 ? layout_add_node(m, dir, "staging", n) : r;
}

static int add_output(struct incr_mount *m, struct layout_dir *root,
		      const char *alias, size_t idx, struct incr_error *err)
{
	struct layout_dir *dir;
	struct output *o;
	int r;

	r = output_new(m, idx, &o, err);
	if (r < 0)
		return r;
	m->outputs[idx] = o;
	r = layout_add_dir(m, root, alias, &dir);
	if (r == 0)
		r = add_live(m, dir, "added", o, false);
	if (r == 0)
		r = add_previous(m, dir, idx);
	if (r == 0)
		r = add_live(m, dir, "current", o, true);
	return r == 0 ? add_staging(m, dir, idx, err) : r;
}

/* A link that dangles until somebody touches it: the marker of an abort. */
static int add_abort(struct incr_mount *m, struct layout_dir *info,
		     const char *alias)
{
	char *name = NULL, *target = NULL;
	int r = INCR_E_NOMEM;

	if (m->options.is_readonly)
		return 0;
	if (asprintf(&name, "abort%s%s", *alias == '\0' ? "" : "-", alias) < 0)
		name = NULL;
	if (name != NULL &&
	    asprintf(&target, "%s/%s", incr_build_spool(m->build), name) < 0)
		target = NULL;
	if (target != NULL)
		r = layout_add_link(m, info, name, target);
	free(name);
	free(target);
	return r;
}

/* `.incr`, all but what belongs to one alias. */
static int add_info(struct incr_mount *m, struct layout_dir *root,
		    struct layout_dir **out_info)
{
	int r;

	r = layout_add_dir(m, root, ".incr", out_info);
	if (r == 0 && m->options.build_json != NULL)
		r = layout_add_bytes(m, *out_info, "build.json",
				     m->options.build_json,
				     m->options.build_json_size);
	return r == 0 ? add_abort(m, *out_info, "") : r;
}

int layout_build(struct incr_mount *m, struct incr_error *err)
{
	const struct incr_plan *plan = incr_build_plan(m->build);
	struct layout_dir *root, *info;
	int r;

	m->outputs = calloc(plan->n_outputs, sizeof(struct output *));
	if (m->outputs == NULL)
		return mount_fail_nomem(err);
	m->n_outputs = plan->n_outputs;
	r = layout_add_dir(m, NULL, "", &root);
	for (size_t i = 0; i < plan->n_inputs && r == 0; i++)
		r = add_input(m, root, plan->inputs[i].alias, i);
	for (size_t i = 0; i < plan->n_outputs && r == 0; i++) {
		r = add_output(m, root, plan->outputs[i].alias, i, err);
		if (r < 0 && r != INCR_E_NOMEM)
			return r; /* it filled @err */
	}
	if (r == 0)
		r = add_info(m, root, &info);
	for (size_t i = 0; i < plan->n_inputs && r == 0; i++)
		r = add_lists(m, info, plan->inputs[i].alias, i);
	for (size_t i = 0; i < plan->n_outputs && r == 0; i++)
		r = add_abort(m, info, plan->outputs[i].alias);
	return r == 0 ? 0 : mount_fail_nomem(err);
}
