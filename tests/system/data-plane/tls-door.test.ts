// Tests of strangers at the HTTPS port of a real server: first messages that are cut off, malformed, too large, late, or not TLS. The
// server closes the connection, and regular visitors are not affected.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Clock } from '@tunnel/runtime';
import { FastClock } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  extension,
  hello,
  helloOfNode,
  inRecords,
  postQuantumShare,
  protocols,
  serverNames,
} from '../../../packages/http-shell/src/tls/hello.fixture.ts';
import { openHttp, type PublicEndpoint, startWeb } from '../http-tunnels.fixture.ts';
import { askSecurely, nameOf, TLS_FLAGS } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const shared = new Harness();
let stack: Stack;
let endpoint: PublicEndpoint;
beforeAll(async () => {
  stack = await shared.stack({ tls: true });
  const web = shared.use(await startWeb((_, response) => void response.end('served')));
  endpoint = (await openHttp(shared, stack, web.port, TLS_FLAGS)).endpoint;
});
afterAll(() => shared.close());

interface Fate {
  /** Types of the received TLS records: 21 is an alert, 22 a handshake message. */
  readonly records: number[];
  readonly tookMs: number;
}

/** Sends the bytes and calls `then`. Resolves with the received record types once the connection is closed. */
const fateOf = async (bytes: Uint8Array, then: (socket: Socket) => void = () => {}): Promise<Fate> => {
  const begunAt = performance.now();
  const socket = connect({ host: '127.0.0.1', port: endpoint.port, noDelay: true });
  socket.on('error', () => {});
  const heard: Buffer[] = [];
  socket.on('data', (piece: Buffer) => {
    heard.push(piece);
    // A server hello suffices as the result, so the visitor leaves.
    if (piece[0] === 22) socket.destroy();
  });
  await once(socket, 'connect');
  socket.write(bytes, () => then(socket));
  await once(socket, 'close');
  const records = heard.length === 0 ? [] : [heard[0]?.[0] ?? -1];
  return { records, tookMs: performance.now() - begunAt };
};

const expectServing = async (): Promise<void> => expect((await askSecurely(endpoint)).text).toBe('served');

