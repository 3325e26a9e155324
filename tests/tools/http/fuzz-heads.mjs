// Unusual request and response heads end to end: visitors with HTTP/1.1 and HTTP/2, services with HTTP/1.1 and h2c. Every attempt must
// end in time with a status, a reset or a close. At the end the edge must be the same process, without an internal error, and without
// open connections.
import { connect as connectTcp, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Chance } from '../lib/chance.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { Client, startStack } from '../soak/lib/stack.mjs';
import {
  END_STREAM,
  FrameReader,
  fieldBlock,
  frame,
  headFrames,
  indexed,
  PREFACE,
  TYPE,
  tableSize,
} from './lib/raw-http2.mjs';

const USAGE = `usage: node tests/tools/http/fuzz-heads.mjs [--tries N] [--seed N] [--at-once N]
100,000 tries (--tries), 200 at a time (--at-once). The seed is printed; the same one brings the same heads.`;

/** Time limit of an attempt. The edge waits 2 s for a service (see the stack's configuration) and 5 s for a visitor's head. */
const TRY_TIMEOUT_MS = 15_000;
/**
 * Number of attempts that must have begun after an attempt before its time limit applies. If other programs leave the edge a few percent
 * of a core, all attempts take long. A lost request is overtaken.
 */
const OVERTAKEN_MIN = 2000;
/** Time limit of an attempt that is not overtaken, for example because no attempt ends. */
const STUCK_TIMEOUT_MS = 120_000;
/** Maximum number of attempts without an end that are described. */
const DESCRIBED_MAX = 5;
const NAMES = [
  'host',
  'Host',
  'connection',
  'te',
  'trailer',
  'upgrade',
  'keep-alive',
  'proxy-connection',
  'http2-settings',
];
const ODD_NAMES = [
  'x y',
  'x\u0000',
  '',
  'x:',
  ':status',
  ':path',
  ':authority',
  'X-Upper',
  'x_y',
  'cookie',
  'forwarded',
  'x-forwarded-for',
];
const ODD_VALUES = [
  '',
  ' ',
  '\t',
  'a\u0000b',
  'a\rb',
  'a\nb',
  '\u00e9',
  '\u007f',
  'trailers',
  'close',
  'h2c',
  '100-continue',
  'a, b, c',
  '0',
  '-1',
];
const AUTHORITIES = [
  '',
  ' ',
  '[::1',
  '[::1]',
  'a/b',
  '@',
  'user@web.localhost',
  'web.localhost:',
  'web.localhost:99999',
  'WEB.localhost',
  'web.localhost.',
  'web.localhost, x',
  'web..localhost',
  '\u00e9.localhost',
  '%77eb.localhost',
  '*',
];
const STATUSES = [100, 101, 102, 103, 199, 200, 204, 205, 206, 301, 304, 399, 404, 418, 499, 500, 599, 600, 999, 0, 42];
const HOSTS = ['web.localhost', 'calls.localhost', 'kept.localhost'];

const randomName = (chance) => {
  if (chance.isOneIn(8)) return chance.of(NAMES);
  return chance.isOneIn(12) ? chance.of(ODD_NAMES) : `x-${chance.between(0, 500)}`;
};

const randomValue = (chance) => {
  if (chance.isOneIn(8)) return chance.of(ODD_VALUES);
  return chance.isOneIn(40) ? 'v'.repeat(chance.between(100, 20_000)) : `v${chance.between(0, 99)}`;
};

/** Returns random header fields, mostly around the limit of 128. */
const randomFields = (chance) => {
  const count = chance.of([0, 1, 3, 10, 100, 118, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 150, 200]);
  return Array.from({ length: count }, () =>
    chance.isOneIn(count > 50 ? 60 : 4)
      ? [randomName(chance), randomValue(chance)]
      : [`x-${chance.between(0, 999)}`, 'v'],
  );
};

const randomHost = (chance) => (chance.isOneIn(10) ? chance.of(AUTHORITIES) : chance.of(HOSTS));

// ---- services ----

const linesOf = (fields) => fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');

