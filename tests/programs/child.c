/* A process that lifecycle_test.cpp watches: child LIBRARY MODE BACKEND.
 * Loads the library with dlopen only. Exits with 0 if all is well; otherwise prints why not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
size_t __sanitizer_get_current_allocated_bytes(void); /* of the runtime, which GCC has no header for */
#endif

#include "tuff/tuff.h"

#define FUNCTIONS(X)      \
  X(tuff_version)         \
  X(tuff_context_create)  \
  X(tuff_context_destroy) \
  X(tuff_context_stats)   \
  X(tuff_synchronize)     \
  X(tuff_alloc)           \
  X(tuff_free)            \
  X(tuff_copy_htod)       \
  X(tuff_copy_dtoh)       \
  X(tuff_unary)           \
  X(tuff_gemm)            \
  X(tuff_reduce)          \
  X(tuff_last_error)      \
  X(tuff_status_name)     \
  X(tuff_device_count)    \
  X(tuff_buffer_size) X(tuff_context_info) X(tuff_set_log) X(tuff_context_set_limits) X(tuff_kernel_create)

#define DECLARE(name) static __typeof__(&name) p_##name;
FUNCTIONS(DECLARE)

static void* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("dlopen: %s\n", dlerror());
    exit(2);
  }
#define RESOLVE(name)                         \
  *(void**)&p_##name = dlsym(library, #name); \
  if (p_##name == NULL) exit(3);
  FUNCTIONS(RESOLVE)
  return library;
}

static void check(tuff_status status, const char* what) {
  char message[512];
  if (status == TUFF_OK) return;
  p_tuff_last_error(message, sizeof message, NULL);
  printf("%s: %s: %s\n", what, p_tuff_status_name(status), message);
  exit(4);
}

static tuff_context create(const char* backend) {
  tuff_context_desc desc;
  tuff_context context = 0;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.backend = backend;
  check(p_tuff_context_create(&desc, &context), "tuff_context_create");
  return context;
}

/* A driver may crash in its own exit handlers while other threads use it, or after a fork: NVIDIA's 580 does the
 * latter even in a program with just vkCreateDevice, fork and exit. A CPU driver must survive both. */
static int bears_exit(tuff_context context) {
  tuff_device_properties properties;
  memset(&properties, 0, sizeof properties);
  properties.struct_size = sizeof properties;
  check(p_tuff_context_info(context, &properties), "tuff_context_info");
  return properties.type == TUFF_DEVICE_CPU || properties.type == TUFF_DEVICE_HOST;
}

static tuff_buffer buffer_of(tuff_context context, float value) {
  float values[64];
  tuff_buffer buffer = 0;
  int i;
  for (i = 0; i < 64; ++i) values[i] = value;
  check(p_tuff_alloc(context, sizeof values, &buffer), "tuff_alloc");
  check(p_tuff_copy_htod(context, buffer, 0, values, sizeof values), "tuff_copy_htod");
  return buffer;
}

/* A gemm, a unary and a reduction whose result is known. */
static void work(tuff_context context) {
  const uint64_t shape[1] = {64};
  tuff_buffer a = buffer_of(context, 2), b = buffer_of(context, -3), c = buffer_of(context, 0),
              s = buffer_of(context, 0);
  float sum = 0;
  check(p_tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8), "tuff_gemm");
  check(p_tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, c, a, 64), "tuff_unary");
  check(p_tuff_reduce(context, TUFF_F32, TUFF_REDUCE_SUM, a, s, shape, 1, 0), "tuff_reduce");
  check(p_tuff_copy_dtoh(context, &sum, s, 0, sizeof sum), "tuff_copy_dtoh");
  if (sum != 64 * 48) {
    printf("sum is %g\n", (double)sum);
    exit(5);
  }
  check(p_tuff_free(a), "tuff_free");
  check(p_tuff_free(b), "tuff_free");
  check(p_tuff_free(c), "tuff_free");
  check(p_tuff_free(s), "tuff_free");
}