describe.concurrent('the HTTPS port closes a connection at once if its first message is invalid', () => {
  const big = extension(0x1234, Buffer.alloc(17 * 1024 - 200));
  it.for([
    ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
    ['SSL 2', Buffer.from('802e0100020015000000100100800200800300800400800500800600400700c0', 'hex')],
    ['of 17 KiB', hello(serverNames('a.localhost'), big)],
    ['that says it has 16 MB', Buffer.from('1603010200010fffff0303', 'hex')],
    ['an alert', Buffer.of(21, 3, 3, 0, 2, 1, 0)],
    ['application data', Buffer.of(23, 3, 3, 0, 1, 0)],
    ['an empty record', Buffer.of(22, 3, 1, 0, 0)],
    ['zeros', Buffer.alloc(4096)],
    ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n')],
    ['a PROXY header', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n')],
    ['broken lengths', Buffer.from('16030100050100000103', 'hex')],
    ['extensions longer than it', Buffer.from(hello(serverNames('a.localhost'))).fill(255, 90, 100)],
  ] as const)('%s', async ([, bytes]) => {
    const { records, tookMs } = await fateOf(bytes);
    expect(records.every((type) => type === 21)).toBe(true);
    expect(tookMs).toBeLessThan(5000);
    await expectServing();
  });
});

describe.concurrent('the HTTPS port gives a TLS response to an unusual hello', () => {
  it.for([
    ['an IPv4 address', [serverNames('127.0.0.1')]],
    ['an IPv6 address', [serverNames('::1')]],
    ['a NUL in it', [serverNames('shop\0.localhost')]],
    ['umlauts', [serverNames('m\xfcnchen.localhost')]],
    ['254 characters', [serverNames(`${'x.'.repeat(122)}localhost`)]],
    ['a path', [serverNames('../../etc/passwd')]],
    ['no server name at all', []],
    ['offers of everything', [serverNames('a.localhost'), protocols('h2', 'http/1.1', 'x'.repeat(255))]],
    ['a post-quantum share', [serverNames('a.localhost'), postQuantumShare()]],
  ] as const)('%s', async ([, extensions]) => {
    // OpenSSL decides whether the handshake continues. The test only demands a response, and TLS as its format.
    const supported = [
      extension(43, Buffer.of(2, 3, 3)),
      extension(10, Buffer.of(0, 2, 0, 23)),
      extension(13, Buffer.of(0, 2, 4, 3)),
    ];
    const { records } = await fateOf(hello(...extensions, ...supported));
    expect(records).toHaveLength(1);
    expect([21, 22]).toContain(records[0]);
    await expectServing();
  });

  it('ten server names, in a single extension or in ten extensions', async () => {
    const names = Array.from({ length: 10 }, (_, at) => `n${at}.localhost`);
    for (const bytes of [hello(serverNames(...names)), hello(...names.map((name) => serverNames(name)))]) {
      const { records, tookMs } = await fateOf(bytes);
      expect(records.every((type) => type === 21 || type === 22)).toBe(true);
      expect(tookMs).toBeLessThan(5000);
    }
    await expectServing();
  });
});

it('a hello cut off at any byte gets no handshake, and a complete hello is served in pieces of any size', async () => {
  const whole = await helloOfNode({ servername: nameOf(endpoint), ALPNProtocols: ['http/1.1'] });
  for (let from = 0; from < whole.length; from += 50) {
    const cuts = Array.from({ length: Math.min(50, whole.length - from) }, (_, at) => from + at);
    const fates = await Promise.all(
      cuts.map((cut) =>
        fateOf(whole.subarray(0, cut), (socket) => (cut % 2 === 0 ? socket.end() : socket.resetAndDestroy())),
      ),
    );
    for (const { records, tookMs } of fates) {
      expect(records.filter((type) => type === 22)).toEqual([]);
      expect(tookMs).toBeLessThan(8000);
    }
  }
  await expectServing();
  for (const size of [1, 2, 5, 7, 100]) {
    const { records } = await fateOf(inRecords(helloMessageOf(whole), size));
    expect(records).toEqual([22]);
  }
});

/** Returns the hello message without the record header. */
const helloMessageOf = (record: Buffer): Buffer => record.subarray(5);

it('with a certificate for every name, unknown hosts get a handshake instead of alert 112', async () => {
  for (const name of ['nobody.localhost', 'example.com', 'a.b.c.localhost', 'LOCALHOST.']) {
    const { records } = await fateOf(await helloOfNode({ servername: name }));
    expect(records).toEqual([22]);
  }
});

const WAIT_MS = 10_000;

/**
 * Connects a visitor that sends the next bytes every half second. Resolves after the disconnection with the connection time in
 * milliseconds and the number of bytes received.
 */
const lifeOf = (
  port: number,
  clock: Clock,
  sends: (nth: number) => Uint8Array | null,
): Promise<{ readonly ms: number; readonly heard: number }> =>
  new Promise((resolve) => {
    const begunAt = clock.monotonic();
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    let heard = 0;
    let nth = 0;
    const timer = clock.setInterval(() => {
      const bytes = sends(nth);
      nth += 1;
      if (bytes !== null) socket.write(bytes);
    }, 500);
    socket.on('data', (piece) => {
      heard += piece.length;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      timer.cancel();
      resolve({ ms: clock.monotonic() - begunAt, heard });
    });
  });

describe.concurrent('a visitor that never completes its first message is disconnected silently after ten seconds', () => {
  it.for(['says nothing', 'sends one byte now and then', 'stops in the middle'] as const)(
    '%s',
    async (way, { harness: slow }) => {
      const clock = new FastClock(10);
      const late = await slow.use(new Harness({ clock })).stack({ tls: true });
      const { port } = new URL((late.run as unknown as { https_url: string }).https_url);
      const whole = await helloOfNode({ servername: 'shop.localhost' });
      const sends = {
        'says nothing': () => null,
        'sends one byte now and then': (nth: number) => whole.subarray(nth, nth + 1),
        'stops in the middle': (nth: number) => (nth === 0 ? whole.subarray(0, whole.length / 2) : null),
      };
      const { ms, heard } = await lifeOf(Number(port), clock, sends[way]);
      expect(heard).toBe(0);
      expect(ms).toBeGreaterThan(WAIT_MS - 500);
      expect(ms).toBeLessThan(WAIT_MS + 8000);
    },
  );
});
