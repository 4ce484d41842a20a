/* Loaded before the C library (LD_PRELOAD): kills the process just before its n-th change to a folder.

   Counted: opening a file for writing, write, fsync, truncate, link, rename, unlink, mkdir and rmdir below the folder.
   crash_below(folder, n) begins counting, n = 0 to never kill; crash_count() tells how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long fatal, count;

void crash_below(const char *path, long n) {
  snprintf(folder, sizeof folder, "%s", path);
  fatal = n;
  count = 0;
}

long crash_count(void) { return count; }

static void operation(const char *path) {
  if (folder[0] && path && !strncmp(path, folder, strlen(folder)) && ++count == fatal) kill(getpid(), SIGKILL);
}

static void operation_on(int file) {
  if (!folder[0]) return;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  operation(path);
}

static void operation_at(int place, const char *path) {
  if (path && path[0] != '/' && place != AT_FDCWD)
    operation_on(place);
  else
    operation(path);
}

#define REAL(result, name, ...)                      \
  static result (*real)(__VA_ARGS__);                \
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

#define OPEN(name)                                                                   \
  int name(const char *path, int flags, ...) {                                       \
    REAL(int, #name, const char *, int, ...);                                        \
    va_list rest;                                                                    \
    va_start(rest, flags);                                                           \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;          \
    va_end(rest);                                                                    \
    if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) operation(path);            \
    return real(path, flags, mode);                                                  \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                 \
  int name(int place, const char *path, int flags, ...) {                            \
    REAL(int, #name, int, const char *, int, ...);                                   \
    va_list rest;                                                                    \
    va_start(rest, flags);                                                           \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;          \
    va_end(rest);                                                                    \
    if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) operation_at(place, path);  \
    return real(place, path, flags, mode);                                           \
  }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void *data, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  operation_on(file);
  return real(file, data, size);
}

#define ON_FILE(name)                \
  int name(int file) {               \
    REAL(int, #name, int);           \
    operation_on(file);              \
    return real(file);               \
  }
ON_FILE(fsync)
ON_FILE(fdatasync)

#define CUT(name)                      \
  int name(int file, off_t size) {     \
    REAL(int, #name, int, off_t);      \
    operation_on(file);                \
    return real(file, size);           \
  }
CUT(ftruncate)
CUT(ftruncate64)

#define ON_PATH(name)                  \
  int name(const char *path) {         \
    REAL(int, #name, const char *);    \
    operation(path);                   \
    return real(path);                 \
  }
ON_PATH(unlink)
ON_PATH(rmdir)

int unlinkat(int place, const char *path, int flags) {
  REAL(int, "unlinkat", int, const char *, int);
  operation_at(place, path);
  return real(place, path, flags);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t);
  operation(path);
  return real(path, mode);
}

#define TWO_PATHS(name)                              \
  int name(const char *from, const char *to) {       \
    REAL(int, #name, const char *, const char *);    \
    operation(to);                                   \
    return real(from, to);                           \
  }
TWO_PATHS(rename)
TWO_PATHS(link)

int renameat2(int from_place, const char *from, int to_place, const char *to, unsigned flags) {
  REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
  operation_at(to_place, to);
  return real(from_place, from, to_place, to, flags);
}