/* Large enough for copies by several threads of the library. */
static void large_copies(tuff_context context) {
  const uint64_t bytes = 24u << 20;
  char* memory = malloc(bytes);
  tuff_buffer buffer = 0;
  if (memory == NULL) exit(11);
  memset(memory, 5, bytes);
  check(p_tuff_alloc(context, bytes, &buffer), "tuff_alloc");
  check(p_tuff_copy_htod(context, buffer, 0, memory, bytes), "tuff_copy_htod");
  memset(memory, 0, bytes);
  check(p_tuff_copy_dtoh(context, memory, buffer, 0, bytes), "tuff_copy_dtoh");
  if (memory[0] != 5 || memory[bytes - 1] != 5) exit(12);
  check(p_tuff_free(buffer), "tuff_free");
  free(memory);
}

/* In a forked child the library throws nothing: libgcc's unwinder would lock a mutex that another thread may have held
 * during the fork. The program exports this function, so that the library calls it. Not with sanitizers, which have
 * their own. */
static int in_child = 0;
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void __cxa_throw(void* object, void* type, void (*destroy)(void*));
__attribute__((visibility("default"), noreturn)) void __cxa_throw(void* object, void* type, void (*destroy)(void*)) {
  void (*real)(void*, void*, void (*)(void*)) = NULL;
  void* library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (in_child) {
    printf("the library throws an exception in a forked child\n");
    fflush(stdout);
    _exit(9);
  }
  if (library != NULL) *(void**)&real = dlsym(library, "__cxa_throw");
  if (real != NULL) real(object, type, destroy);
  abort();
}
#endif

static void expect_turned_away(tuff_status status, const char* function) {
  char message[512];
  p_tuff_last_error(message, sizeof message, NULL);
  if (status != TUFF_ERROR_NOT_INITIALIZED || strncmp(message, function, strlen(function)) != 0 ||
      strstr(message, "fork") == NULL) {
    printf("%s in the child: %s: %s\n", function, p_tuff_status_name(status), message);
    fflush(stdout);
    _exit(6);
  }
}

static void wait_for(pid_t child) {
  int state = 0;
  if (waitpid(child, &state, 0) != child || !WIFEXITED(state) || WEXITSTATUS(state) != 0) {
    printf("the forked child ended with state 0x%x\n", (unsigned)state);
    exit(7);
  }
}

/* Resources that grow if something is leaked. */
struct held {
  long kilobytes, descriptors, threads;
};

static long entries_of(const char* path) {
  DIR* folder = opendir(path);
  long count = 0;
  if (folder == NULL) exit(11);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static struct held held_now(void) {
  struct held now = {0, 0, 0};
  long pages = 0, resident = 0;
  FILE* file;
#ifdef __GLIBC__
  /* Returns free memory that the allocator keeps. It varies: each of a driver's threads may get another arena. */
  malloc_trim(0);
#endif
  file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) exit(11);
  fclose(file);
  now.kilobytes = resident * (sysconf(_SC_PAGESIZE) / 1024);
#ifdef __SANITIZE_THREAD__
  now.kilobytes = (long)(__sanitizer_get_current_allocated_bytes() / 1024); /* without its own tables, which grow */
#endif
  now.descriptors = entries_of("/proc/self/fd");
  now.threads = entries_of("/proc/self/task");
  return now;
}

/* A joined thread may stay in /proc for a moment: waits up to ten seconds for the number to fall. */
static struct held held_at_rest(long max_threads) {
  struct held now = held_now();
  int i;
  for (i = 0; i < 1000 && now.threads > max_threads; ++i) {
    usleep(10000);
    now = held_now();
  }
  return now;
}

enum { FIRST_ROUNDS = 40, ROUNDS = 60, ATTEMPTS = 4 };

/* True if the last rounds leaked nothing. The allocator and the driver keep some memory, which may still grow by this
 * much after the first rounds. */