const startOddHttp1Service = (chance) =>
  listening(
    createServer((socket) => {
      socket.on('error', () => {});
      let head = '';
      socket.on('data', (bytes) => {
        head = (head + bytes.toString('latin1')).slice(-300_000);
        const end = head.indexOf('\r\n\r\n');
        if (end === -1) return;
        head = head.slice(end + 4);
        socket.write(oddHttp1Answer(chance), 'latin1');
        if (chance.isOneIn(4)) socket.end();
        else if (chance.isOneIn(20)) socket.resetAndDestroy();
      });
    }),
  );

const oddHttp1Answer = (chance) => {
  const status = chance.isOneIn(3) ? chance.of(STATUSES) : 200;
  const interim = chance.isOneIn(6) ? `HTTP/1.1 103 Early Hints\r\n${linesOf(randomFields(chance))}\r\n` : '';
  const fields = chance.isOneIn(2) ? linesOf(randomFields(chance)) : '';
  if (chance.isOneIn(4)) {
    const trailers = chance.isOneIn(2) ? linesOf(randomFields(chance)) : '';
    return `${interim}HTTP/1.1 ${status} x\r\n${fields}transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${trailers}\r\n`;
  }
  const upgrade = status === 101 && chance.isOneIn(2) ? 'connection: upgrade\r\nupgrade: odd\r\n' : '';
  return `${interim}HTTP/1.${chance.of([0, 1, 1, 1])} ${status} x\r\n${fields}${upgrade}content-length: 2\r\n\r\nok`;
};

const startOddHttp2Service = (chance) =>
  listening(
    createServer((socket) => {
      socket.on('error', () => {});
      let prefaceLeft = PREFACE.length;
      socket.write(frame(TYPE.settings, 0, 0, oddSettings(chance, true)));
      const reader = new FrameReader(socket, ({ type, streamId }) => {
        if (type === TYPE.headers) socket.write(oddHttp2Answer(chance, streamId));
      });
      socket.on('data', (bytes) => {
        const skipped = Math.min(prefaceLeft, bytes.length);
        prefaceLeft -= skipped;
        if (skipped < bytes.length) reader.take(bytes.subarray(skipped));
      });
    }),
  );

const setting = (id, value) => {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
};

/** Returns unusual settings: header table size, concurrent streams, header list size, and for services a window that admits no body. */
const oddSettings = (chance, isService) =>
  chance.of([
    Buffer.alloc(0),
    setting(1, 0),
    setting(1, 65_536),
    setting(3, 1),
    isService ? setting(4, 0) : setting(4, 100_000),
    setting(6, 100),
    setting(6, 100_000),
    Buffer.concat([setting(1, 100), setting(1, 4096)]),
  ]);

const oddHttp2Answer = (chance, streamId) => {
  const status = chance.isOneIn(3) ? chance.of(STATUSES) : 200;
  const fields = chance.isOneIn(2) ? randomFields(chance).map(([name, value]) => [name.toLowerCase(), value]) : [];
  const block = fieldBlock([[':status', String(status)], ...fields]);
  const head = (endsStream) => headFrames(streamId, block, endsStream);
  const data = frame(TYPE.data, 0, streamId, Buffer.from('ok'));
  const end = frame(TYPE.data, END_STREAM, streamId, Buffer.from('ok'));
  return chance.of([
    () => head(true),
    () => Buffer.concat([head(false), end]),
    () => Buffer.concat([head(false), data, headFrames(streamId, fieldBlock(fields), true)]),
    () => Buffer.concat([head(false), data, head(true)]),
    () => Buffer.concat([headFrames(streamId, fieldBlock([[':status', '103'], ...fields]), false), head(false), end]),
    () => headFrames(streamId, Buffer.concat([tableSize(chance.between(0, 10_000)), block]), true),
    () => headFrames(streamId, indexed(chance.between(1, 200)), true),
    () => Buffer.concat([head(false), frame(TYPE.reset, 0, streamId, Buffer.from([0, 0, 0, chance.between(0, 13)]))]),
    () => frame(TYPE.reset, 0, streamId, Buffer.from([0, 0, 0, chance.between(0, 13)])),
    () => frame(TYPE.goaway, 0, 0, Buffer.from([0, 0, 0, chance.between(0, 255), 0, 0, 0, chance.between(0, 13)])),
    () => Buffer.concat([end, head(true)]),
    () => frame(TYPE.push, 4, streamId, Buffer.concat([Buffer.from([0, 0, 0, 2]), block])),
    () =>
      frame(
        chance.between(0, 12),
        chance.between(0, 255),
        chance.of([0, streamId, 2]),
        chance.bytes(chance.between(0, 30)),
      ),
    () => Buffer.concat([head(true), head(true)]),
  ])();
};

