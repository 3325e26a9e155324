// Visitors and origin of `npm run bench:peers`, in C, because the cheapest peers cost less than Node.js needs to ask them.
// It speaks what bench/load speaks (request.mjs, pattern.mjs, http-service.mjs), so that either may stand at either end; every byte is compared.
//   load origin                       listens on 127.0.0.1 and says where; ends with its standard input
//   load bulk PORT down|up WARM SECONDS
//   load echo PORT BYTES WARM SECONDS round trips on one connection
//   load endless PORT WARM SECONDS    a download: SECONDS of it alone, then until `go`
//   load datagrams PORT BYTES VISITORS WARM SECONDS
//   load hold PORT COUNT              idle connections, each asked once when it opens and once at `go`
// A job says {"type":"ready"}, waits for the line `go`, and says {"type":"done","result":…} or {"type":"failed","message":…}.
#include "load.h"

// No job takes longer: whoever started it is gone then.
enum { LIFE_SECONDS = 300 };

unsigned char pattern[PERIOD + 2 * PIECE];
static unsigned char scratch[PIECE];

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void makePattern(void) {
  uint32_t state = 0x9e3779b9u;
  for (unsigned at = 0; at < PERIOD; at++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    pattern[at] = (unsigned char)state;
  }
  for (unsigned at = PERIOD; at < sizeof pattern; at++) pattern[at] = pattern[at - PERIOD];
}

static int dial(int port, int service, uint32_t offset, double bytes) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = loopback(port);
  if (fd < 0 || connect(fd, (void *)&address, sizeof address)) fail("connect: %s", strerror(errno));
  noDelay(fd);
  struct timeval patience = {.tv_sec = 30};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  unsigned char request[REQUEST] = {0xbe, (unsigned char)service};
  for (int at = 0; at < 4; at++) request[4 + at] = (unsigned char)(offset >> (24 - 8 * at));
  putDouble(request + 8, bytes);
  if (send(fd, request, REQUEST, MSG_NOSIGNAL) != REQUEST) fail("send: %s", strerror(errno));
  return fd;
}

static void sendAll(int fd, const unsigned char *bytes, size_t length) {
  while (length > 0) {
    ssize_t wrote = send(fd, bytes, length, MSG_NOSIGNAL);
    if (wrote <= 0) fail("send: %s", strerror(errno));
    bytes += wrote;
    length -= (size_t)wrote;
  }
}

static void receiveAll(int fd, unsigned char *bytes, size_t length) {
  while (length > 0) {
    ssize_t got = recv(fd, bytes, length, 0);
    if (got <= 0) fail("a connection ended: %s", got == 0 ? "too early" : strerror(errno));
    bytes += got;
    length -= (size_t)got;
  }
}

static size_t receivePattern(int fd, uint64_t offset) {
  ssize_t got = recv(fd, scratch, sizeof scratch, 0);
  if (got < 0) fail("receive: %s", strerror(errno));
  if (memcmp(scratch, patternAt(offset), (size_t)got)) fail("a download brought other bytes than were sent");
  return (size_t)got;
}

void sayReadyAndWait(void) {
  char line[64];
  printf("{\"type\":\"ready\"}\n");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
}

static void download(int port, uint64_t bytes) {
  int fd = dial(port, SOURCE, 7919, (double)bytes);
  uint64_t done = 0;
  for (size_t got; (got = receivePattern(fd, 7919 + done)) > 0;) done += got;
  if (done != bytes) fail("a download brought %llu of %llu bytes", (unsigned long long)done, (unsigned long long)bytes);
  close(fd);
}

static void upload(int port, uint64_t bytes) {
  int fd = dial(port, SINK, 7919, (double)bytes);
  for (uint64_t done = 0; done < bytes;) {
    size_t length = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;
    sendAll(fd, patternAt(7919 + done), length);
    done += length;
  }
  unsigned char verdict[VERDICT];
  receiveAll(fd, verdict, VERDICT);
  if (verdict[0] != 1 || getDouble(verdict + 8) != (double)bytes) fail("an upload brought other bytes than were sent");
  close(fd);
}

