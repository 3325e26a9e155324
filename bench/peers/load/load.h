// What origin and visitors share: the words of bench/load (request.mjs), its pattern of bytes (pattern.mjs), and a way to fail.
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// A datagram: the service in the first byte, as datagram-service.mjs of bench/load has it, then what the visitor compares.
enum { DATAGRAM_ECHO = 1, NUMBER_AT = 4, VISITOR_AT = 12, DATAGRAM_HEAD = 16, DATAGRAM_MOST = 65536, SOCKET_BUFFER = 4 << 20 };
enum { ECHO = 1, SOURCE = 2, SINK = 3, ANSWER = 4 };
enum { REQUEST = 16, VERDICT = 16, SMALL = 128, HEAD = 8192, PIECE = 256 * 1024, PERIOD = 262139 };

extern unsigned char pattern[PERIOD + 2 * PIECE];

static inline void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  printf("{\"type\":\"failed\",\"message\":\"");
  vprintf(format, values);
  printf("\"}\n");
  fflush(stdout);
  exit(1);
}

static inline const unsigned char *patternAt(uint64_t offset) { return pattern + offset % PERIOD; }

static inline void putDouble(unsigned char *to, double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  for (int at = 0; at < 8; at++) to[at] = (unsigned char)(bits >> (56 - 8 * at));
}

static inline double getDouble(const unsigned char *from) {
  uint64_t bits = 0;
  for (int at = 0; at < 8; at++) bits = bits << 8 | from[at];
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

static inline struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static inline void noDelay(int fd) { setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); }

double now(void);
void sayReadyAndWait(void);
int byTime(const void *a, const void *b);

int origin(void);
void datagrams(int port, size_t bytes, uint32_t visitors, double warmSeconds, double seconds);
