// Every callback that Node.js calls for a single connection must be guarded: in ingress, control, upstream and mux each callback is
// either under a guard, or in the list below with the reason why it needs none. Every guarded call has a test that raises a fault there.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

const EDGE = 'apps/edge/src';
const MUX = 'packages/mux/src';
const FOLDERS = [`${EDGE}/ingress`, `${EDGE}/control`, `${EDGE}/upstream`, MUX];
/** The file of the guard helpers, which is not checked. */
const GUARD = `${MUX}/loop/guard.ts`;

/** Matches calls that register a Node.js callback or leave a promise without an observer. */
const REGISTERS =
  /\.(?:on|once|addListener|prependListener|addEventListener)\(|\bset(?:Immediate|Timeout|Interval)\(|\bqueueMicrotask\(|\bnextTick\(|\.(?:then|catch|finally)\(|\bcreateServer\(.*=>/;
/** Matches an error listener with an empty body, which cannot throw. */
const DOES_NOTHING = /\.on\('error', \(\) => \{\}\);/;
const COMMENT = /^\s*(?:\/\/|\*|\/\*)/;

const OWN_TRY = 'the method has its own try';
const SHARED = 'many share it: a fault ends the process';
const NOTHING_OF_OURS = 'calls node, and nothing of ours';

/** Unguarded callbacks by file: a part of the line, and the reason why no guard is needed. */
const OUTSIDE: Readonly<Record<string, readonly (readonly [line: string, why: string])[]>> = {
  [`${EDGE}/ingress/ingress.ts`]: [
    ['setTimeout(() => resolve(false), ms)', 'the end of the edge, no connection'],
    ['ingress.whenIdle())).then(() => {', 'the end of the edge, no connection'],
  ],
  [`${EDGE}/ingress/http/http-error-fallback.ts`]: [['this.#clock.setTimeout(() => {', OWN_TRY]],
  [`${EDGE}/ingress/http/http-ingress.ts`]: [['clock.setInterval(() => this.#tick()', 'a try for each visitor inside']],
  [`${EDGE}/control/control-server.ts`]: [["socket.on('error', ignoreError);", 'an empty function']],
  [`${EDGE}/ingress/tls/pending-handshakes.ts`]: [['setTimeout(() => this.#sweep(), ms)', SHARED]],
  [`${EDGE}/ingress/tls/context-cache.ts`]: [
    ['clock.setTimeout(() => this.#next()', 'whoever waits has its own try'],
    ['source.making?.then(goOn, goOn)', 'puts it into a queue'],
  ],
  [`${EDGE}/ingress/tls/certificate-store.ts`]: [
    ['pair.catch((error: unknown) => error', 'keeps what it caught'],
    ['clock.setTimeout(() => give?.()', 'settles a promise'],
    ['this.#maker.issue(host).finally(giveLater)', 'awaited by its caller'],
  ],
  [`${EDGE}/ingress/tls/challenge-handshakes.ts`]: [['making.finally(() => this.#making.delete(token))', OWN_TRY]],
  [`${EDGE}/ingress/tls/pending-handshake.ts`]: [['challenges.prepare(name).then((isReady) => {', OWN_TRY]],
  [`${EDGE}/ingress/tls/socket-handshake.ts`]: [
    ["socket.on('data', this.#onData)", OWN_TRY],
    ["socket.on('end', this.#onEnd)", NOTHING_OF_OURS],
    ['setImmediate(() => {', OWN_TRY],
  ],
  [`${EDGE}/ingress/tls/handle-handshake.ts`]: [
    ['setImmediate(this.#giveAway, (socket, first) => this.#owner.takesSocket', OWN_TRY],
    ['setImmediate(this.#giveAway, (socket, first) => this.#owner.takesChallenge', OWN_TRY],
  ],
  [`${EDGE}/ingress/tcp/tcp-listeners.ts`]: [
    ["server.on('error', (error) =>", 'one line of a server'],
    ['listener.opened.catch(() => {})', 'awaited elsewhere'],
  ],
  [`${EDGE}/ingress/udp/udp-listeners.ts`]: [
    ['this.#busy.get(port)?.catch(() => {})', 'awaited elsewhere'],
    ['clock.setInterval(() => this.#tick()', 'a try for each port inside'],
    ['listener.port.close().finally(() => {', NOTHING_OF_OURS],
  ],
  [`${EDGE}/ingress/udp/udp-port.ts`]: [['verdict.then(decided, ', OWN_TRY]],
  [`${EDGE}/ingress/http/http1/http1-visitor.ts`]: [['setImmediate(() => {', OWN_TRY]],
  [`${EDGE}/ingress/http/http2/http2-response.ts`]: [['setImmediate(() => this.#closeAtEnd())', NOTHING_OF_OURS]],
  [`${EDGE}/ingress/http/pending-decision.ts`]: [['decision.then(decided, ', OWN_TRY]],
  [`${EDGE}/ingress/http/proxied-request.ts`]: [['return routed.then((made) => {', OWN_TRY]],
  [`${EDGE}/control/registration-turns.ts`]: [
    ['setImmediate(() => this.#turnOver())', OWN_TRY],
    ['this.#pause = this.#options.clock.setTimeout(() => {', OWN_TRY],
    ['pending.catch(onError).then(() => {', OWN_TRY],
  ],
  [`${EDGE}/control/control-connection.ts`]: [
    ["ws.on('close', () => resolve())", NOTHING_OF_OURS],
    ['return this.#clock.setTimeout(() => {', OWN_TRY],
    ['setImmediate(() => this.#turnOver())', OWN_TRY],
    ['this.#heldBack = this.#clock.setTimeout(() => {', OWN_TRY],
    ['setTimeout(() => this.#ws.terminate()', NOTHING_OF_OURS],
    ["this.#ws.once('close', () => timer.cancel())", NOTHING_OF_OURS],
    ['.catch((error: unknown) => this.#fail(error))', 'the last catch is behind it'],
    ['.then(() => {', 'the last catch is behind it'],
    [".catch((error: unknown) => this.abandon(error, 'control.frame'))", 'the guard'],
  ],
  [`${EDGE}/control/control-plane.ts`]: [['clock.setInterval(() => this.#tick()', SHARED]],
  [`${EDGE}/control/speed-tests.ts`]: [
    ['setTimeout(() => request.socket.destroy()', NOTHING_OF_OURS],
    ["response.on('close', () => deadline.cancel())", NOTHING_OF_OURS],
    ["request.once('end', () => response.end())", NOTHING_OF_OURS],
    ['.catch((error: unknown) => {', 'the guard'],
  ],
  [`${EDGE}/upstream/local-upstream.ts`]: [
    ['queueMicrotask(() => opening.refuse(FULL))', OWN_TRY],
    ['clock.setTimeout(() => this.refuse(LATE)', OWN_TRY],
    ['dial(head, this.#calledOff.signal).then(', OWN_TRY],
  ],
  [`${MUX}/carrier/carrier-reader.ts`]: [
    ['setImmediate(this.#goOn)', NOTHING_OF_OURS],
    ['setImmediate(this.#run)', OWN_TRY],
  ],
  [`${MUX}/carrier/carrier.ts`]: [
    ['socket.setTimeout(0)', NOTHING_OF_OURS],
    ['setImmediate(() => {', OWN_TRY],
    ['this.#linger = clock.setTimeout(() => {', OWN_TRY],
  ],
  [`${MUX}/socket/connect-socket.ts`]: [
    ['const timer = clock.setTimeout(() => {', 'rejects the dial'],
    ["socket.on('error', fail)", 'rejects the dial'],
    ['socket.once(event, () => {', OWN_TRY],
  ],
  [`${MUX}/datagram/packet-socket.ts`]: [['socket.on(name, settle)', 'settles the opening']],
  [`${MUX}/loop/mux-clock.ts`]: [['setTimeout(run: () => void', 'an interface']],
  [`${MUX}/datagram/udp-path.ts`]: [['clock.setTimeout(() => this.#tick()', OWN_TRY]],
  [`${MUX}/datagram/datagram-lane.ts`]: [
    ['setTimeout(this.#onTimer', OWN_TRY],
    ['setImmediate(this.#onLooked)', 'sets one field'],
  ],
  [`${MUX}/native/node-internals.ts`]: [
    ["socket.on('data', (chunk: Buffer) => {", 'both readers have their own try'],
    ['setImmediate(() => setImmediate(settle))', 'the socket that is told has its own try'],
    ["socket.once('finish', () => socket.resetAndDestroy())", NOTHING_OF_OURS],
  ],
  [`${MUX}/socket/socket-duplex.ts`]: [
    ["socket.on('end', this.#onEnd)", OWN_TRY],
    ["socket.on('error', this.#onError)", OWN_TRY],
    ["socket.on('close', this.#onClose)", OWN_TRY],
  ],
  [`${MUX}/native/dgram-handle.ts`]: [
    ['process.nextTick(() => onError(', OWN_TRY],
    ["socket.once('listening', take)", NOTHING_OF_OURS],
  ],
  [`${MUX}/native/paced-reads.ts`]: [['setImmediate(takeNextTurn, this)', NOTHING_OF_OURS]],
  [`${MUX}/carrier/carrier-writer.ts`]: [['process.nextTick(this.#onWritten)', OWN_TRY]],
  [`${MUX}/native/handle-duplex.ts`]: [
    ['setImmediate(confirmNextTurn, this)', OWN_TRY],
    ['setImmediate(confirm, duplex)', OWN_TRY],
    ['process.nextTick(lose, this, error)', OWN_TRY],
    ["socket.once('close', () => holder.onClosed())", SHARED],
  ],
  [`${MUX}/native/dial-handle.ts`]: [['this.#timer = this.clock.setTimeout(this.#failLate, ', 'rejects dials']],
  [`${MUX}/socket/accept-sockets.ts`]: [
    ["server.on('connection', takeGuarded)", OWN_TRY],
    ["server.on('listening', () => {", 'one line of a server'],
  ],
};

/** Tests that raise a fault at the guarded calls named in their text. */
const RAISING = [
  `${EDGE}/whole-edge/guard.slow.test.ts`,
  `${EDGE}/control/control-connection.test.ts`,
  `${EDGE}/control/peer-relays.test.ts`,
  `${EDGE}/control/speed-tests.test.ts`,
  `${EDGE}/ingress/http/deciding.test.ts`,
  `${EDGE}/ingress/http/http-error-fallback.test.ts`,
  `${EDGE}/ingress/http/https-door.test.ts`,
  `${EDGE}/ingress/http/policy-deciding.test.ts`,
  `${EDGE}/ingress/udp/udp-guard.test.ts`,
  `${EDGE}/upstream/h2c/stream-duplex.test.ts`,
  `${MUX}/datagram/datagram-guard.test.ts`,
  `${MUX}/loop/guard.test.ts`,
  `${MUX}/datagram/packet-socket.test.ts`,
  `${MUX}/datagram/udp-path.test.ts`,
];

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const sources = FOLDERS.flatMap((folder) =>
  (readdirSync(join(ROOT, folder), { recursive: true }) as string[])
    .filter((file) => file.endsWith('.ts') && !/\.(?:test|fixture|conformance)\.ts$/.test(file))
    .map((file) => `${folder}/${file}`),
).filter((path) => path !== GUARD);

const linesOf = (path: string): string[] =>
  read(path)
    .split('\n')
    .filter((line) => !COMMENT.test(line));

it('every Node.js callback is guarded, or listed with the reason why it needs no guard', () => {
  const found: Record<string, string[]> = {};
  for (const path of sources) {
    const lines = linesOf(path).filter((line) => REGISTERS.test(line) && !DOES_NOTHING.test(line));
    const unknown = lines.map((line) => line.trim());
    for (const [part] of OUTSIDE[path] ?? []) {
      const at = unknown.findIndex((line) => line.includes(part));
      expect(at, `${path} has no line with ${part} any more: take it out of the list`).not.toBe(-1);
      unknown.splice(at, 1);
    }
    if (unknown.length > 0) found[path] = unknown;
  }
  expect(found, 'guard.listen and guard.accept of @tunnel/mux are the ways to be called').toEqual({});
  for (const path of Object.keys(OUTSIDE)) expect(sources).toContain(path);
});

/** Returns the guarded calls of a file by the names used in metric and log, for example `http2.stream.data`. */
const callsIn = (path: string): string[] => {
  const text = linesOf(path).join('\n');
  const scopes: Readonly<Record<string, string>> = Object.fromEntries(
    [...text.matchAll(/const (\w+) = '([\w.-]+)';/gi)].map(([, name = '', scope = '']) => [name, scope]),
  );
  const scopeOf = (word: string): string => (word.startsWith("'") ? word.slice(1, -1) : String(scopes[word]));
  const listened = [
    ...text.matchAll(/guard\.(?:listen|accept)\(\s*[\w.#]+,\s*('\w+'|event),\s*[\w.#]+,\s*('[\w.-]+'|\w+),/g),
  ];
  const calls = listened.flatMap(([, event = '', scope = '']) => {
    // The helper receiveDatagrams gets its scope from its callers.
    if (scope === 'scope') return [];
    // For a helper function of the file, the events are named by the calls of the helper.
    const events =
      event === 'event' ? [...text.matchAll(/\bon\('(\w+)'/g)].map(([, name]) => name) : [event.slice(1, -1)];
    return events.map((name) => `${scopeOf(scope)}.${name}`);
  });
  const caught = [...text.matchAll(/(?:abandon|report)\(([^;]*)\);/gi)].flatMap(([, given = '']) =>
    [...given.matchAll(/'([a-z0-9-]+(?:\.\w+)+)'/gi)].map(([, where]) => where as string),
  );
  // Names that a class passes to the guard in its base class.
  const handed = [...text.matchAll(/const CALLS = \{([^}]*)\}/g)].flatMap(([, given = '']) =>
    [...given.matchAll(/'([\w.]+)'/g)].map(([, where]) => where as string),
  );
  const datagrams = [...text.matchAll(/receiveDatagrams\(\s*[\w.#]+,\s*\w+,\s*'([\w.-]+)',/g)].map(
    ([, scope = '']) => `${scope}.message`,
  );
  return [...calls, ...caught, ...handed, ...datagrams];
};

it('every guarded call has a test that raises a fault there', () => {
  const calls = [...new Set(sources.flatMap(callsIn))].sort();
  const tests = RAISING.map(read).join('\n');
  expect(calls.length).toBeGreaterThan(60);
  expect(calls.filter((where) => !tests.includes(`'${where}'`))).toEqual([]);
});
