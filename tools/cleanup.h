/*
 * Cleanup attributes: the one way in which tools/ releases things.
 */
#ifndef INCR_TOOLS_CLEANUP_H
#define INCR_TOOLS_CLEANUP_H

#include "incr.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *slot)
{
	free(*(void **)slot);
}

static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* only read, or checked by the caller */
}

static inline void cleanup_json(json_t **json)
{
	json_decref(*json);
}

static inline void cleanup_view(struct incr_view **view)
{
	if (*view)
		incr_view_unref(*view);
}

static inline void cleanup_view_iter(struct incr_view_iter **it)
{
	if (*it)
		incr_view_iter_free(*it);
}

static inline void cleanup_changes(struct incr_changes **changes)
{
	if (*changes)
		incr_changes_free(*changes);
}

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_fd_ _cleanup_(cleanup_fd)
#define _cleanup_json_ _cleanup_(cleanup_json)
#define _cleanup_view_ _cleanup_(cleanup_view)
#define _cleanup_view_iter_ _cleanup_(cleanup_view_iter)
#define _cleanup_changes_ _cleanup_(cleanup_changes)
#define _cleanup_node_ _cleanup_(incr_node_release)
#define _cleanup_error_ _cleanup_(incr_error_release)
#define _cleanup_dataset_ _cleanup_(incr_dataset_info_release)
#define _cleanup_branch_ _cleanup_(incr_branch_info_release)
#define _cleanup_txn_ _cleanup_(incr_txn_info_release)
#define _cleanup_plan_ _cleanup_(incr_plan_release)
#define _cleanup_build_info_ _cleanup_(incr_build_info_release)
#define _cleanup_transform_ _cleanup_(incr_transform_release)

#endif
