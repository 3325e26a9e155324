// Visitors of a udp tunnel: each has a socket and one question under way, and asks the next when the answer is there.
#include "load.h"

enum { AT_ONCE = 64, TIMES_MOST = 4000000 };
static const double LOST_AFTER = 0.25, LOOK_EVERY = 0.05;

struct visitor {
  int fd;
  uint64_t number;
  double askedAt;
};

static struct visitor *visitor;
static uint32_t visitors;
static size_t size;
static unsigned char question[DATAGRAM_MOST], answer[DATAGRAM_MOST];
static uint64_t number, asked;

static void ask(uint32_t at) {
  visitor[at].number = ++number;
  memcpy(question + NUMBER_AT, &number, sizeof number);
  memcpy(question + VISITOR_AT, &at, sizeof at);
  visitor[at].askedAt = now();
  if (send(visitor[at].fd, question, size, 0) < 0 && errno != EAGAIN && errno != ECONNREFUSED) fail("send: %s", strerror(errno));
  asked++;
}

// Whether the visitor has the answer to its last question. The answer to a question that was given up is not counted.
static int hasAnswer(uint32_t at, ssize_t got) {
  uint64_t answered;
  memcpy(&answered, answer + NUMBER_AT, sizeof answered);
  if ((size_t)got != size || memcmp(answer + VISITOR_AT, &at, sizeof at) || memcmp(answer + DATAGRAM_HEAD, question + DATAGRAM_HEAD, size - DATAGRAM_HEAD))
    fail("a visitor got another datagram than it sent");
  return answered == visitor[at].number;
}

// Returns the number of answers; their times are in `times`.
static size_t askFor(int loop, double seconds, float *times, uint64_t *lost) {
  struct epoll_event events[AT_ONCE];
  size_t count = 0;
  double begin = now(), looked = begin;
  asked = *lost = 0;
  for (uint32_t at = 0; at < visitors; at++) ask(at);
  for (double time = begin; time - begin < seconds && count < TIMES_MOST - visitors; time = now()) {
    int ready = epoll_wait(loop, events, AT_ONCE, 20);
    for (int turn = 0; turn < ready; turn++) {
      uint32_t at = events[turn].data.u32;
      ssize_t got = recv(visitor[at].fd, answer, sizeof answer, 0);
      if (got < 0 || !hasAnswer(at, got)) continue;
      times[count++] = (float)((now() - visitor[at].askedAt) * 1000);
      ask(at);
    }
    if (time - looked < LOOK_EVERY) continue;
    looked = time;
    for (uint32_t at = 0; at < visitors; at++)
      if (time - visitor[at].askedAt > LOST_AFTER) {
        ++*lost;
        ask(at);
      }
  }
  return count;
}

void datagrams(int port, size_t bytes, uint32_t count, double warmSeconds, double seconds) {
  if (bytes < DATAGRAM_HEAD || bytes > DATAGRAM_MOST || count < 1) fail("no such datagrams");
  struct sockaddr_in address = loopback(port);
  int loop = epoll_create1(0);
  float *times = malloc(TIMES_MOST * sizeof *times);
  uint64_t lost;
  visitors = count;
  size = bytes;
  visitor = calloc(count, sizeof *visitor);
  memcpy(question, patternAt(0), size);
  question[0] = DATAGRAM_ECHO;
  for (uint32_t at = 0; at < count; at++) {
    visitor[at].fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (visitor[at].fd < 0 || connect(visitor[at].fd, (void *)&address, sizeof address)) fail("connect: %s", strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = at};
    epoll_ctl(loop, EPOLL_CTL_ADD, visitor[at].fd, &event);
  }
  if (askFor(loop, warmSeconds, times, &lost) == 0) fail("no datagram came back");
  sayReadyAndWait();
  double begin = now();
  size_t answers = askFor(loop, seconds, times, &lost);
  double took = now() - begin;
  if (answers == 0) fail("no datagram came back");
  qsort(times, answers, sizeof *times, byTime);
  printf("{\"type\":\"done\",\"result\":{\"roundTrips\":%zu,\"seconds\":%f,\"lostPercent\":%f,\"p50Ms\":%f,\"p99Ms\":%f}}\n", answers, took,
         100.0 * (double)lost / (double)asked, times[answers / 2], times[(size_t)((double)answers * 0.99)]);
}