static int same(struct held before, struct held after, int attempt) {
  const long more = after.kilobytes - before.kilobytes;
  long max_kilobytes = 3 * 1024;
#ifdef __SANITIZE_ADDRESS__
  max_kilobytes = 1 << 30; /* freed memory is quarantined */
#endif
  if (after.descriptors <= before.descriptors && after.threads <= before.threads && more <= max_kilobytes) return 1;
  if (attempt + 1 == ATTEMPTS) {
    printf("after %d more rounds: %ld KiB, %ld descriptors, %ld threads more\n", ROUNDS, more,
           after.descriptors - before.descriptors, after.threads - before.threads);
    exit(12);
  }
  return 0;
}

/* Loads and unloads the library a hundred times, each time with a context and work, or without. How much the allocator
 * keeps depends on which threads ran together: if it grew, the rounds are repeated, and a leak would show again. */
static void reload(const char* path, const char* backend, int with_work) {
  struct held before = {0, 0, 0}, after;
  int i;
  for (i = 1; i <= FIRST_ROUNDS + ATTEMPTS * ROUNDS; ++i) {
    void* library = load(path);
    if (p_tuff_version() != TUFF_VERSION) exit(10);
    if (with_work) {
      tuff_context context = create(backend);
      work(context);
      if (i % 8 == 0) large_copies(context);
      check(p_tuff_context_destroy(context), "tuff_context_destroy");
    } else if (p_tuff_buffer_size(99, NULL) == TUFF_OK) {
      exit(10);
    }
    if (dlclose(library) != 0) exit(8);
    if (i < FIRST_ROUNDS || (i - FIRST_ROUNDS) % ROUNDS != 0) continue;
    after = i == FIRST_ROUNDS ? held_now() : held_at_rest(before.threads);
    if (i > FIRST_ROUNDS && same(before, after, (i - FIRST_ROUNDS) / ROUNDS - 1)) return;
    before = after;
  }
}

struct user {
  tuff_context context;
  tuff_buffer buffer;
  pthread_barrier_t* began; /* or NULL */
};

/* Works until the process ends; any status will do, but no crash. */
static void* use_for_ever(void* argument) {
  const struct user* user = (const struct user*)argument;
  float values[64];
  if (user->began != NULL) pthread_barrier_wait(user->began);
  for (;;) {
    p_tuff_unary(user->context, TUFF_F32, TUFF_UNARY_NEG, user->buffer, user->buffer, 64);
    p_tuff_copy_dtoh(user->context, values, user->buffer, 0, sizeof values);
  }
  return NULL;
}

static void* exit_now(void* argument) {
  (void)argument;
  exit(0);
}

/* Enough work to stay in flight for a while on any device. */
static void long_work(tuff_context context) {
  const uint64_t n = 200;
  tuff_buffer a = 0, b = 0;
  int i;
  check(p_tuff_alloc(context, n * n * 4, &a), "tuff_alloc");
  check(p_tuff_alloc(context, n * n * 4, &b), "tuff_alloc");
  for (i = 0; i < 20; ++i) {
    check(p_tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, n, n, n, 1, a, n, a, n, 1, b, n), "tuff_gemm");
  }
}

static int messages;

static void exit_at_third(void* user, int32_t level, const char* message) {
  (void)user;
  (void)level;
  (void)message;
  if (++messages == 3) exit(0);
}

/* Called on the prewarming thread. */
static void exit_when_ready(void* user, int32_t level, const char* message) {
  (void)user;
  (void)level;
  if (strstr(message, "kernels are ready") == NULL) return;
  exit(0);
}