// Whole transfers. Those that warm up grow, and say how much the measured one may be to take its time.
static void bulk(int port, const char *direction, double warmSeconds, double seconds) {
  void (*transfer)(int, uint64_t) = strcmp(direction, "up") == 0 ? upload : download;
  double begin = now(), rate = 0;
  for (uint64_t bytes = 8u << 20; now() - begin < warmSeconds; bytes = (uint64_t)(rate * warmSeconds / 2)) {
    double from = now();
    transfer(port, bytes);
    rate = (double)bytes / (now() - from);
  }
  uint64_t bytes = (uint64_t)(rate * seconds);
  sayReadyAndWait();
  begin = now();
  transfer(port, bytes);
  printf("{\"type\":\"done\",\"result\":{\"bytes\":%llu,\"seconds\":%f}}\n", (unsigned long long)bytes, now() - begin);
}

static void roundTrip(int fd, size_t length, uint64_t number) {
  sendAll(fd, patternAt(number * 31), length);
  receiveAll(fd, scratch, length);
  if (memcmp(scratch, patternAt(number * 31), length)) fail("an echo is not what was sent");
}

int byTime(const void *a, const void *b) { return (*(float *)a > *(float *)b) - (*(float *)a < *(float *)b); }

static void echo(int port, size_t length, double warmSeconds, double seconds) {
  enum { MOST = 4000000 };
  float *times = malloc(MOST * sizeof *times);
  int fd = dial(port, ECHO, 0, 0);
  uint64_t number = 0;
  for (double begin = now(); now() - begin < warmSeconds;) roundTrip(fd, length, number++);
  sayReadyAndWait();
  size_t count = 0;
  double begin = now();
  while (now() - begin < seconds && count < MOST) {
    double from = now();
    roundTrip(fd, length, number++);
    times[count++] = (float)((now() - from) * 1000);
  }
  double took = now() - begin;
  qsort(times, count, sizeof *times, byTime);
  printf("{\"type\":\"done\",\"result\":{\"roundTrips\":%zu,\"seconds\":%f,\"p50Ms\":%f,\"p99Ms\":%f}}\n", count, took,
         times[count / 2], times[(size_t)((double)count * 0.99)]);
}

static void endless(int port, double warmSeconds, double seconds) {
  int fd = dial(port, SOURCE, 0, 9e15);
  uint64_t done = 0;
  double begin = now();
  while (now() - begin < warmSeconds) done += receivePattern(fd, done);
  uint64_t before = done;
  begin = now();
  while (now() - begin < seconds) done += receivePattern(fd, done);
  double alone = (double)(done - before) / (now() - begin);
  printf("{\"type\":\"ready\"}\n");
  fflush(stdout);
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  before = done;
  begin = now();
  char word;
  for (;;) {
    done += receivePattern(fd, done);
    ssize_t got = read(STDIN_FILENO, &word, 1);
    if (got == 0) exit(0);
    if (got == 1) break;
  }
  printf("{\"type\":\"done\",\"result\":{\"bytes\":%llu,\"seconds\":%f,\"aloneBytesPerSecond\":%f}}\n",
         (unsigned long long)(done - before), now() - begin, alone);
}

static void hold(int port, int count) {
  int *fds = malloc((size_t)count * sizeof *fds);
  for (int at = 0; at < count; at++) {
    fds[at] = dial(port, ECHO, 0, 0);
    roundTrip(fds[at], SMALL, (uint64_t)at);
  }
  sayReadyAndWait();
  for (int at = 0; at < count; at++) roundTrip(fds[at], SMALL, (uint64_t)at + 1);
  printf("{\"type\":\"done\",\"result\":{\"connections\":%d}}\n", count);
}

int main(int count, char **words) {
  const char *job = count > 1 ? words[1] : "";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  makePattern();
  if (strcmp(job, "origin") == 0) return origin();
  alarm(LIFE_SECONDS);
  int port = count > 2 ? atoi(words[2]) : 0;
  if (strcmp(job, "bulk") == 0 && count == 6) bulk(port, words[3], atof(words[4]), atof(words[5]));
  else if (strcmp(job, "echo") == 0 && count == 6) echo(port, (size_t)atoi(words[3]), atof(words[4]), atof(words[5]));
  else if (strcmp(job, "endless") == 0 && count == 5) endless(port, atof(words[3]), atof(words[4]));
  else if (strcmp(job, "hold") == 0 && count == 4) hold(port, atoi(words[3]));
  else if (strcmp(job, "datagrams") == 0 && count == 7)
    datagrams(port, (size_t)atoi(words[3]), (uint32_t)atoi(words[4]), atof(words[5]), atof(words[6]));
  else fail("no such job");
  fflush(stdout);
  return 0;
}
