/* Makes system calls fail, stop short or kill the process, on demand; preloaded into a test's process.
 *
 * A fault is armed for one kind of call: the nth one from then on fails with `error`, and with `sticky`
 * all later ones do. A write may first take `bytes` bytes, so that the file ends in the middle of a line.
 * With `error` KILL the process dies instead: before the call, or after `bytes` bytes of a write.
 * Every call is counted, armed or not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE, SYNC, CUT, LINK, RENAME, UNLINK, OPEN, STAT, LOCK, SEEK, READ, MKDIR, CHMOD, KINDS };
#define KILL (-1)

static struct {
    atomic_long count;
    long nth; /* 0: not armed */
    int error, sticky;
    long bytes; /* of a write; -1: none */
} faults[KINDS];

void fault_arm(int kind, long nth, int error, long bytes, int sticky) {
    faults[kind].nth = faults[kind].count + nth;
    faults[kind].error = error;
    faults[kind].bytes = bytes;
    faults[kind].sticky = sticky;
}

void fault_disarm(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        faults[kind].nth = 0;
        faults[kind].count = 0;
    }
}

long fault_count(int kind) { return faults[kind].count; }

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Whether this call is to fail; errno is set then. */
static int hit(int kind) {
    long now = ++faults[kind].count;
    if (!faults[kind].nth || now < faults[kind].nth || (now > faults[kind].nth && !faults[kind].sticky))
        return 0;
    if (faults[kind].error == KILL) die();
    errno = faults[kind].error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* One write, at the end (`at` < 0) or at a place. */
static ssize_t put(int fd, const void *data, size_t size, off64_t at) {
    if (at < 0) return REAL(write)(fd, data, size);
    return ((ssize_t (*)(int, const void *, size_t, off64_t))real("pwrite64"))(fd, data, size, at);
}

static ssize_t writing(int fd, const void *data, size_t size, off64_t at) {
    long now = ++faults[WRITE].count, nth = faults[WRITE].nth, bytes = faults[WRITE].bytes;
    if (!nth || now < nth) return put(fd, data, size, at);
    if (now == nth && bytes >= 0 && (size_t)bytes < size) {
        ssize_t done = bytes ? put(fd, data, bytes, at) : 0;
        if (faults[WRITE].error == KILL) die();
        if (bytes) {
            /* What is left of the write fails. */
            faults[WRITE].nth++;
            faults[WRITE].bytes = -1;
            return done;
        }
    } else if (now > nth && !faults[WRITE].sticky) {
        return put(fd, data, size, at);
    }
    if (faults[WRITE].error == KILL) die();
    errno = faults[WRITE].error;
    return -1;
}

ssize_t write(int fd, const void *data, size_t size) { return writing(fd, data, size, -1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return writing(fd, data, size, at); }

#define FAIL(kind, name, ...) (hit(kind) ? -1 : REAL(name)(__VA_ARGS__))

int fsync(int fd) { return FAIL(SYNC, fsync, fd); }
int fdatasync(int fd) { return FAIL(SYNC, fdatasync, fd); }
int ftruncate64(int fd, off64_t size) { return FAIL(CUT, ftruncate64, fd, size); }
int ftruncate(int fd, off_t size) { return FAIL(CUT, ftruncate, fd, size); }
int link(const char *a, const char *b) { return FAIL(LINK, link, a, b); }
int linkat(int f, const char *a, int g, const char *b, int flags) { return FAIL(LINK, linkat, f, a, g, b, flags); }
int rename(const char *a, const char *b) { return FAIL(RENAME, rename, a, b); }
int unlink(const char *path) { return FAIL(UNLINK, unlink, path); }
int fstat64(int fd, struct stat64 *out) { return FAIL(STAT, fstat64, fd, out); }
int stat64(const char *path, struct stat64 *out) { return FAIL(STAT, stat64, path, out); }
int lstat64(const char *path, struct stat64 *out) { return FAIL(STAT, lstat64, path, out); }
int statx(int fd, const char *restrict path, int flags, unsigned mask, struct statx *restrict out) {
    return FAIL(STAT, statx, fd, path, flags, mask, out);
}
int flock(int fd, int how) {
    extern int flock(int, int);
    return hit(LOCK) ? -1 : ((int (*)(int, int))real("flock"))(fd, how);
}
off64_t lseek64(int fd, off64_t to, int whence) { return FAIL(SEEK, lseek64, fd, to, whence); }
ssize_t pread64(int fd, void *to, size_t size, off64_t at) { return FAIL(READ, pread64, fd, to, size, at); }
int mkdir(const char *path, mode_t mode) { return FAIL(MKDIR, mkdir, path, mode); }
int fchmod(int fd, mode_t mode) { return FAIL(CHMOD, fchmod, fd, mode); }

static int opened(const char *name, const char *path, int flags, mode_t mode) {
    return hit(OPEN) ? -1 : ((int (*)(const char *, int, ...))real(name))(path, flags, mode);
}

#define OPENING(name)                                          \
    int name(const char *path, int flags, ...) {               \
        mode_t mode = 0;                                       \
        if (flags & (O_CREAT | O_TMPFILE)) {                   \
            va_list rest;                                      \
            va_start(rest, flags);                             \
            mode = va_arg(rest, mode_t);                       \
            va_end(rest);                                      \
        }                                                      \
        return opened(#name, path, flags, mode);               \
    }

OPENING(open)
OPENING(open64)