static void everything_left_open(const char* backend, const char* mode) {
  tuff_context context = create(backend);
  static pthread_barrier_t began;
  static struct user users[4];
  pthread_t thread;
  int i;
  work(context);
  pthread_barrier_init(&began, NULL, 5);
  for (i = 0; i < 4; ++i) {
    users[i].context = context;
    users[i].buffer = buffer_of(context, 1);
    users[i].began = &began;
  }
  create(backend);
  if (strcmp(mode, "exit_thread") == 0) { /* another thread than main ends the process while main waits for it */
    check(p_tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, users[0].buffer, users[0].buffer, 64), "tuff_unary");
    if (pthread_create(&thread, NULL, exit_now, NULL) != 0) exit(13);
    pthread_join(thread, NULL);
    exit(14);
  }
  for (i = 0; i < 4; ++i) {
    if (pthread_create(&thread, NULL, use_for_ever, &users[i]) != 0) exit(13);
  }
  pthread_barrier_wait(&began);
  usleep(20000);
  if (strcmp(mode, "fork_busy") == 0) { /* a child of a process whose other threads may hold any lock */
    for (i = 0; i < 5; ++i) {
      pid_t child = fork();
      if (child == 0) {
        in_child = 1;
        alarm(100);
        expect_turned_away(p_tuff_synchronize(context), "tuff_synchronize: ");
        expect_turned_away(p_tuff_free(users[0].buffer), "tuff_free: ");
        expect_turned_away(p_tuff_context_destroy(context), "tuff_context_destroy: ");
        _exit(0);
      }
      wait_for(child);
    }
    work(context);
  }
  if (bears_exit(context)) exit(0);
  _exit(0);
}

static int log_pipe[2];

/* The first message waits until the process ends, with the log's lock held. */
static void hold_log(void* user, int32_t level, const char* message) {
  char byte = 0;
  static int calls;
  (void)user;
  (void)level;
  (void)message;
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != 1) return;
  if (write(log_pipe[1], &byte, 1) != 1) exit(13);
  for (;;) sleep(100);
}

static void* fail_once(void* unused) {
  (void)unused;
  p_tuff_buffer_size(99, NULL);
  return NULL;
}

static void* change_log(void* unused) {
  (void)unused;
  p_tuff_set_log(NULL, NULL, TUFF_LOG_OFF);
  return NULL;
}

static pid_t fork_of_callback = -1;
static void fork_in_log(void* user, int32_t level, const char* message) {
  (void)user;
  (void)level;
  (void)message;
  if (fork_of_callback == -1) fork_of_callback = fork();
}

static void expect_child_goes_on(tuff_context context) {
  in_child = 1;
  alarm(100);
  expect_turned_away(p_tuff_synchronize(context), "tuff_synchronize: ");
  if (p_tuff_set_log(exit_when_ready, NULL, TUFF_LOG_DEBUG) != TUFF_OK) _exit(8);
  expect_turned_away(p_tuff_synchronize(context), "tuff_synchronize: ");
  if (p_tuff_set_log(NULL, NULL, TUFF_LOG_OFF) != TUFF_OK) _exit(8);
  _exit(0);
}

/* Forks in a log callback; then while one thread is in a callback and another waits to change it. */
static void fork_while_logging(const char* backend) {
  tuff_context context = create(backend);
  pthread_t threads[2];
  pid_t child;
  char byte;
  check(p_tuff_set_log(fork_in_log, NULL, TUFF_LOG_DEBUG), "tuff_set_log");
  p_tuff_buffer_size(99, NULL);
  if (fork_of_callback == 0) expect_child_goes_on(context);
  wait_for(fork_of_callback);
  if (pipe(log_pipe) != 0) exit(13);
  check(p_tuff_set_log(hold_log, NULL, TUFF_LOG_DEBUG), "tuff_set_log");
  if (pthread_create(&threads[0], NULL, fail_once, NULL) != 0) exit(13);
  if (read(log_pipe[0], &byte, 1) != 1) exit(13);
  if (pthread_create(&threads[1], NULL, change_log, NULL) != 0) exit(13);
  usleep(50000);
  child = fork();
  if (child == 0) expect_child_goes_on(context);
  wait_for(child);
  _exit(0);
}

/* Loads the library by a relative name, then changes the working directory to TUFF_TEST_ELSEWHERE, where there is a
 * foreign program named tuff-compile. */