const listening = (server) =>
  new Promise((resolve) => {
    server.listen({ port: 0, host: '127.0.0.1' }, () => resolve(server.address().port));
  });

// ---- visitors: each resolves with how it ended ----

const overTime = (resolve, socket, run, about) => {
  const begunMs = performance.now();
  const begunBefore = run.begun;
  const end = (ended) => {
    clearInterval(timer);
    resolve(ended);
    socket.destroy();
  };
  const timer = setInterval(() => {
    const ageMs = performance.now() - begunMs;
    if (ageMs < STUCK_TIMEOUT_MS && run.begun - begunBefore < OVERTAKEN_MIN) return;
    run.describe(`no end after ${Math.round(ageMs)} ms and ${run.begun - begunBefore} later tries: ${about()}`);
    end('no end');
  }, TRY_TIMEOUT_MS);
  return end;
};

const tryHttp1 = (chance, { httpPort }, run) =>
  new Promise((resolve) => {
    const socket = connectTcp({ port: httpPort, host: '127.0.0.1' });
    let seen = '';
    const end = overTime(resolve, socket, run, () => JSON.stringify({ head: head.slice(0, 1000), seen }));
    const method = chance.of(['GET', 'GET', 'HEAD', 'POST', 'OPTIONS']);
    const fields = linesOf(randomFields(chance));
    const body = chance.isOneIn(5);
    const rest = body
      ? `transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${chance.isOneIn(2) ? linesOf(randomFields(chance)) : ''}\r\n`
      : '\r\n';
    const upgrade = chance.isOneIn(8) ? 'connection: upgrade\r\nupgrade: odd\r\n' : '';
    const version = chance.of([0, 1, 1, 1]);
    const head = `${method} /x HTTP/1.${version}\r\nhost: ${randomHost(chance)}\r\n${upgrade}${fields}${rest}`;
    socket.write(head, 'latin1');
    socket.on('data', (bytes) => {
      seen = (seen + bytes.toString('latin1')).slice(0, 100_000);
      const status =
        /^HTTP\/1\.1 (?:100|102|103)[^]*?\r\n\r\nHTTP\/1\.1 (\d{3})|^HTTP\/1\.1 (?!100|102|103)(\d{3})/.exec(seen);
      if (status !== null) end(`status ${(status[1] ?? status[2])[0]}xx`);
    });
    socket.on('error', () => end('reset'));
    socket.on('close', () => end('closed'));
  });

const tryHttp2 = (chance, { httpsPort }, run) =>
  new Promise((resolve) => {
    const socket = connectTls({ port: httpsPort, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    const end = overTime(
      resolve,
      socket,
      run,
      () => `HTTP/2, ${socket.bytesRead} bytes read, streams ${[...left].join(', ')}`,
    );
    const left = new Set();
    const reader = new FrameReader(socket, ({ type, flags, streamId }) => {
      if (type === TYPE.reset || ((type === TYPE.headers || type === TYPE.data) && (flags & END_STREAM) !== 0))
        left.delete(streamId);
      if (type === TYPE.goaway) end('goaway');
      else if (left.size === 0) end('streams over');
    });
    socket.write(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0, oddSettings(chance, false))]));
    for (let streamId = 1; streamId < 2 * chance.between(1, 12); streamId += 2) {
      left.add(streamId);
      socket.write(oddHttp2Request(chance, streamId));
    }
    socket.on('data', (bytes) => reader.take(bytes));
    socket.on('error', () => end('reset'));
    socket.on('close', () => end('closed'));
  });

