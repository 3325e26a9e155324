// Misbehaving visitors: unusual requests, and unusual ways to leave. Each visitor leaves after `stayMs` at the latest.
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { END_STREAM, FrameReader, fieldBlock, frame, headFrames, PREFACE, TYPE } from '../../http/lib/raw-http2.mjs';
import { HTTP1_WAYS, HTTP2_WAYS, TCP_WAYS } from './odd-services.mjs';

const LONGEST_STAY_MS = 40_000;
const METHODS = ['GET', 'GET', 'GET', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'DELETE', 'get', 'CONNECT', 'BREW'];

/** All current visitors, so that the end of the soak can disconnect them. */
export class Visitors {
  #chance;
  #where;
  #open = new Set();
  counts = {};

  /** `where` contains { httpPort, httpsPort, controlPort, restPort, platformPort, tcpPort, hosts }. */
  constructor(chance, where) {
    this.#chance = chance;
    this.#where = where;
  }

  get open() {
    return this.#open.size;
  }

  /** Sends a visitor of a random kind. */
  send() {
    const kind = this.#chance.of(Object.keys(KINDS));
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    KINDS[kind](this.#chance, this.#where, (end, destroy) => this.#stay(end, destroy));
  }

  /** Lets a visitor leave after a random time, or earlier when all visitors must leave. */
  #stay(socket, leave) {
    const chance = this.#chance;
    this.#open.add(socket);
    const stayMs = chance.isOneIn(8) ? LONGEST_STAY_MS : chance.between(5, 4000);
    const timer = setTimeout(() => leave(), stayMs);
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(timer);
      this.#open.delete(socket);
    });
  }

  leaveAll() {
    for (const socket of this.#open) socket.destroy();
  }
}

/** Returns a way to leave: a FIN, a reset, or the destruction of the socket. */
const leaving = (chance, socket) => {
  const way = chance.of(['end', 'reset', 'destroy', 'half']);
  return () => {
    if (way === 'reset' && socket.resetAndDestroy !== undefined && socket.encrypted !== true) socket.resetAndDestroy();
    else if (way === 'end' || way === 'half') {
      socket.end();
      // After a half close the visitor stays for a while to receive the response.
      setTimeout(() => socket.destroy(), way === 'half' ? 5000 : 500).unref();
    } else socket.destroy();
  };
};

