// Misbehaving local services. The path or the first byte selects the behavior that a visitor wants to see.
import { createServer as createHttp2Server } from 'node:http2';
import { createServer } from 'node:net';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const CHUNK = Buffer.alloc(16 * 1024, 'x');
const chunkedHead = (more = '') => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n${more}\r\n`;

/** Writes bytes as long as the socket accepts them. */
const pump = (socket, bytes) => {
  const go = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', go);
  go();
};

const drip = (socket, bytes, everyMs, count) => {
  let left = count;
  const timer = setInterval(() => {
    left -= 1;
    if (socket.destroyed || left < 0) clearInterval(timer);
    else socket.write(bytes);
    if (left === 0) socket.end();
  }, everyMs);
};

const HTTP1 = {
  ok: (socket) => socket.write(OK),
  empty: (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
  big: (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${64 * CHUNK.length}\r\n\r\n`);
    for (let n = 0; n < 64; n += 1) socket.write(CHUNK);
  },
  chunked: (socket) => socket.write(`${chunkedHead()}5\r\nhello\r\n0\r\n\r\n`),
  trailers: (socket) => socket.write(`${chunkedHead('trailer: x-sum\r\n')}2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n`),
  slow: (socket) => setTimeout(() => socket.destroyed || socket.write(OK), 2000),
  never: () => {},
  'hang-up': (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
  cut: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf'),
  'cut-reset': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf', () => socket.resetAndDestroy());
  },
  'bad-chunk': (socket) => socket.write(`${chunkedHead()}5\r\nhello\r\nzz\r\n`),
  'bad-head': (socket) => socket.write('HTTP/1.1 200 OK\r\nno colon here\r\n\r\n'),
  'no-http': (socket) => socket.write('220 mail.example ready\r\n'),
  'two-lengths': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!'),
  interim: (socket) => {
    for (let n = 0; n < 20; n += 1) socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n');
    socket.write(OK);
  },
  'interim-endless': (socket) => pump(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'.repeat(50)),
  'huge-head': (socket) => socket.write(`HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(200_000)}\r\n\r\n`),
  'many-fields': (socket) => {
    const fields = Array.from({ length: 140 }, (_, n) => `x-${n}: ${n}\r\n`).join('');
    socket.write(`HTTP/1.1 200 OK\r\n${fields}content-length: 2\r\n\r\nok`);
  },
  'until-close': (socket) => socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall there is'),
  endless: (socket) => {
    socket.write(chunkedHead());
    pump(socket, `${CHUNK.length.toString(16)}\r\n${CHUNK}\r\n`);
  },
  drip: (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n');
    drip(socket, '.', 100, 50);
  },
  upgrade: (socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n');
    socket.isEcho = true;
  },
  'upgrade-never': () => {},
  'more-than-said': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more'),
  deaf: (socket) => socket.pause(),
};

const HTTP2 = {
  ok: (stream) => stream.respond({ ':status': 200 }) ?? stream.end('ok'),
  big: (stream) => {
    stream.respond({ ':status': 200 });
    stream.end(Buffer.alloc(1024 * 1024, 'x'));
  },
  trailers: (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end('ok');
  },
  never: () => {},
  slow: (stream) => setTimeout(() => stream.destroyed || HTTP2.ok(stream), 2000),
  reset: (stream) => stream.close(8),
  'cut-reset': (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('half', () => stream.close(2));
  },
  'go-away': (stream) => stream.session.goaway(0),
  'hang-up': (stream) => stream.session.destroy(),
  interim: (stream) => {
    for (let n = 0; n < 20; n += 1) stream.additionalHeaders({ ':status': 103, link: '</a>; rel=preload' });
    HTTP2.ok(stream);
  },
  'many-fields': (stream) => {
    const fields = Object.fromEntries(Array.from({ length: 140 }, (_, n) => [`x-${n}`, String(n)]));
    stream.respond({ ':status': 200, ...fields });
    stream.end('ok');
  },
  deaf: (stream) => stream.pause(),
  endless: (stream) => {
    stream.respond({ ':status': 200 });
    pump(stream, CHUNK);
  },
};

const TCP = {
  e: (socket) => socket.pipe(socket),
  h: (socket) => socket.end(),
  r: (socket) => socket.resetAndDestroy(),
  s: () => {},
  x: (socket) => pump(socket, CHUNK),
  d: (socket) => drip(socket, '.', 100, 50),
};

export const HTTP1_WAYS = Object.keys(HTTP1);
export const HTTP2_WAYS = Object.keys(HTTP2);
export const TCP_WAYS = Object.keys(TCP);

const wayOf = (ways, path) => ways[path.split('/')[1]] ?? ways.ok;

const listening = (server) =>
  new Promise((resolve) => {
    server.listen({ port: 0, host: '127.0.0.1' }, () => resolve({ port: server.address().port }));
  });

/** Returns the end of a body in the text after its head (latin1), or -1 if the body is incomplete. */
const endOfBody = (text, head) => {
  if (!/^transfer-encoding:.*chunked/im.test(head)) {
    const end = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    return text.length < end ? -1 : end;
  }
  for (let next = 0; ; ) {
    const line = text.indexOf('\r\n', next);
    if (line === -1) return -1;
    const size = Number.parseInt(text.slice(next, line), 16);
    if (size === 0) {
      const end = text.indexOf('\r\n\r\n', line);
      return end === -1 ? -1 : end + 4;
    }
    next = line + 2 + size + 2;
  }
};

/**
 * Starts a service that answers a head as soon as it arrives and skips the body. The service must know where the next head begins,
 * because misbehaving visitors and the honest visitor share a connection.
 */
export const startHttp1Service = () =>
  listening(
    createServer((socket) => {
      let text = '';
      let head = null;
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        if (socket.isEcho) return void socket.write(bytes);
        text += bytes.toString('latin1');
        for (;;) {
          if (head === null) {
            const end = text.indexOf('\r\n\r\n');
            if (end === -1) return;
            head = text.slice(0, end);
            text = text.slice(end + 4);
            const [, path] = /^[A-Z]+ (\S+) HTTP/im.exec(head) ?? [];
            if (path !== undefined && !socket.destroyed) wayOf(HTTP1, path)(socket);
          }
          const end = endOfBody(text, head);
          if (end === -1) return;
          text = text.slice(end);
          head = null;
        }
      });
    }),
  );

export const startHttp2Service = () => {
  const server = createHttp2Server();
  server.on('session', (session) => session.on('error', () => {}));
  server.on('sessionError', () => {});
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    stream.resume();
    try {
      wayOf(HTTP2, headers[':path'])(stream);
    } catch {
      // The visitor has already closed the stream.
    }
  });
  return listening(server);
};

export const startTcpService = () =>
  listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      socket.on('end', () => socket.end());
      socket.once('data', (bytes) => (TCP[String.fromCharCode(bytes[0])] ?? TCP.e)(socket));
    }),
  );
