/* Walking sources: order, special files, links, duplicates and conflicts. */
#include "config.h"

#include "source_walk.h"

#include "content_kit.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct source_walk *new_walk(bool skips_special)
{
	struct source_walk *w = NULL;

	CHECK_OK(source_walk_new(&io_posix, skips_special, &w));
	return w;
}

static int add_tree(struct source_walk *w, const char *tree, const char *prefix)
{
	_cleanup_free_ char *path = kit_path(tree);

	return source_walk_add_tree(w, AT_FDCWD, path, prefix, NULL);
}

/* The paths of the walk, a line each; the last result in *out_result. */
static void list_walk(struct source_walk *w, struct buf *out, int *out_result,
		      struct incr_error *err)
{
	const struct source_entry *e;
	int r;

	while ((r = source_walk_next(w, &e, err)) == 0) {
		CHECK_INT_EQ(strlen(e->path), e->path_length);
		CHECK_OK(buf_put(out, e->path, e->path_length));
		CHECK_OK(buf_put_u8(out, '\n'));
	}
	CHECK_OK(buf_put_u8(out, 0));
	*out_result = r;
}

static void check_walk(struct source_walk *w, const char *want, int want_result,
		       const char *want_word)
{
	struct incr_error err = INCR_ERROR_INIT;
	_cleanup_buf_ struct buf got = BUF_INIT;
	int r;

	list_walk(w, &got, &r, &err);
	CHECK_STR_EQ(want, (char *)got.data);
	CHECK_INT_EQ(want_result, r);
	CHECK_STR_EQ(want_word, err.word);
	incr_error_release(&err);
	source_walk_free(w);
}

static void test_source_walk_next__any_names__sorted_as_sort_does(void)
{
	static const char *const paths[] = {
		"t/a",	     "t/a.b",	 "t/a-/x",   "t/b/c/d",	 "t/b/c.d",
		"t/b-c",     "t/b.x/y",	 "t/b0",     "t/\xff",	 "t/\x01/q",
		"t/B/z",     "t/B z",	 "t/c/c/c",  "t/c/c-/c", "t/c/c\xc3",
		"t/dir/one", "t/dir!/x", "t/dir0/y",
	};
	_cleanup_free_ char *command = NULL;
	_cleanup_buf_ struct buf got = BUF_INIT;
	struct source_walk *w = new_walk(false);
	char want[4096];
	size_t n;
	FILE *sort;
	int r;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		kit_write(paths[i], "x", 1);
	REQUIRE(asprintf(&command,
			 "cd '%s/t' && find . -type f -printf '%%P\\n' | "
			 "LC_ALL=C sort",
			 testing_tmpdir()) > 0);
	sort = popen(command, "r");
	REQUIRE(sort != NULL);
	n = fread(want, 1, sizeof(want) - 1, sort);
	want[n] = '\0';
	CHECK_INT_EQ(0, pclose(sort));
	REQUIRE_OK(add_tree(w, "t", ""));
	list_walk(w, &got, &r, NULL);
	CHECK_INT_EQ(1, r);
	CHECK_STR_EQ(want, (char *)got.data);
	source_walk_free(w);
}

static void test_source_walk_next__several_sources__merged_by_path(void)
{
	struct source_walk *w = new_walk(false);
	_cleanup_free_ char *file = kit_path("one");

	kit_write("one", "x", 1);
	kit_write("t/b", "x", 1);
	kit_write("t/d/e", "x", 1);
	kit_write("u/a", "x", 1);
	kit_write("u/z", "x", 1);
	REQUIRE_OK(add_tree(w, "t", "p"));
	REQUIRE_OK(add_tree(w, "u", NULL));
	REQUIRE_OK(add_tree(w, "u", "p/c"));
	REQUIRE_OK(source_walk_add_file(w, AT_FDCWD, file, "p/bb", NULL));
	REQUIRE_OK(source_walk_add_stream(w, 0, "q", NULL));
	REQUIRE_OK(source_walk_add_removal(w, "b!", 1, NULL));
	check_walk(w, "a\nb\np/b\np/bb\np/c/a\np/c/z\np/d/e\nq\nz\n", 1, "");
}

static void test_source_walk_next__nothing__ends(void)
{
	_cleanup_free_ char *dir = kit_path("empty");
	struct source_walk *w = new_walk(false);

	check_walk(w, "", 1, "");
	REQUIRE(mkdir(dir, 0777) == 0);
	w = new_walk(false);
	REQUIRE_OK(add_tree(w, "empty", ""));
	check_walk(w, "", 1, "");
}

static void test_source_walk_next__same_path_twice__is_an_error(void)
{
	struct source_walk *w = new_walk(false);

	kit_write("t/a", "x", 1);
	kit_write("u/a", "x", 1);
	REQUIRE_OK(add_tree(w, "t", ""));
	REQUIRE_OK(add_tree(w, "u", ""));
	check_walk(w, "a\n", INCR_E_INVALID, "duplicate-path");

	w = new_walk(false);
	REQUIRE_OK(add_tree(w, "t", ""));
	REQUIRE_OK(source_walk_add_removal(w, "a", 1, NULL));
	check_walk(w, "a\n", INCR_E_INVALID, "duplicate-path");
}