const plainOrTls = (chance, { httpPort, httpsPort }, stay) => {
  const isTls = chance.isOneIn(2);
  const socket = isTls
    ? connectTls({ port: httpsPort, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connectTcp({ port: httpPort, host: '127.0.0.1' });
  stay(socket, leaving(chance, socket));
  if (chance.isOneIn(3)) socket.pause();
  else socket.resume();
  return socket;
};

const head = (chance, { hosts }, way, fields = '') => {
  const method = chance.of(METHODS);
  const version = chance.isOneIn(8) ? '1.0' : '1.1';
  const path = chance.isOneIn(20) ? `http://${chance.of(hosts)}/${way}` : `/${way}`;
  const host = chance.isOneIn(30) ? '' : `host: ${chance.of(hosts)}\r\n`;
  return `${method} ${path} HTTP/${version}\r\n${host}${fields}`;
};

const oddFields = (chance) =>
  chance.of([
    '',
    '',
    '',
    'connection: close\r\n',
    'content-length: 5\r\n',
    'content-length: 100000\r\n',
    'content-length: 5\r\ntransfer-encoding: chunked\r\n',
    'transfer-encoding: chunked\r\n',
    'transfer-encoding: gzip, chunked\r\n',
    'expect: 100-continue\r\ncontent-length: 10\r\n',
    'connection: upgrade\r\nupgrade: odd\r\n',
    'connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n',
    'no colon\r\n',
    ' folded: yes\r\n',
    'x-long: LONG\r\n'.replace('LONG', 'a'.repeat(40_000)),
    Array.from({ length: 150 }, (_, n) => `x-${n}: ${n}\r\n`).join(''),
    Array.from({ length: 122 }, (_, n) => `x-${n}: ${n}\r\n`).join(''),
  ]);

const oddBody = (chance) =>
  chance.of([
    Buffer.alloc(0),
    Buffer.from('hello'),
    Buffer.from('5\r\nhello\r\n0\r\n\r\n'),
    Buffer.from('5\r\nhello\r\nzz\r\n'),
    Buffer.alloc(chance.between(1, 200_000), 'b'),
    chance.bytes(64),
  ]);

const KINDS = {
  request: (chance, where, stay) => {
    const socket = plainOrTls(chance, where, stay);
    for (let left = chance.between(1, 3); left > 0; left -= 1) {
      socket.write(`${head(chance, where, chance.of(HTTP1_WAYS), oddFields(chance))}\r\n`);
      socket.write(oddBody(chance));
    }
  },
  pipelined: (chance, where, stay) => {
    const socket = plainOrTls(chance, where, stay);
    const way = chance.of(['ok', 'big', 'slow', 'never', 'trailers']);
    const one = `GET /${way} HTTP/1.1\r\nhost: ${chance.of(where.hosts)}\r\n\r\n`;
    socket.write(one.repeat(chance.between(2, 300)));
  },
  'unfinished head': (chance, where, stay) => {
    const whole = `${head(chance, where, 'ok', oddFields(chance))}\r\n`;
    plainOrTls(chance, where, stay).write(whole.slice(0, chance.between(1, whole.length - 1)));
  },
  'early bytes of an upgrade': (chance, where, stay) => {
    const socket = plainOrTls(chance, where, stay);
    const way = chance.of(['upgrade', 'upgrade-never', 'ok', 'slow']);
    socket.write(
      `GET /${way} HTTP/1.1\r\nhost: ${chance.of(where.hosts)}\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n`,
    );
    socket.write(Buffer.alloc(chance.between(1, 300_000), 'e'));
  },
  garbage: (chance, where, stay) => {
    plainOrTls(chance, where, stay).write(chance.bytes(chance.between(1, 3000)));
  },
  'cut handshake': (chance, where, stay) => {
    const port = chance.of([where.httpsPort, where.controlPort]);
    const socket = connectTcp({ port, host: '127.0.0.1' });
    stay(socket, leaving(chance, socket));
    // Sends the beginning of a ClientHello, followed by random bytes or nothing.
    socket.write(
      Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), chance.bytes(chance.between(0, 300))]),
    );
  },
  // Frames are written by hand, because the HTTP/2 client of Node.js sometimes corrupts its memory when sessions are destroyed in this
  // way.
  http2: (chance, where, stay) => {
    const socket = connectTls({
      port: where.httpsPort,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    });
    stay(socket, leaving(chance, socket));
    const reader = new FrameReader(socket, ({ type, streamId, payload }) => {
      if (type !== TYPE.data || payload.length === 0 || chance.isOneIn(20)) return;
      // Some visitors never send window updates.
      const increment = Buffer.alloc(4);
      increment.writeUInt32BE(payload.length);
      socket.write(Buffer.concat([frame(TYPE.window, 0, 0, increment), frame(TYPE.window, 0, streamId, increment)]));
    });
    if (chance.isOneIn(3)) socket.pause();
    else socket.on('data', (bytes) => reader.take(bytes));
    socket.write(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0)]));
    for (let streamId = 1; streamId < 2 * chance.between(1, 30); streamId += 2) {
      socket.write(oddStream(chance, where, streamId));
    }
    if (chance.isOneIn(4))
      setTimeout(() => socket.write(oddStream(chance, where, 101)), chance.between(0, 500)).unref();
  },
  'http2 garbage': (chance, where, stay) => {
    const socket = connectTls({
      port: where.httpsPort,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    });
    stay(socket, leaving(chance, socket));
    socket.resume();
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    for (let left = chance.between(1, 50); left > 0; left -= 1) socket.write(oddFrame(chance));
  },
  tcp: (chance, where, stay) => {
    const socket = connectTcp({ port: where.tcpPort, host: '127.0.0.1' });
    stay(socket, leaving(chance, socket));
    if (!chance.isOneIn(3)) socket.resume();
    socket.write(chance.of(TCP_WAYS));
    if (chance.isOneIn(2)) socket.write(Buffer.alloc(chance.between(1, 500_000), 'v'));
  },
  'control garbage': (chance, where, stay) => {
    const socket = connectTls({ port: where.controlPort, host: '127.0.0.1', rejectUnauthorized: false });
    stay(socket, leaving(chance, socket));
    socket.resume();
    const path = chance.of(['/_control', '/_carrier', '/', '/nonsense']);
    if (chance.isOneIn(4)) return void socket.write(chance.bytes(300));
    const fields =
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
    socket.write(`GET ${path} HTTP/1.1\r\nhost: edge\r\n${fields}\r\n`);
    socket.write(chance.bytes(chance.between(0, 2000)));
  },
  'rest garbage': (chance, where, stay) => {
    const socket = connectTcp({ port: chance.of([where.restPort, where.platformPort]), host: '127.0.0.1' });
    stay(socket, leaving(chance, socket));
    socket.resume();
    const path = chance.of([
      '/api/tunnels',
      '/api/groups/%00/x',
      '/auth/login',
      '/auth/register',
      '/nonsense',
      '/health',
    ]);
    const body = chance.of(['', '{', '{"email":1}', '[[[[', '\u0000']);
    const length = chance.of([body.length, 100_000, 5_000_000]);
    const fields = `host: localhost:${where.platformPort}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n`;
    socket.write(`${chance.of(METHODS)} ${path} HTTP/1.1\r\n${fields}authorization: Bearer nonsense\r\n\r\n${body}`);
  },
};

const oddStream = (chance, { hosts }, streamId) => {
  const hasBody = chance.isOneIn(3);
  const count = chance.isOneIn(6) ? 121 : 0;
  const fields = Array.from({ length: count }, (_, n) => [`x-${n}`, `${n}`]);
  const block = fieldBlock([
    [':method', hasBody ? 'POST' : 'GET'],
    [':scheme', 'https'],
    [':authority', chance.of(hosts)],
    [':path', `/${chance.of(HTTP2_WAYS)}`],
    ...fields,
  ]);
  const parts = [headFrames(streamId, block, !hasBody)];
  if (hasBody)
    parts.push(frame(TYPE.data, chance.of([0, END_STREAM]), streamId, Buffer.alloc(chance.between(1, 16_000), 's')));
  if (chance.isOneIn(4)) parts.push(frame(TYPE.reset, 0, streamId, Buffer.from([0, 0, 0, 8])));
  return Buffer.concat(parts);
};

const oddFrame = (chance) =>
  frame(
    chance.between(0, 10),
    chance.between(0, 255),
    chance.of([0, 1, 1, 3, 5, 7]),
    chance.bytes(chance.between(0, 40)),
  );
