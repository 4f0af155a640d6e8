/* A process that memory_external_test.cpp starts: importer BACKEND. It receives a tuff_memory_fd through the socket
 * that is its standard input. The memory holds A, B and C, 64 x 64 floats each, one after the other; it computes
 * C = A * B. Exits with 0 if all is well; otherwise prints why not. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tuff/tuff.h"

#define SIDE 64
#define BYTES ((uint64_t)SIDE * SIDE * sizeof(float))

static void check(tuff_status status, const char* what) {
  char message[512];
  if (status == TUFF_OK) return;
  tuff_last_error(message, sizeof message, NULL);
  printf("%s: %s: %s\n", what, tuff_status_name(status), message);
  exit(2);
}

static tuff_memory_fd receive(void) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  tuff_memory_fd info;
  struct iovec data;
  struct msghdr message;
  struct cmsghdr* header;
  memset(&message, 0, sizeof message);
  data.iov_base = &info;
  data.iov_len = sizeof info;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  if (recvmsg(0, &message, 0) != (ssize_t)sizeof info) {
    printf("no message came\n");
    exit(3);
  }
  header = CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_type != SCM_RIGHTS) {
    printf("no descriptor came\n");
    exit(4);
  }
  memcpy(&info.fd, CMSG_DATA(header), sizeof(int)); /* its number in this process */
  return info;
}

int main(int argc, char** argv) {
  tuff_context_desc desc;
  tuff_context context = 0;
  tuff_buffer shared = 0, a = 0, b = 0, c = 0;
  tuff_memory_fd info;
  tuff_stats stats;
  if (argc != 2) return 1;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.backend = argv[1];
  check(tuff_context_create(&desc, &context), "tuff_context_create");
  info = receive();
  check(tuff_buffer_import_fd(context, &info, &shared), "tuff_buffer_import_fd");
  close(info.fd);
  check(tuff_view(shared, 0, BYTES, &a), "tuff_view");
  check(tuff_view(shared, BYTES, BYTES, &b), "tuff_view");
  check(tuff_view(shared, 2 * BYTES, BYTES, &c), "tuff_view");
  check(tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE),
        "tuff_gemm");
  check(tuff_synchronize(context), "tuff_synchronize");
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  check(tuff_context_stats(context, &stats), "tuff_context_stats");
  check(tuff_context_destroy(context), "tuff_context_destroy");
  if (stats.validation_messages != 0) {
    printf("%llu messages of the validation layer\n", (unsigned long long)stats.validation_messages);
    return 5;
  }
  return 0;
}