static void untrusted_elsewhere(const char* path, const char* backend) {
  const char* slash = strrchr(path, '/');
  char folder[4096], name[4096], source[256];
  tuff_kernel_desc desc;
  tuff_kernel kernel;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
  snprintf(name, sizeof name, "./%s", slash + 1);
  if (chdir(folder) != 0) exit(5);
  load(name);
  if (chdir(getenv("TUFF_TEST_ELSEWHERE")) != 0) exit(6);
  snprintf(source, sizeof source, "#version 450\n/* %d */\nvoid main() {}\n", (int)getpid());
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.source = source;
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  check(p_tuff_kernel_create(create(backend), &desc, &kernel), "tuff_kernel_create");
}

/* Prints how many kernels were compiled and how many came from the cache. */
static void work_and_count(const char* backend) {
  tuff_context context = create(backend);
  tuff_stats stats;
  work(context);
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  check(p_tuff_context_stats(context, &stats), "tuff_context_stats");
  printf("compiled %llu cached %llu pipelines %llu\n", (unsigned long long)stats.shaders_compiled,
         (unsigned long long)stats.shader_cache_hits, (unsigned long long)stats.pipelines_created);
  check(p_tuff_context_destroy(context), "tuff_context_destroy");
}

static void work_quietly(const char* backend) {
  tuff_context context = create(backend);
  work(context);
  p_tuff_buffer_size(99, NULL);
  check(p_tuff_context_destroy(context), "tuff_context_destroy");
}

/* Leaves everything open, with work in flight. */
static void exit_open(const char* backend) {
  tuff_context context = create(backend);
  tuff_buffer buffer = buffer_of(context, 1);
  int i;
  create(backend);
  large_copies(context);
  for (i = 0; i < 100; ++i) check(p_tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 64), "tuff_unary");
}

/* Exits while the prewarming thread compiles. */
static void exit_prewarming(const char* backend) {
  setenv("TUFF_PREWARM", "1", 1);
  create(backend);
  create(backend);
}

/* Contexts that were destroyed before their device had finished. */
static void exit_late(const char* backend) {
  tuff_limits limits;
  int i;
  memset(&limits, 0, sizeof limits);
  limits.struct_size = sizeof limits;
  limits.wait_milliseconds = 1;
  for (i = 0; i < 3; ++i) {
    tuff_context context = create(backend);
    long_work(context);
    check(p_tuff_context_set_limits(context, &limits), "tuff_context_set_limits");
    check(p_tuff_context_destroy(context), "tuff_context_destroy");
  }
}

static void exit_in_log(const char* backend) {
  check(p_tuff_set_log(exit_at_third, NULL, TUFF_LOG_DISPATCH), "tuff_set_log");
  work(create(backend));
  p_tuff_buffer_size(99, NULL); /* errors are logged too */
  p_tuff_buffer_size(99, NULL);
  p_tuff_buffer_size(99, NULL);
  exit(15);
}

static void exit_in_prewarm(const char* backend) {
  setenv("TUFF_PREWARM", "1", 1);
  check(p_tuff_set_log(exit_when_ready, NULL, TUFF_LOG_INFO), "tuff_set_log");
  create(backend);
  sleep(100);
  exit(15);
}

static void any_order(const char* backend) {
  tuff_context first = create(backend), second = create(backend), third = create(backend);
  tuff_buffer left = buffer_of(second, 1);
  work(first);
  check(p_tuff_context_destroy(second), "tuff_context_destroy");
  if (p_tuff_free(left) != TUFF_ERROR_INVALID_HANDLE) exit(9);
  work(third);
  check(p_tuff_context_destroy(first), "tuff_context_destroy");
  work(third);
  check(p_tuff_context_destroy(third), "tuff_context_destroy");
  first = create(backend);
  work(first);
  check(p_tuff_context_destroy(first), "tuff_context_destroy");
}

