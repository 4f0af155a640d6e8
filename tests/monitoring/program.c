/* A program that tuff top watches (monitored.py).
 *
 *   program CONTEXTS [BACKEND]
 *
 * Opens that many contexts, allocates a MiB in each, and obeys lines of standard input, answering each with a line:
 *   calls N   N calls in the first context, and waits for them
 *   close     destroys the first context
 *   fork      forks a child that lives as long as the parent, and makes a call, which must be refused
 *   forkexit  forks a child that ends at once, and runs exit handlers
 *   exit, _exit, abort, exec   ends in that way
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tuff/tuff.h"

enum { MOST = 80, BYTES = 1 << 20 };

static void must(tuff_status status) {
  char message[1024];
  if (status == TUFF_OK) return;
  tuff_last_error(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s\n", tuff_status_name(status), message);
  exit(1);
}

static void answer(const char* text) {
  printf("%s\n", text);
  fflush(stdout);
}

int main(int argc, char** argv) {
  tuff_context contexts[MOST];
  tuff_buffer buffers[MOST];
  tuff_context_desc desc = {0};
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  char line[64];
  desc.struct_size = sizeof desc;
  desc.backend = argc > 2 ? argv[2] : "host";
  desc.memory_limit_bytes = 64 << 20;
  if (count < 0 || count > MOST) return 2;
  for (int i = 0; i < count; ++i) {
    must(tuff_context_create(&desc, &contexts[i]));
    must(tuff_alloc(contexts[i], BYTES, &buffers[i]));
  }
  answer("ready");
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "calls ", 6) == 0) {
      for (int i = 0, calls = atoi(line + 6); i < calls; ++i) {
        must(tuff_unary(contexts[0], TUFF_F32, TUFF_UNARY_RELU, buffers[0], buffers[0], 1000));
      }
      must(tuff_synchronize(contexts[0]));
    } else if (strcmp(line, "close\n") == 0) {
      must(tuff_context_destroy(contexts[0]));
    } else if (strcmp(line, "fork\n") == 0) {
      const pid_t parent = getpid();
      if (fork() == 0) {
        if (tuff_synchronize(contexts[0]) != TUFF_ERROR_NOT_INITIALIZED) abort();
        close(STDOUT_FILENO);
        while (getppid() == parent) usleep(20000);
        exit(0); /* runs exit handlers, which must leave the parent's page alone */
      }
    } else if (strcmp(line, "forkexit\n") == 0) {
      const pid_t child = fork();
      if (child == 0) exit(0);
      waitpid(child, NULL, 0);
    } else if (strcmp(line, "exit\n") == 0) {
      return 0;
    } else if (strcmp(line, "_exit\n") == 0) {
      _exit(0);
    } else if (strcmp(line, "abort\n") == 0) {
      abort();
    } else if (strcmp(line, "exec\n") == 0) {
      execlp("sleep", "sleep", "30", (char*)NULL);
    }
    answer("done");
  }
  return 0;
}