static void test_source_walk_next__file_beside_its_child__is_an_error(void)
{
	struct source_walk *w = new_walk(false);

	kit_write("t/x", "x", 1);
	kit_write("u/x/y", "x", 1);
	kit_write("u/x-a", "x", 1);
	kit_write("u/x-a.b", "x", 1);
	REQUIRE_OK(add_tree(w, "t", ""));
	REQUIRE_OK(add_tree(w, "u", ""));
	check_walk(w, "x\nx-a\nx-a.b\n", INCR_E_INVALID, "path-conflict");

	/* A file becomes a directory in one transaction. */
	w = new_walk(false);
	REQUIRE_OK(add_tree(w, "u", ""));
	REQUIRE_OK(source_walk_add_removal(w, "x", 1, NULL));
	check_walk(w, "x\nx-a\nx-a.b\nx/y\n", 1, "");
}

static void make_specials(void)
{
	_cleanup_free_ char *link = kit_path("t/link"),
			    *fifo = kit_path("t/pipe");
	_cleanup_free_ char *dir_link = kit_path("t/dirlink");

	kit_write("t/a", "x", 1);
	kit_write("t/z", "x", 1);
	kit_write("other/secret", "x", 1);
	CHECK_INT_EQ(0, symlink("a", link));
	CHECK_INT_EQ(0, symlink("../other", dir_link));
	CHECK_INT_EQ(0, mkfifo(fifo, 0666));
}

static void test_source_walk_next__special_files__named_or_left_out(void)
{
	_cleanup_free_ char *fifo = kit_path("t/pipe"),
			    *link = kit_path("t/link");
	struct source_walk *w = new_walk(false);

	make_specials();
	REQUIRE_OK(add_tree(w, "t", ""));
	check_walk(w, "a\n", INCR_E_INVALID, "special-file");

	w = new_walk(true);
	REQUIRE_OK(add_tree(w, "t", ""));
	check_walk(w, "a\nz\n", 1, "");

	w = new_walk(false);
	REQUIRE_OK(source_walk_add_file(w, AT_FDCWD, fifo, "f", NULL));
	check_walk(w, "", INCR_E_INVALID, "special-file");
	w = new_walk(false);
	REQUIRE_OK(source_walk_add_file(w, AT_FDCWD, link, "f", NULL));
	check_walk(w, "", INCR_E_INVALID, "special-file");
	w = new_walk(true);
	REQUIRE_OK(source_walk_add_file(w, AT_FDCWD, link, "f", NULL));
	check_walk(w, "", 1, "");
}

static void test_source_walk_next__argument_is_a_link__is_followed(void)
{
	_cleanup_free_ char *link = kit_path("link");
	struct source_walk *w = new_walk(false);

	kit_write("t/a", "x", 1);
	REQUIRE(symlink("t", link) == 0);
	REQUIRE_OK(add_tree(w, "link", ""));
	check_walk(w, "a\n", 1, "");
}

static void test_source_walk_next__directory_that_is_missing__is_an_error(void)
{
	struct source_walk *w = new_walk(false);

	REQUIRE_OK(add_tree(w, "missing", ""));
	check_walk(w, "", INCR_E_NOTFOUND, "not-found");
}

static void test_source_walk_add__bad_names__are_refused(void)
{
	struct source_walk *w = new_walk(false);

	CHECK_ERR(INCR_E_INVALID, add_tree(w, "t", "/p"));
	CHECK_ERR(INCR_E_INVALID, add_tree(w, "t", "p/"));
	CHECK_ERR(INCR_E_INVALID, source_walk_add_stream(w, 0, "..", NULL));
	CHECK_ERR(INCR_E_INVALID, source_walk_add_removal(w, "", 0, NULL));
	CHECK_ERR(INCR_E_INVALID,
		  source_walk_add_file(w, AT_FDCWD, "x", "a//b", NULL));
	source_walk_free(w);
}

/* Deeper than a path may be: an error, not a stack or descriptor problem. */
static void test_source_walk_next__very_deep__is_refused(void)
{
	_cleanup_free_ char *top = kit_path("deep");
	struct source_walk *w = new_walk(false);
	int fd;

	REQUIRE(mkdir(top, 0777) == 0);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 260; i++) {
		int next;

		REQUIRE(mkdirat(fd, "d", 0777) == 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
	REQUIRE_OK(add_tree(w, "deep", ""));
	check_walk(w, "", INCR_E_INVALID, "bad-path");
}

static const struct testing_test tests[] = {
	TEST(test_source_walk_next__any_names__sorted_as_sort_does),
	TEST(test_source_walk_next__several_sources__merged_by_path),
	TEST(test_source_walk_next__nothing__ends),
	TEST(test_source_walk_next__same_path_twice__is_an_error),
	TEST(test_source_walk_next__file_beside_its_child__is_an_error),
	TEST(test_source_walk_next__special_files__named_or_left_out),
	TEST(test_source_walk_next__argument_is_a_link__is_followed),
	TEST(test_source_walk_next__directory_that_is_missing__is_an_error),
	TEST(test_source_walk_add__bad_names__are_refused),
	TEST(test_source_walk_next__very_deep__is_refused),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "source_walk", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