/* Every call of a child says why it is refused. */
static void refused_in_child(tuff_context context, tuff_buffer buffer) {
  uint32_t count = 0;
  uint64_t bytes = 0;
  tuff_context other = 0;
  tuff_buffer made = 0;
  expect_turned_away(p_tuff_alloc(context, 4, &made), "tuff_alloc: ");
  expect_turned_away(p_tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 64), "tuff_unary: ");
  expect_turned_away(p_tuff_synchronize(context), "tuff_synchronize: ");
  expect_turned_away(p_tuff_free(buffer), "tuff_free: ");
  expect_turned_away(p_tuff_buffer_size(buffer, &bytes), "tuff_buffer_size: ");
  expect_turned_away(p_tuff_context_create(NULL, &other), "tuff_context_create: ");
  expect_turned_away(p_tuff_device_count(&count), "tuff_device_count: ");
  expect_turned_away(p_tuff_context_destroy(context), "tuff_context_destroy: ");
  if (p_tuff_version() != TUFF_VERSION) _exit(10);
}

static void fork_with_context(const char* backend) {
  tuff_context context = create(backend);
  tuff_buffer buffer = buffer_of(context, 1);
  const int exits = bears_exit(context);
  pid_t child;
  large_copies(context);
  child = fork();
  if (child == 0) {
    in_child = 1;
    alarm(100); /* a hang is a failure */
    refused_in_child(context, buffer);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* The leak check would report that it cannot stop the parent's threads. ThreadSanitizer's pthread_join waits for
     * ever, in an exit handler of Mesa's driver, for a thread that exists in the parent alone. */
    (void)exits;
    _exit(0);
#else
    if (exits) exit(0); /* runs the exit handlers of all libraries */
    _exit(0);
#endif
  }
  wait_for(child);
  work(context); /* the parent is not affected */
  large_copies(context);
  check(p_tuff_context_destroy(context), "tuff_context_destroy");
}

/* No device was used yet, so the child may use one. */
static void fork_first(const char* backend) {
  pid_t child;
  if (p_tuff_version() != TUFF_VERSION) exit(10);
  child = fork();
  if (child == 0) {
    tuff_context context = create(backend);
    alarm(60);
    work(context);
    check(p_tuff_context_destroy(context), "tuff_context_destroy");
    exit(0);
  }
  wait_for(child);
  work(create(backend));
}

static void exit_thread(const char* backend) { everything_left_open(backend, "exit_thread"); }
static void exit_busy(const char* backend) { everything_left_open(backend, "exit_busy"); }
static void fork_busy(const char* backend) { everything_left_open(backend, "fork_busy"); }

static const struct {
  const char* name;
  void (*run)(const char* backend); /* main returns 0 after it */
} modes[] = {
    {"work", work_and_count},
    {"quiet", work_quietly},
    {"exit_open", exit_open},
    {"exit_prewarming", exit_prewarming},
    {"exit_thread", exit_thread},
    {"exit_busy", exit_busy},
    {"exit_late", exit_late},
    {"exit_in_log", exit_in_log},
    {"exit_in_prewarm", exit_in_prewarm},
    {"any_order", any_order},
    {"fork", fork_with_context},
    {"fork_busy", fork_busy},
    {"fork_first", fork_first},
    {"fork_logging", fork_while_logging},
};

int main(int argc, char** argv) {
  const char *path = argv[1], *mode = argv[2], *backend = argv[3];
  size_t i;
  if (argc != 4) return 1;

  /* These load the library themselves. */
  if (strcmp(mode, "reload") == 0 || strcmp(mode, "reload_idle") == 0) {
    reload(path, backend, strcmp(mode, "reload") == 0);
    return 0;
  }
  if (strcmp(mode, "untrusted_elsewhere") == 0) {
    untrusted_elsewhere(path, backend);
    return 0;
  }

  load(path);
  for (i = 0; i < sizeof modes / sizeof *modes; ++i) {
    if (strcmp(mode, modes[i].name) != 0) continue;
    modes[i].run(backend);
    return 0;
  }
  return 1;
}
