/* Allocations of the code under test: counted, and one of them refused. */
#include "config.h"

#include "fault_alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

struct fault_alloc fault_alloc;

static bool is_on;
static __thread int n_pauses;

void fault_alloc_start(void)
{
	__atomic_store_n(&is_on, true, __ATOMIC_SEQ_CST);
}

void fault_alloc_stop(void)
{
	__atomic_store_n(&is_on, false, __ATOMIC_SEQ_CST);
}

void fault_alloc_pause(void)
{
	n_pauses++;
}

void fault_alloc_resume(void)
{
	n_pauses--;
}

static bool is_counted(void)
{
	return __atomic_load_n(&is_on, __ATOMIC_SEQ_CST) && n_pauses == 0;
}

static bool fails(void)
{
	struct fault_alloc *f = &fault_alloc;
	long n;

	if (!is_counted())
		return false;
	n = __atomic_add_fetch(&f->n_calls, 1, __ATOMIC_SEQ_CST);
	if (f->fail_at == 0 || n < f->fail_at ||
	    (n > f->fail_at && !f->fails_for_good))
		return false;
	__atomic_add_fetch(&f->n_failed, 1, __ATOMIC_SEQ_CST);
	errno = ENOMEM;
	return true;
}

static void *gave(void *p)
{
	if (p && is_counted())
		__atomic_add_fetch(&fault_alloc.n_live, 1, __ATOMIC_SEQ_CST);
	return p;
}

/* The names that the linker gives (--wrap): no header has them. */
#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

WRAP(void *, malloc, size_t size)
{
	return fails() ? NULL : gave(__real_malloc(size));
}

WRAP(void *, calloc, size_t n, size_t size)
{
	return fails() ? NULL : gave(__real_calloc(n, size));
}

WRAP(void *, realloc, void *p, size_t size)
{
	void *moved;

	if (fails())
		return NULL;
	moved = __real_realloc(p, size);
	return p ? moved : gave(moved);
}

WRAP(void *, reallocarray, void *p, size_t n, size_t size)
{
	void *moved;

	if (fails())
		return NULL;
	moved = __real_reallocarray(p, n, size);
	return p ? moved : gave(moved);
}

WRAP(void, free, void *p)
{
	if (p && is_counted())
		__atomic_sub_fetch(&fault_alloc.n_live, 1, __ATOMIC_SEQ_CST);
	__real_free(p);
}

WRAP(char *, strdup, const char *s)
{
	return fails() ? NULL : gave(__real_strdup(s));
}

WRAP(char *, strndup, const char *s, size_t size)
{
	return fails() ? NULL : gave(__real_strndup(s, size));
}

static int print(char **out, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
int __wrap_vasprintf(char **out, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
int __wrap_asprintf(char **out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int __wrap___vasprintf_chk(char **out, int flag, const char *format,
			   va_list args) __attribute__((format(printf, 3, 0)));
int __wrap___asprintf_chk(char **out, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int print(char **out, const char *format, va_list args)
{
	va_list again;
	int n;

	if (fails())
		return -1;
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*out = n < 0 ? NULL : gave(__real_malloc((size_t)n + 1));
	return *out ? vsnprintf(*out, (size_t)n + 1, format, args) : -1;
}

WRAP(int, vasprintf, char **out, const char *format, va_list args)
{
	return print(out, format, args);
}

WRAP(int, asprintf, char **out, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = print(out, format, args);
	va_end(args);
	return n;
}

/* The same of a build with _FORTIFY_SOURCE. */
WRAP(int, __vasprintf_chk, char **out, int flag, const char *format,
     va_list args)
{
	(void)flag;
	return print(out, format, args);
}

WRAP(int, __asprintf_chk, char **out, int flag, const char *format, ...)
{
	va_list args;
	int n;

	(void)flag;
	va_start(args, format);
	n = print(out, format, args);
	va_end(args);
	return n;
}

WRAP(ZSTD_CCtx *, ZSTD_createCCtx, void)
{
	return fails() ? NULL : gave(__real_ZSTD_createCCtx());
}

WRAP(size_t, ZSTD_freeCCtx, ZSTD_CCtx *c)
{
	if (c && is_counted())
		__atomic_sub_fetch(&fault_alloc.n_live, 1, __ATOMIC_SEQ_CST);
	return __real_ZSTD_freeCCtx(c);
}

WRAP(ZSTD_DCtx *, ZSTD_createDCtx, void)
{
	return fails() ? NULL : gave(__real_ZSTD_createDCtx());
}

WRAP(size_t, ZSTD_freeDCtx, ZSTD_DCtx *d)
{
	if (d && is_counted())
		__atomic_sub_fetch(&fault_alloc.n_live, 1, __ATOMIC_SEQ_CST);
	return __real_ZSTD_freeDCtx(d);
}

WRAP(XXH3_state_t *, XXH3_createState, void)
{
	return fails() ? NULL : gave(__real_XXH3_createState());
}

WRAP(XXH_errorcode, XXH3_freeState, XXH3_state_t *s)
{
	if (s && is_counted())
		__atomic_sub_fetch(&fault_alloc.n_live, 1, __ATOMIC_SEQ_CST);
	return __real_XXH3_freeState(s);
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
     void *(*run)(void *), void *closure)
{
	return fails() ?
		       EAGAIN :
		       __real_pthread_create(thread, attributes, run, closure);
}
