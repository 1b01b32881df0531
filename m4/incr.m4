dnl INCR_TRY_CFLAGS(VARIABLE, FLAGS): append each flag that the compiler takes.
dnl -Werror turns "unknown option" warnings of clang into a refusal.
AC_DEFUN([INCR_TRY_CFLAGS], [
for incr_flag in m4_normalize([$2]); do
	AC_MSG_CHECKING([whether $CC accepts $incr_flag])
	incr_save=$CFLAGS
	CFLAGS="$CFLAGS -Werror $incr_flag"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
		[$1="$$1 $incr_flag"
		AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])])
	CFLAGS=$incr_save
done
])

dnl INCR_TRY_LDFLAGS(VARIABLE, FLAGS): append each flag that the linker takes.
AC_DEFUN([INCR_TRY_LDFLAGS], [
for incr_flag in m4_normalize([$2]); do
	AC_MSG_CHECKING([whether the linker accepts $incr_flag])
	incr_save=$LDFLAGS
	LDFLAGS="$LDFLAGS -Werror $incr_flag"
	AC_LINK_IFELSE([AC_LANG_PROGRAM()],
		[$1="$$1 $incr_flag"
		AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])])
	LDFLAGS=$incr_save
done
])

dnl INCR_SANITIZER(NAME, FLAG, HELP): a switch --enable-NAME that compiles and
dnl links everything with FLAG.
AC_DEFUN([INCR_SANITIZER], [
	AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$3])])
	AS_IF([test "x$enable_$1" = xyes], [
		SANITIZE_FLAGS="$SANITIZE_FLAGS $2"
		incr_sanitizers="$incr_sanitizers $1"
	])
])

dnl INCR_REQUIRE(PREFIX, MODULE, DEBIAN-PACKAGE): stop when MODULE is missing.
AC_DEFUN([INCR_REQUIRE], [
	PKG_CHECK_MODULES([$1], [$2], [], [AC_MSG_ERROR([$2 not found; on Debian or Ubuntu: apt-get install $3])])
])
