dnl INCR_TRY_CFLAGS(VARIABLE, FLAGS): append each flag that the compiler takes.
dnl -Werror turns "unknown option" warnings of clang into a refusal.
AC_DEFUN([INCR_TRY_CFLAGS], [
m4_foreach_w([incr_flag], [$2], [
	AS_VAR_PUSHDEF([incr_cache], [incr_cv_cflag_]incr_flag)
	AC_CACHE_CHECK([whether $CC accepts ]incr_flag, [incr_cache], [
		incr_save=$CFLAGS
		CFLAGS="$CFLAGS -Werror incr_flag"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
			[AS_VAR_SET([incr_cache], [yes])],
			[AS_VAR_SET([incr_cache], [no])])
		CFLAGS=$incr_save
	])
	AS_VAR_IF([incr_cache], [yes], [$1="$$1 incr_flag"])
	AS_VAR_POPDEF([incr_cache])
])])

dnl INCR_TRY_LDFLAGS(VARIABLE, FLAGS): append each flag that the linker takes.
AC_DEFUN([INCR_TRY_LDFLAGS], [
m4_foreach_w([incr_flag], [$2], [
	AS_VAR_PUSHDEF([incr_cache], [incr_cv_ldflag_]incr_flag)
	AC_CACHE_CHECK([whether the linker accepts ]incr_flag, [incr_cache], [
		incr_save=$LDFLAGS
		LDFLAGS="$LDFLAGS -Werror incr_flag"
		AC_LINK_IFELSE([AC_LANG_PROGRAM()],
			[AS_VAR_SET([incr_cache], [yes])],
			[AS_VAR_SET([incr_cache], [no])])
		LDFLAGS=$incr_save
	])
	AS_VAR_IF([incr_cache], [yes], [$1="$$1 incr_flag"])
	AS_VAR_POPDEF([incr_cache])
])])

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
