/*
 * Numbers of the mount: node ids, directory cookies, errors.
 */
#include "error_map.h"
#include "inode.h"
#include "testing.h"

#include <errno.h>

static void check_id(uint32_t slot, uint64_t place, uint8_t depth)
{
	struct inode ino = inode_unpack(inode_pack(slot, place, depth));

	CHECK_INT_EQ(slot, ino.slot);
	CHECK_INT_EQ(place, ino.place);
	CHECK_INT_EQ(depth, ino.depth);
}

static void test_inode_pack__limits__come_back(void)
{
	check_id(0, 1, 0);
	check_id(1, 0, INODE_ROOT_DEPTH);
	check_id(1, INODE_MAX_PLACE, 250);
	check_id(INODE_N_SLOTS - 1, INODE_MAX_PLACE, INODE_ROOT_DEPTH);
	check_id(INODE_N_SLOTS - 1, 0, 0);
}

static void test_inode_pack__two_nodes__differ(void)
{
	CHECK(inode_pack(1, 2, 3) != inode_pack(2, 1, 3));
	CHECK(inode_pack(1, 2, 0) != inode_pack(1, 2, 1));
	CHECK(inode_pack(1, 0, 0) != inode_pack(0, 1, 0));
}

static void test_inode_unpack__a_table_id__has_no_slot(void)
{
	CHECK_INT_EQ(0, inode_unpack(1).slot);
	CHECK_INT_EQ(0, inode_unpack((UINT64_C(1) << 48) - 1).slot);
}

static void test_inode_cookie__limits__come_back_above_the_dots(void)
{
	static const struct {
		uint64_t place;
		uint8_t depth;
	} rows[] = { { 0, 0 }, { 0, 1 }, { 77, 250 }, { INODE_MAX_PLACE, 250 } };
	uint64_t place;
	uint8_t depth;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t cookie = inode_cookie(rows[i].place, rows[i].depth);

		CHECK(cookie > INODE_COOKIE_DOTDOT);
		CHECK(cookie < UINT64_C(1) << 56);
		inode_from_cookie(cookie, &place, &depth);
		CHECK_INT_EQ(rows[i].place, place);
		CHECK_INT_EQ(rows[i].depth, depth);
	}
}

static void test_inode_mix__small_numbers__are_distinct_and_not_0(void)
{
	uint64_t seen[100] = { 0 };
	size_t n = 0;

	for (uint64_t a = 0; a < 10; a++) {
		for (uint64_t b = 0; b < 10; b++) {
			uint64_t ino = inode_mix(a, b);

			CHECK(ino != 0);
			for (size_t i = 0; i < n; i++)
				CHECK(seen[i] != ino);
			seen[n++] = ino;
		}
	}
}

static void test_error_map_errno__each_code__has_its_errno(void)
{
	static const struct {
		int code, want;
	} rows[] = {
		{ INCR_E_NOMEM, ENOMEM },
		{ INCR_E_IO, EIO },
		{ INCR_E_NOSPC, ENOSPC },
		{ INCR_E_EXISTS, EEXIST },
		{ INCR_E_NOTFOUND, ENOENT },
		{ INCR_E_BUSY, EBUSY },
		{ INCR_E_CONFLICT, ESTALE },
		{ INCR_E_REFUSED, EPERM },
		{ INCR_E_CORRUPT, EIO },
		{ INCR_E_UNSUPPORTED, EOPNOTSUPP },
		{ INCR_E_INVALID, EINVAL },
		{ INCR_E_READONLY, EROFS },
		{ INCR_E_RANGE, ESTALE },
		{ INCR_E_DEAD, EIO },
		{ -1000, EIO },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_INT_EQ(rows[i].want, error_map_errno(rows[i].code));
}

static void test_mount_fail__with_errno__says_it(void)
{
	struct incr_error err = INCR_ERROR_INIT;

	CHECK_ERR(INCR_E_IO, mount_fail(&err, INCR_E_IO, "mount-failed", EACCES,
					"/m", "cannot mount"));
	CHECK_INT_EQ(EACCES, err.sys_errno);
	CHECK_STR_EQ("mount-failed", err.word);
	CHECK_STR_EQ("/m", err.thing);
	CHECK_STR_EQ("cannot mount: Permission denied", err.message);
	CHECK_ERR(INCR_E_NOMEM, mount_fail_nomem(NULL));
	incr_error_release(&err);
}

static const struct testing_test tests[] = {
	TEST(test_inode_pack__limits__come_back),
	TEST(test_inode_pack__two_nodes__differ),
	TEST(test_inode_unpack__a_table_id__has_no_slot),
	TEST(test_inode_cookie__limits__come_back_above_the_dots),
	TEST(test_inode_mix__small_numbers__are_distinct_and_not_0),
	TEST(test_error_map_errno__each_code__has_its_errno),
	TEST(test_mount_fail__with_errno__says_it),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "mount_inode", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
