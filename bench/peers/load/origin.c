// The local service behind every path, as origin.mjs and http-service.mjs of bench/load are: one port, four services, HTTP and datagrams.
#include "load.h"

enum { EVENTS = 256, BODY_MAX = 65536 };

static unsigned char scratch[PIECE];

struct connection {
  int fd, service, isHttp, have, wantsToWrite, isRight, ends;
  unsigned char *head;              // The request while it is incomplete; of HTTP the heads.
  unsigned char *out;               // What the kernel did not take of an echo or an answer.
  size_t outLength, outAt;
  uint64_t offset, done, total;
};

static int loop;

static void drop(struct connection *c) {
  close(c->fd);
  free(c->head);
  free(c->out);
  free(c);
}

static void wantWrite(struct connection *c, int wants) {
  if (c->wantsToWrite == wants) return;
  c->wantsToWrite = wants;
  struct epoll_event event = {.events = EPOLLIN | (wants ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(loop, EPOLL_CTL_MOD, c->fd, &event);
}

// -1: the connection is over.
static int say(struct connection *c, const unsigned char *bytes, size_t length) {
  size_t sent = 0;
  if (c->outLength == c->outAt) {
    ssize_t wrote = send(c->fd, bytes, length, MSG_NOSIGNAL);
    if (wrote < 0 && errno != EAGAIN) return -1;
    sent = wrote < 0 ? 0 : (size_t)wrote;
  }
  if (sent == length) return 0;
  memmove(c->out, c->out + c->outAt, c->outLength -= c->outAt);
  c->outAt = 0;
  c->out = realloc(c->out, c->outLength + length - sent);
  memcpy(c->out + c->outLength, bytes + sent, length - sent);
  c->outLength += length - sent;
  wantWrite(c, 1);
  return 0;
}

static int endWhenSaid(struct connection *c) {
  if (c->outLength > c->outAt || (c->service == SOURCE && c->done < c->total)) return 0;
  return c->ends && shutdown(c->fd, SHUT_WR) ? -1 : 0;
}

static int onWritable(struct connection *c) {
  if (c->outLength > c->outAt) {
    ssize_t wrote = send(c->fd, c->out + c->outAt, c->outLength - c->outAt, MSG_NOSIGNAL);
    if (wrote < 0) return errno == EAGAIN ? 0 : -1;
    c->outAt += (size_t)wrote;
  }
  if (c->service == SOURCE && c->outLength == c->outAt && c->done < c->total) {
    uint64_t left = c->total - c->done;
    ssize_t wrote = send(c->fd, patternAt(c->offset + c->done), left < PIECE ? left : PIECE, MSG_NOSIGNAL);
    if (wrote < 0) return errno == EAGAIN ? 0 : -1;
    c->done += (uint64_t)wrote;
  }
  wantWrite(c, c->outLength > c->outAt || (c->service == SOURCE && c->done < c->total));
  return c->wantsToWrite ? 0 : endWhenSaid(c);
}

static int takeHttp(struct connection *c, const unsigned char *bytes, size_t length) {
  if (c->have + length >= HEAD) return -1;
  memcpy(c->head + c->have, bytes, length);
  c->have += (int)length;
  for (;;) {
    c->head[c->have] = 0;
    char *text = (char *)c->head, *end = strstr(text, "\r\n\r\n");
    if (end == NULL) return 0;
    end[2] = 0;
    unsigned long offset, size;
    if (sscanf(text, "GET /%9lu/%9lu HTTP/1.1\r", &offset, &size) != 2 || size > BODY_MAX) return -1;
    c->ends = strcasestr(text, "\r\nconnection: close\r\n") != NULL;
    static unsigned char answer[BODY_MAX + 256];
    int head = sprintf((char *)answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %lu\r\n%s\r\n", size, c->ends ? "Connection: close\r\n" : "");
    memcpy(answer + head, patternAt(offset), size);
    if (say(c, answer, (size_t)head + size) || (c->ends && endWhenSaid(c))) return -1;
    size_t used = (size_t)(end + 4 - text);
    memmove(c->head, c->head + used, (size_t)c->have - used);
    c->have -= (int)used;
  }
}

static int take(struct connection *c, const unsigned char *bytes, size_t length) {
  if (c->isHttp) return takeHttp(c, bytes, length);
  if (c->service == 0) {
    if (c->head == NULL) c->head = malloc(HEAD);
    if (c->have == 0 && bytes[0] == 'G') {
      c->isHttp = 1;
      return takeHttp(c, bytes, length);
    }
    size_t wanted = (size_t)(REQUEST - c->have), taken = length < wanted ? length : wanted;
    memcpy(c->head + c->have, bytes, taken);
    c->have += (int)taken;
    if (c->have < REQUEST) return 0;
    const unsigned char *h = c->head;
    if (h[0] != 0xbe) return -1;
    c->service = h[1];
    c->offset = (uint64_t)h[4] << 24 | h[5] << 16 | h[6] << 8 | h[7];
    c->total = (uint64_t)getDouble(h + 8);
    c->isRight = 1;
    c->have = 0;
    free(c->head);
    c->head = NULL;
    if (c->service == SOURCE) {
      c->ends = 1;
      wantWrite(c, 1);
    }
    return length > taken ? take(c, bytes + taken, length - taken) : 0;
  }
  if (c->service == ECHO) return say(c, bytes, length);
  if (c->service == SOURCE) return 0;
  if (c->service == ANSWER) {
    c->done += length;
    c->ends = c->done >= SMALL;
    return say(c, bytes, length) || endWhenSaid(c);
  }
  if (c->service != SINK) return -1;
  if (memcmp(bytes, patternAt(c->offset + c->done), length)) c->isRight = 0;
  c->done += length;
  if (c->done < c->total || c->ends) return 0;
  unsigned char verdict[VERDICT] = {c->isRight && c->done == c->total};
  putDouble(verdict + 8, (double)c->done);
  c->ends = 1;
  return say(c, verdict, VERDICT) || endWhenSaid(c);
}

static void acceptAll(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    noDelay(fd);
    struct connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
  }
}

// One turn takes at most EVENTS datagrams, so that a flood does not keep connections waiting.
static void answerDatagrams(int fd) {
  for (int turn = 0; turn < EVENTS; turn++) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t got = recvfrom(fd, scratch, DATAGRAM_MOST, 0, (void *)&from, &size);
    if (got < 0) return;
    sendto(fd, scratch, (size_t)got, 0, (void *)&from, size);
  }
}

static int listenForDatagrams(struct sockaddr_in address) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){SOCKET_BUFFER}, sizeof(int));
  if (bind(fd, (void *)&address, sizeof address)) fail("origin, datagrams: %s", strerror(errno));
  return fd;
}

