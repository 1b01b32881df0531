/* Random damage to the files of a store in memory, and lists of names. */
#include "config.h"

#include "repair_damage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATHS_MAX 64

bool names_have(const struct names *names, const char *text)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->items[i], text))
			return true;
	return false;
}

void names_add(struct names *names, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (names->n < NAMES_MAX && !names_have(names, text))
		names->items[names->n++] = strdup(text);
}

void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	names->n = 0;
}

const char *names_more(const struct names *a, const struct names *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!names_have(b, a->items[i]))
			return a->items[i];
	return NULL;
}

struct found_files {
	char *paths[PATHS_MAX]; /* owned */
	size_t n;
};

static void add_file(void *closure, const char *path)
{
	struct found_files *f = closure;

	if (f->n < PATHS_MAX)
		f->paths[f->n++] = strdup(path);
}

size_t size_below(struct sim *sim, const char *directory)
{
	struct found_files f = { .n = 0 };
	size_t size, sum = 0;

	sim_each_file(sim, directory, add_file, &f);
	for (size_t i = 0; i < f.n; i++) {
		(void)sim_file(sim, f.paths[i], &size);
		sum += size;
		free(f.paths[i]);
	}
	return sum;
}

size_t damage_below(struct damage *d, size_t n)
{
	return n ? (size_t)(sim_random(&d->seed) % n) : 0;
}

/* A flipped bit, zeros or garbage in @data. */
static void damage_bytes(struct damage *d, uint8_t *data, size_t size)
{
	size_t at = damage_below(d, size), n = 1 + damage_below(d, 5000);

	if (n > size - at)
		n = size - at;
	switch (damage_below(d, 4)) {
	case 0:
		memset(data + at, 0, n);
		break;
	case 1:
		for (size_t i = 0; i < n; i++)
			data[at + i] = (uint8_t)sim_random(&d->seed);
		break;
	default:
		data[at] ^= (uint8_t)(1u << damage_below(d, 8));
	}
}

static void cut_file(struct damage *d, struct sim *sim, const char *path)
{
	size_t size;
	uint8_t *data = sim_file(sim, path, &size), *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	sim_set_file(sim, path, copy, damage_below(d, size));
	free(copy);
}

static void damage_packs(struct damage *d, struct sim *sim)
{
	struct found_files f = { .n = 0 };
	size_t n_times = 1 + damage_below(d, 3), size;
	uint8_t *data;

	sim_each_file(sim, WORLD_STORE "/packs", add_file, &f);
	while (n_times--) {
		const char *path = f.paths[damage_below(d, f.n)];

		data = sim_file(sim, path, &size);
		if (!data || !size)
			continue;
		switch (damage_below(d, 10)) {
		case 0:
			sim_remove_file(sim, path);
			break;
		case 1:
			cut_file(d, sim, path);
			break;
		default:
			damage_bytes(d, data, size);
		}
	}
	while (f.n--)
		free(f.paths[f.n]);
}

/* Not the last record, of which nothing in this store proves that it was there. */
static void damage_log(struct damage *d, struct sim *sim)
{
	const struct world *w = d->world;
	size_t n_times = 1 + damage_below(d, 3), size;
	size_t last = w->records[w->n_records - 1].off;
	uint8_t *data = sim_file(sim, WORLD_LOG, &size);

	while (n_times--)
		damage_bytes(d, data, last);
	if (damage_below(d, 4) == 0)
		data[damage_below(d, LOG_SEGMENT_HEADER_SIZE)] ^= 1;
}

static void damage_index(struct damage *d, struct sim *sim)
{
	struct found_files f = { .n = 0 };
	size_t size;
	uint8_t *data;

	sim_each_file(sim, WORLD_STORE "/index", add_file, &f);
	if (f.n) {
		data = sim_file(sim, f.paths[damage_below(d, f.n)], &size);
		data[damage_below(d, size)] ^=
			(uint8_t)(1u << damage_below(d, 8));
		d->has_bad_index = true;
	}
	while (f.n--)
		free(f.paths[f.n]);
}

static void tear_tail(struct damage *d, struct sim *sim)
{
	size_t size, n = 1 + damage_below(d, 300);
	uint8_t *data = sim_file(sim, WORLD_LOG, &size);
	uint8_t *longer = malloc(size + n);

	if (!longer)
		abort();
	memcpy(longer, data, size);
	for (size_t i = 0; i < n; i++)
		longer[size + i] = (uint8_t)sim_random(&d->seed);
	sim_set_file(sim, WORLD_LOG, longer, size + n);
	free(longer);
	d->has_torn_tail = true;
}

static void leave_orphans(struct damage *d, struct sim *sim)
{
	sim_set_file(sim, WORLD_STORE "/spool/t77/put/left", "x", 1);
	sim_set_file(sim, WORLD_STORE "/spool/t1/put/left", "x", 1);
	d->has_orphans = true;
}

void damage_do(struct damage *d, struct sim *sim)
{
	size_t kinds = 1 + damage_below(d, 31);

	if (kinds & 1)
		damage_packs(d, sim);
	if (kinds & 2)
		damage_log(d, sim);
	if (kinds & 4)
		damage_index(d, sim);
	if (kinds & 8)
		tear_tail(d, sim);
	if (kinds & 16)
		leave_orphans(d, sim);
}
