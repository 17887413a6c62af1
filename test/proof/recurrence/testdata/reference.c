// Expands recurrence rules with libical, and turns local times into instants with the C library. The proof compares
// both with autopost. Each line of the input is ZONE|RULE|START|END, with local times such as 20261201T100000; each line
// of the output has the dates up to END as LOCAL=EPOCH, or "error".
#define _GNU_SOURCE
#include <libical/ical.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// shown is the number of a local time that a clock shows at t.
static long long shown(time_t t) {
	struct tm tm;
	localtime_r(&t, &tm);
	return (long long)t + tm.tm_gmtoff;
}

// first is the first instant when a clock shows local or later.
static time_t first(long long local) {
	long least = 0, most = 0;
	time_t found = 0;
	int any = 0;
	for (int hours = -26; hours <= 26; hours += 13) {
		long offset = shown((time_t)(local + hours * 3600)) - (local + hours * 3600);
		time_t t = (time_t)(local - offset);
		if (hours == -26 || offset < least)
			least = offset;
		if (hours == -26 || offset > most)
			most = offset;
		if (shown(t) == local && (!any || t < found)) {
			found = t;
			any = 1;
		}
	}
	if (any)
		return found;
	long long before = local - most - 1, after = local - least;
	while (after - before > 1) {
		long long middle = (before + after) / 2;
		if (shown((time_t)middle) >= local)
			after = middle;
		else
			before = middle;
	}
	return (time_t)after;
}

int main(void) {
	char line[4096];
	icalerror_set_errors_are_fatal(0);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		char *rest = line;
		char *zone = strsep(&rest, "|"), *rule = strsep(&rest, "|"), *start = strsep(&rest, "|");
		if (start == NULL || rest == NULL)
			return 1;
		setenv("TZ", zone, 1);
		tzset();
		struct icalrecurrencetype recur = icalrecurrencetype_from_string(rule);
		struct icaltimetype end = icaltime_from_string(rest);
		// Without an end, libical searches for a rule without dates for many centuries.
		if (icaltime_is_null_time(recur.until) || icaltime_compare(recur.until, end) > 0)
			recur.until = end;
		icalrecur_iterator *dates = recur.freq == ICAL_NO_RECURRENCE ? NULL
			: icalrecur_iterator_new(recur, icaltime_from_string(start));
		if (dates == NULL) {
			puts("error");
			continue;
		}
		for (;;) {
			struct icaltimetype next = icalrecur_iterator_next(dates);
			if (icaltime_is_null_time(next) || icaltime_compare(next, end) > 0)
				break;
			struct tm tm = {.tm_year = next.year - 1900, .tm_mon = next.month - 1, .tm_mday = next.day,
				.tm_hour = next.hour, .tm_min = next.minute, .tm_sec = next.second};
			printf("%04d%02d%02dT%02d%02d%02d=%lld ", next.year, next.month, next.day, next.hour, next.minute,
				next.second, (long long)first((long long)timegm(&tm)));
		}
		putchar('\n');
		fflush(stdout);
		icalrecur_iterator_free(dates);
	}
	return 0;
}