const oddHttp2Request = (chance, streamId) => {
  const pseudo = [
    [':method', chance.of(['GET', 'GET', 'POST', 'HEAD', 'CONNECT'])],
    [':scheme', chance.of(['https', 'https', 'http', 'ftp'])],
    [':authority', randomHost(chance)],
    [':path', chance.of(['/x', '/x', '*', '', 'x', '/x y', '/x#y'])],
  ].filter(() => !chance.isOneIn(50));
  if (chance.isOneIn(40)) pseudo.push([':protocol', 'websocket']);
  const fields = randomFields(chance).map(([name, value]) => [chance.isOneIn(50) ? name : name.toLowerCase(), value]);
  const block = fieldBlock(chance.isOneIn(50) ? [...fields, ...pseudo] : [...pseudo, ...fields]);
  if (!chance.isOneIn(4))
    return headFrames(streamId, chance.isOneIn(50) ? Buffer.concat([tableSize(0), block]) : block, true);
  const parts = [headFrames(streamId, block, false), frame(TYPE.data, 0, streamId, Buffer.from('ok'))];
  const trailers = randomFields(chance).map(([name, value]) => [name.toLowerCase(), value]);
  parts.push(
    chance.isOneIn(2) ? headFrames(streamId, fieldBlock(trailers), true) : frame(TYPE.data, END_STREAM, streamId),
  );
  return Buffer.concat(parts);
};

// ---- the run ----

await runScript(
  {
    name: 'fuzz-heads',
    usage: USAGE,
    options: { tries: 100_000, seed: (Date.now() % 1_000_000) + 1, 'at-once': 200 },
    limitSecs: ({ tries }) => 300 + tries / 30,
  },
  async ({ values: { tries, seed, 'at-once': atOnce }, say, check }) => {
    say(`seed ${seed}`);
    const chance = new Chance(seed);
    const stack = await startStack({ server: 'first_byte_timeout_secs = 2\nhead_timeout_secs = 5' });
    const web = await startOddHttp1Service(chance);
    const calls = await startOddHttp2Service(chance);
    await new Client(stack, ['http', String(web), '--subdomain', 'web']).start();
    await new Client(stack, ['http', String(web), '--subdomain', 'kept', '--host-header', 'rewrite']).start();
    await new Client(stack, ['http', String(calls), '--subdomain', 'calls', '--local-protocol', 'h2c']).start();
    const where = { httpPort: stack.portOf('http_url'), httpsPort: stack.portOf('https_url') };
    const before = await stack.metrics();
    const ends = {};
    let described = 0;
    const describe = (line) => {
      described += 1;
      if (described <= DESCRIBED_MAX) say(line);
    };
    const run = { begun: 0, describe };
    const visit = async () => {
      while (run.begun < tries) {
        run.begun += 1;
        if (run.begun % 5000 === 0) say(`${run.begun} tries: ${JSON.stringify(ends)}`);
        const kind = chance.isOneIn(4) ? 'http2' : 'http1';
        const ended = await (kind === 'http1' ? tryHttp1 : tryHttp2)(chance, where, run);
        ends[`${kind} ${ended}`] = (ends[`${kind} ${ended}`] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, visit));
    await pause(100);
    say(JSON.stringify(ends));
    const stayed = (ends['http1 no end'] ?? 0) + (ends['http2 no end'] ?? 0);
    check(stayed === 0, `every try came to an end: ${stayed} did not`);
    const isOver = async () => (await stack.metrics()).tunnel_active_connections === 0;
    const over = await until('all connections are over', isOver, { timeoutMs: 90_000, everyMs: 500 }).catch(
      () => false,
    );
    const after = await stack.metrics();
    check(over === true, `no connection is left: ${after.tunnel_active_connections}`);
    if (over !== true) say(await stack.connections());
    check(after.process_start_time_seconds === before.process_start_time_seconds, 'the edge is the same process');
    check(
      (after.tunnel_internal_errors_total ?? 0) === 0,
      `internal errors: ${after.tunnel_internal_errors_total ?? 0}`,
    );
    check((await stack.close()) === 'exit code 0', `the stack ends as asked: ${stack.child.exit}`);
    return `${tries} tries, seed ${seed}`;
  },
);