int origin(void) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener, (void *)&address, size) || listen(listener, 4096)) fail("origin: %s", strerror(errno));
  getsockname(listener, (void *)&address, &size);
  int datagramSocket = listenForDatagrams(address);
  loop = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
  epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
  event.data.ptr = &datagramSocket;
  epoll_ctl(loop, EPOLL_CTL_ADD, datagramSocket, &event);
  event.data.ptr = &loop;
  epoll_ctl(loop, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  printf("{\"type\":\"listening\",\"port\":%d}\n", ntohs(address.sin_port));
  fflush(stdout);
  struct epoll_event events[EVENTS];
  for (;;) {
    int count = epoll_wait(loop, events, EVENTS, -1);
    for (int at = 0; at < count; at++) {
      if (events[at].data.ptr == &loop) return 0;
      if (events[at].data.ptr == &datagramSocket) {
        answerDatagrams(datagramSocket);
        continue;
      }
      if (events[at].data.ptr == &listener) {
        acceptAll(listener);
        continue;
      }
      struct connection *c = events[at].data.ptr;
      int over = 0;
      if (events[at].events & EPOLLOUT) over = onWritable(c);
      // One read a turn, so that a stream does not keep the others waiting.
      if (!over && events[at].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t got = recv(c->fd, scratch, sizeof scratch, 0);
        over = got == 0 || (got < 0 && errno != EAGAIN) || (got > 0 && take(c, scratch, (size_t)got));
      }
      if (over) drop(c);
    }
  }
}
