/*
 * Times and numbers, as text and back.
 */
#include "config.h"

#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_SEC INT64_C(1000000000)

/* Seconds rounded down, and what is left of the nanoseconds. */
static int64_t split_time(int64_t time_ns, int64_t *out_rest)
{
	int64_t sec = time_ns / NS_PER_SEC, rest = time_ns % NS_PER_SEC;

	if (rest < 0) {
		rest += NS_PER_SEC;
		sec--;
	}
	*out_rest = rest;
	return sec;
}

static size_t put_seconds(int64_t sec, struct text *out)
{
	time_t when = (time_t)sec;
	struct tm tm;

	if (!gmtime_r(&when, &tm))
		return (size_t)snprintf(out->str, sizeof(out->str), "?");
	return strftime(out->str, sizeof(out->str), "%Y-%m-%dT%H:%M:%S", &tm);
}

const char *text_time(int64_t time_ns, struct text *out)
{
	int64_t rest, sec = split_time(time_ns, &rest);
	size_t length = put_seconds(sec, out);

	if (rest != 0) {
		length += (size_t)snprintf(out->str + length,
					   sizeof(out->str) - length,
					   ".%09" PRId64, rest);
		while (out->str[length - 1] == '0')
			length--;
	}
	(void)snprintf(out->str + length, sizeof(out->str) - length, "Z");
	return out->str;
}

const char *text_time_short(int64_t time_ns, struct text *out)
{
	int64_t rest, sec = split_time(time_ns, &rest);
	size_t length = put_seconds(sec, out);

	(void)snprintf(out->str + length, sizeof(out->str) - length, "Z");
	return out->str;
}

/* Exactly @n digits at *@at, between @least and @most. */
static bool parse_digits(const char **at, int n, int least, int most,
			 int *out_number)
{
	int number = 0;

	for (int i = 0; i < n; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		number = number * 10 + (**at - '0');
	}
	*out_number = number;
	return number >= least && number <= most;
}

static bool skip_char(const char **at, const char *allowed)
{
	if (**at == '\0' || !strchr(allowed, **at))
		return false;
	(*at)++;
	return true;
}

static bool parse_fraction(const char **at, int64_t *out_ns)
{
	int64_t ns = 0, scale = NS_PER_SEC / 10;

	if (**at != '.') {
		*out_ns = 0;
		return true;
	}
	(*at)++;
	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		ns += (**at - '0') * scale;
		scale /= 10;
	}
	*out_ns = ns;
	return true;
}

/* "Z", "+01:00": seconds east of UTC. */
static bool parse_offset(const char **at, int *out_sec)
{
	int sign, hours, minutes;

	if (skip_char(at, "Zz")) {
		*out_sec = 0;
		return true;
	}
	sign = **at == '-' ? -1 : 1;
	if (!skip_char(at, "+-") || !parse_digits(at, 2, 0, 23, &hours) ||
	    !skip_char(at, ":") || !parse_digits(at, 2, 0, 59, &minutes))
		return false;
	*out_sec = sign * (hours * 3600 + minutes * 60);
	return true;
}

static bool is_day_of_month(const struct tm *tm)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30,
				    31, 31, 30, 31, 30, 31 };
	int year = tm->tm_year + 1900;
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return tm->tm_mday <= days[tm->tm_mon] + (tm->tm_mon == 1 && is_leap);
}

bool text_parse_time(const char *str, int64_t *out_time_ns)
{
	struct tm tm = { 0 };
	int offset;
	int64_t sec, ns, fraction;

	if (!parse_digits(&str, 4, 0, 9999, &tm.tm_year) ||
	    !skip_char(&str, "-") ||
	    !parse_digits(&str, 2, 1, 12, &tm.tm_mon) ||
	    !skip_char(&str, "-") ||
	    !parse_digits(&str, 2, 1, 31, &tm.tm_mday) ||
	    !skip_char(&str, "Tt ") ||
	    !parse_digits(&str, 2, 0, 23, &tm.tm_hour) ||
	    !skip_char(&str, ":") ||
	    !parse_digits(&str, 2, 0, 59, &tm.tm_min) ||
	    !skip_char(&str, ":") ||
	    !parse_digits(&str, 2, 0, 60, &tm.tm_sec) ||
	    !parse_fraction(&str, &fraction) || !parse_offset(&str, &offset) ||
	    *str != '\0')
		return false;

	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (!is_day_of_month(&tm))
		return false;
	sec = (int64_t)timegm(&tm) - offset;
	if (__builtin_mul_overflow(sec, NS_PER_SEC, &ns) ||
	    __builtin_add_overflow(ns, fraction, &ns))
		return false;
	*out_time_ns = ns;
	return true;
}

bool text_parse_u64(const char *str, uint64_t *out_number)
{
	unsigned long long number;
	char *end;

	if (*str < '0' || *str > '9')
		return false;
	errno = 0;
	number = strtoull(str, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	*out_number = number;
	return true;
}

bool text_parse_i64(const char *str, int64_t *out_number)
{
	const char *digits = *str == '-' || *str == '+' ? str + 1 : str;
	long long number;
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	number = strtoll(str, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	*out_number = number;
	return true;
}

bool text_parse_id(const char *str, char letter, uint64_t *out_number)
{
	uint64_t number;

	if (str[0] != letter || str[1] == '0' ||
	    !text_parse_u64(str + 1, &number))
		return false;
	*out_number = number;
	return true;
}
