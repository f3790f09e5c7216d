/* The floor: every file read by one pread on a kept descriptor, every number in it made an int64.
 *
 * usage: floor FILES... < list; the list is one directory a line, closed by an empty line. Then each
 * line on standard input asks for a sweep, and is answered by its CPU time in nanoseconds, the number
 * of reads and the sum of the numbers read. No keys are looked up and nothing is kept: a program
 * that did less would not have read the files.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t numbers_of(const char *data, ssize_t size, int64_t *count)
{
	int64_t sum = 0, value = 0;
	int inside = 0;

	for (ssize_t i = 0; i < size; i++) {
		unsigned digit = (unsigned char)data[i] - '0';
		if (digit < 10) {
			value = value * 10 + digit;
			inside = 1;
		} else if (inside) {
			sum += value;
			++*count;
			value = inside = 0;
		}
	}
	return sum;
}

static int64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int main(int files, char **names)
{
	static char data[65536];
	char line[4096];
	int *fds = NULL, kept = 0;

	while (fgets(line, sizeof(line), stdin) && line[0] != '\n') {
		line[strcspn(line, "\n")] = '\0';
		int directory = open(line, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fds = realloc(fds, (kept + files) * sizeof(*fds));
		for (int i = 1; i < files; i++) {
			fds[kept] = openat(directory, names[i], O_RDONLY | O_CLOEXEC);
			if (fds[kept++] < 0) {
				perror(line);
				return 1;
			}
		}
		close(directory);
	}
	while (fgets(line, sizeof(line), stdin)) {
		int64_t sum = 0, count = 0, began = cpu_ns();
		for (int i = 0; i < kept; i++) {
			ssize_t size = pread(fds[i], data, sizeof(data), 0);
			if (size < 0) {
				perror("pread");
				return 1;
			}
			sum += numbers_of(data, size, &count);
		}
		printf("%" PRId64 " %d %" PRId64 " %" PRId64 "\n", cpu_ns() - began, kept, count, sum);
		fflush(stdout);
	}
	return 0;
}
