/*
 * Preloaded into a server (LD_PRELOAD): a disk that keeps what was flushed, and of the rest
 * what a test decides after it has killed the server (forgetful_disk.rs).
 *
 * What is written to a file of the data directory is written, as ever. But before that, a
 * journal of the file gets what was there and what is written. fsync() and fdatasync() empty
 * the journal; they flush nothing, because the kernel outlives the server. Names are durable
 * at once: creating, renaming and removing a file. So is making a file shorter.
 *
 * A journal is named by the number of the file's inode. A record is a struct entry, then what
 * was there, then what is written. A lock on the journal orders processes.
 *
 * These are the functions by which PostgreSQL writes files (nm -D postgres). What it writes by
 * fopen() is durable at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct entry {
	uint64_t offset;
	uint64_t size_before; /* of the file */
	uint64_t old_length;  /* of what was there */
	uint64_t new_length;  /* of what is written */
};

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found == NULL)
		abort();
	return found;
}

/* Whether it is a file that a server's start depends on. */
static int is_kept(const char *path)
{
	const char *data = getenv("FORGETFUL_DISK_DATA");
	size_t length = data == NULL ? 0 : strlen(data);

	return length > 0 && strncmp(path, data, length) == 0 && path[length] == '/' &&
	       strstr(path, "/postmaster.") == NULL && strstr(path, "/pg_stat") == NULL;
}

/* The journal of a file; -1 if it has none. */
static int open_journal(ino_t inode, int flags)
{
	char path[4096];
	int journal;

	snprintf(path, sizeof path, "%s/%ju", getenv("FORGETFUL_DISK_JOURNALS"), (uintmax_t)inode);
	journal = REAL(open)(path, flags | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (journal >= 0 && flock(journal, LOCK_EX) != 0)
		abort();
	return journal;
}

/* Whether it is open for a file of the data directory. */
static int find(int file, struct stat *status)
{
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	length = readlink(link, path, sizeof path - 1);
	if (length <= 0)
		return 0;
	path[length] = '\0';
	return is_kept(path) && fstat(file, status) == 0 && S_ISREG(status->st_mode);
}

/* Keeps what is about to be overwritten; returns the journal, locked, or -1. */
static int keep(int file, off_t offset, const struct iovec *parts, int count)
{
	struct stat status;
	struct entry entry = {0};
	struct iovec all[66];
	char link[64], *old;
	int journal, reader;
	size_t total;

	if (!find(file, &status) || count > 64)
		return -1;
	journal = open_journal(status.st_ino, O_CREAT);
	if (journal < 0 || fstat(file, &status) != 0)
		abort();
	entry.offset = offset < 0 ? status.st_size : offset;
	entry.size_before = status.st_size;
	for (int i = 0; i < count; i++)
		entry.new_length += parts[i].iov_len;
	old = malloc(entry.new_length + 1);
	/* It may be open for writing only. */
	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	reader = REAL(open)(link, O_RDONLY | O_CLOEXEC);
	if (old == NULL || reader < 0)
		abort();
	if (entry.new_length > 0) {
		ssize_t there = pread(reader, old, entry.new_length, entry.offset);

		entry.old_length = there > 0 ? there : 0;
	}
	close(reader);
	all[0] = (struct iovec){&entry, sizeof entry};
	all[1] = (struct iovec){old, entry.old_length};
	if (count > 0)
		memcpy(all + 2, parts, count * sizeof *parts);
	total = sizeof entry + entry.old_length + entry.new_length;
	if (REAL(writev)(journal, all, count + 2) != (ssize_t)total)
		abort();
	free(old);
	return journal;
}

/* What is on the disk is durable now. */
static void forget(int file)
{
	struct stat status;
	int journal;

	if (!find(file, &status) || (journal = open_journal(status.st_ino, 0)) < 0)
		return;
	if (REAL(ftruncate)(journal, 0) != 0)
		abort();
	close(journal);
}

/* The inode is about to be free. */
static void forget_inode(const char *path)
{
	struct stat status;
	char journal[4096];

	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1)
		return;
	snprintf(journal, sizeof journal, "%s/%ju", getenv("FORGETFUL_DISK_JOURNALS"),
		 (uintmax_t)status.st_ino);
	REAL(unlink)(journal);
}

static void release(int journal)
{
	if (journal >= 0)
		close(journal);
}

ssize_t write(int file, const void *bytes, size_t length)
{
	struct iovec part = {(void *)bytes, length};
	int journal = -1;
	ssize_t written;

	if (file > STDERR_FILENO) {
		int flags = fcntl(file, F_GETFL);

		journal = keep(file, flags & O_APPEND ? -1 : lseek(file, 0, SEEK_CUR), &part, 1);
	}
	written = REAL(write)(file, bytes, length);
	release(journal);
	return written;
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset)
{
	struct iovec part = {(void *)bytes, length};
	int journal = keep(file, offset, &part, 1);
	ssize_t written = REAL(pwrite)(file, bytes, length, offset);

	release(journal);
	return written;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset)
{
	int journal = keep(file, offset, parts, count);
	ssize_t written = REAL(pwritev)(file, parts, count, offset);

	release(journal);
	return written;
}

int posix_fallocate(int file, off_t offset, off_t length)
{
	int journal = keep(file, offset, NULL, 0);
	int result = REAL(posix_fallocate)(file, offset, length);

	release(journal);
	return result;
}

int ftruncate(int file, off_t length)
{
	struct stat status;
	int journal = -1, result;

	if (fstat(file, &status) == 0 && length < status.st_size)
		forget(file);
	else
		journal = keep(file, length, NULL, 0);
	result = REAL(ftruncate)(file, length);
	release(journal);
	return result;
}

int fsync(int file)
{
	forget(file);
	return 0;
}

int fdatasync(int file)
{
	forget(file);
	return 0;
}

int unlink(const char *path)
{
	forget_inode(path);
	return REAL(unlink)(path);
}

int rename(const char *from, const char *to)
{
	forget_inode(to);
	return REAL(rename)(from, to);
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (flags & O_TRUNC)
		forget_inode(path);
	return REAL(open)(path, flags, mode);
}
