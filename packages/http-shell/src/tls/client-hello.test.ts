// The first message of TLS visitors: valid, broken, and cut at every position.
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { expect, it } from 'vitest';
import { foldHost, type HelloReading, readClientHello } from './client-hello.ts';
import {
  extension,
  hello,
  helloMessage,
  helloOfNode,
  helloOfOpenssl,
  inRecords,
  postQuantumShare,
  protocols,
  serverNames,
} from './hello.fixture.ts';
import { HelloBytes } from './hello-bytes.ts';

/** Returns the SNI of a ClientHello, or the kind of the result if there is no complete ClientHello. */
const sniOf = (bytes: Buffer): string | null => {
  const reading = readClientHello(bytes);
  return reading.kind === 'hello' ? reading.hello.sni : reading.kind;
};

const TLS_1_2 = { maxVersion: 'TLSv1.2' } as const;

it('a ClientHello of Node.js is read with its SNI and ALPN', async () => {
  const bytes = await helloOfNode({ servername: 'Web.Example.COM', ALPNProtocols: ['h2', 'http/1.1'] });
  const expected = { kind: 'hello', hello: { sni: 'web.example.com', alpn: ['h2', 'http/1.1'] } };
  expect(readClientHello(bytes)).toEqual(expected);
  // Bytes after the ClientHello are ignored.
  expect(readClientHello(Buffer.concat([bytes, Buffer.alloc(40_000, 23)]))).toEqual(expected);
  expect(readClientHello(await helloOfNode({}))).toEqual({ kind: 'hello', hello: { sni: null, alpn: [] } });
  expect(sniOf(await helloOfNode({ ...TLS_1_2, servername: 'old.example' }))).toBe('old.example');
});

it('a ClientHello of OpenSSL is read with its SNI and ALPN', async () => {
  const flags = ['-servername', 'web.example', '-alpn', 'acme-tls/1'];
  const expected = { kind: 'hello', hello: { sni: 'web.example', alpn: ['acme-tls/1'] } };
  expect(readClientHello(await helloOfOpenssl(...flags))).toEqual(expected);
  expect(readClientHello(await helloOfOpenssl('-tls1_2', ...flags))).toEqual(expected);
  expect(sniOf(await helloOfOpenssl('-noservername'))).toBeNull();
});

/** Checks every truncation of a message: the reader asks for at least one more byte, and never for more than the message has. */
const cutEverywhere = (bytes: Buffer): void => {
  const whole = readClientHello(bytes);
  expect(whole.kind).toBe('hello');
  for (let length = 0; length < bytes.length; length++) {
    const reading = readClientHello(bytes.subarray(0, length));
    if (reading.kind !== 'more') throw new Error(`${reading.kind} after ${length} bytes`);
    expect(reading.atLeast).toBeGreaterThan(length);
    expect(reading.atLeast).toBeLessThanOrEqual(bytes.length);
  }
};

it('a ClientHello that is cut off anywhere asks for more bytes', async () => {
  cutEverywhere(await helloOfNode({ servername: 'web.example', ALPNProtocols: ['h2'] }));
  cutEverywhere(await helloOfOpenssl('-tls1_2', '-servername', 'web.example'));
  const message = helloMessage(serverNames('web.example'), postQuantumShare());
  cutEverywhere(inRecords(message));
  cutEverywhere(inRecords(message, 100));
});

/** Feeds the bytes in pieces, like a connection. */
const fed = (bytes: Buffer, size: number): HelloReading => {
  const taken = new HelloBytes();
  const scratch = Buffer.alloc(size + 8);
  let reading: HelloReading = { kind: 'more', atLeast: 0 };
  for (let at = 0; at < bytes.length && reading.kind === 'more'; at += size) {
    const piece = bytes.subarray(at, at + size);
    // Every piece uses the same memory, like the reads of a socket.
    piece.copy(scratch, 8);
    reading = taken.take(scratch, 8, 8 + piece.length);
    if (reading.kind === 'more') scratch.fill(0);
    // Not checked with expect, which takes a hundred times as long as reading a byte.
    if (reading.kind !== 'bad' && !taken.all.equals(bytes.subarray(0, at + piece.length)))
      throw new Error('not what came');
  }
  return reading;
};

it('a post-quantum ClientHello is read from two segments, byte by byte, and from records of one byte', () => {
  const message = helloMessage(postQuantumShare(), serverNames('pq.example'), protocols('h2'));
  const bytes = inRecords(message);
  expect(bytes.length).toBeGreaterThan(1300);
  const expected = { kind: 'hello', hello: { sni: 'pq.example', alpn: ['h2'] } };
  for (const size of [1, 2, 3, 7, 1200, 1400]) expect(fed(bytes, size)).toEqual(expected);
  for (const size of [1, 2, 100]) {
    const records = inRecords(message, size);
    for (const piece of [1, 1448, records.length]) expect(fed(records, piece)).toEqual(expected);
  }
});

it('a ClientHello above 16 KiB is refused as soon as its length is known', () => {
  const filled = (bytes: number): Buffer => {
    const empty = hello(serverNames('web.example'), extension(21, Buffer.alloc(0)));
    return hello(serverNames('web.example'), extension(21, Buffer.alloc(bytes - empty.length)));
  };
  const max = RULE_LIMITS.TLS_HELLO_MAX_BYTES;
  expect(sniOf(filled(max))).toBe('web.example');
  expect(sniOf(filled(max).subarray(0, 9))).toBe('more');
  expect(sniOf(filled(max + 1))).toBe('bad');
  // The message announces its length, so the reader refuses it without waiting for the rest.
  const long = helloMessage(extension(21, Buffer.alloc(17 * 1024)));
  expect(sniOf(inRecords(long).subarray(0, 9))).toBe('bad');
  // The record headers alone exceed the limit.
  expect(sniOf(inRecords(helloMessage(extension(21, Buffer.alloc(8000))), 1))).toBe('bad');
});

it.each([
  ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['the first letter of plain HTTP', Buffer.from('G')],
  ['SSL 2', Buffer.from('802e0100020015000000100100800200800300800400800500800600400700c0', 'hex')],
  ['an alert', Buffer.of(21, 3, 3, 0, 2, 2, 80)],
  ['an empty record', Buffer.of(22, 3, 1, 0, 0)],
  ['a record longer than any', Buffer.of(22, 3, 1, 0x40, 1)],
  ['the version of another protocol', Buffer.of(22, 4)],
  ['another message', Buffer.of(22, 3, 1, 0, 4, 2, 0, 0, 0)],
  ['an empty message', Buffer.of(22, 3, 1, 0, 4, 1, 0, 0, 0)],
])('%s is not taken for a ClientHello', (_what, bytes) => {
  expect(readClientHello(bytes)).toEqual({ kind: 'bad' });
});

it.each([
  ['Shop.Example.COM', 'shop.example.com'],
  ['shop.example.com.', 'shop.example.com'],
  ['localhost', 'localhost'],
  ['xn--mnchen-3ya.example', 'xn--mnchen-3ya.example'],
  ['my_host.example', 'my_host.example'],
  ['1and1.com', '1and1.com'],
  [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
  [`${'a.'.repeat(126)}a`, `${'a.'.repeat(126)}a`],
  ['shop.example.com..', null],
  ['.', null],
  ['', null],
  ['.shop', null],
  ['a..b', null],
  ['127.0.0.1', null],
  ['127.0.0.1.', null],
  ['1.2.3', null],
  ['::1', null],
  ['[::1]', null],
  ['shop.example.com\0.evil', null],
  ['m\u00fcnchen.example', null],
  ['*.example', null],
  ['-a.example', null],
  ['a-.example', null],
  ['a b', null],
  ['shop.example.com:443', null],
  [`${'a'.repeat(64)}.example`, null],
  [`${'a.'.repeat(126)}aa`, null],
])('the server name %j is read as %j', (name, host) => {
  expect(foldHost(name)).toBe(host);
  if (name !== '') expect(sniOf(hello(serverNames(name)))).toBe(host);
});

it('several server names are read as none, and other name types are ignored', () => {
  const ten = Array.from({ length: 10 }, (_, n) => `n${n}.example`);
  expect(sniOf(hello(serverNames(...ten)))).toBeNull();
  expect(sniOf(hello(...ten.map((name) => serverNames(name))))).toBeNull();
  expect(sniOf(hello(serverNames('a.example', 'a.example')))).toBeNull();
  expect(sniOf(hello(serverNames({ kind: 7, name: 'x' }, 'a.example')))).toBe('a.example');
  expect(sniOf(hello(serverNames({ kind: 7, name: 'a.example' })))).toBeNull();
});

it.each([
  ['an empty list of names', extension(0, Buffer.of(0, 0))],
  ['no list of names', extension(0)],
  ['a list of names longer than its extension', extension(0, Buffer.of(0, 9, 0, 0, 1, 97))],
  ['a name that is longer than the list', extension(0, Buffer.of(0, 4, 0, 0, 2, 97))],
  ['an empty list of protocols', extension(16, Buffer.of(0, 0))],
  ['an empty protocol', extension(16, Buffer.of(0, 1, 0))],
  ['a protocol that is longer than the list', extension(16, Buffer.of(0, 2, 2, 97))],
  ['protocols twice', Buffer.concat([protocols('h2'), protocols('h2')])],
  ['half of an extension', Buffer.of(0, 21, 0)],
  ['an extension longer than the message', Buffer.of(0, 21, 0, 9)],
])('a ClientHello with %s is refused', (_what, broken) => {
  expect(readClientHello(hello(broken))).toEqual({ kind: 'bad' });
});

it('a ClientHello with any wrong byte is read the same in pieces as whole, and never throws', async () => {
  const real = [
    await helloOfNode({ servername: 'web.example', ALPNProtocols: ['h2', 'http/1.1'] }),
    await helloOfOpenssl('-tls1_2', '-servername', 'web.example', '-alpn', 'h2'),
  ];
  for (const bytes of real) {
    for (let at = 0; at < bytes.length; at++) {
      const mutated = Buffer.from(bytes);
      for (const value of [0, 1, 2, 0x7f, 0x80, 0xff, (bytes[at] as number) ^ 1, (bytes[at] as number) + 1]) {
        mutated[at] = value;
        const whole = readClientHello(mutated);
        if (whole.kind !== 'more') expect(fed(mutated, 97)).toEqual(whole);
        if (whole.kind === 'hello' && whole.hello.sni !== null) expect(foldHost(whole.hello.sni)).toBe(whole.hello.sni);
      }
    }
  }
});

/** Seeded random generator, with the same numbers in each run. */
const chance = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

it('a ClientHello of random bytes never asks for more than the limit', () => {
  const random = chance(20);
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.from(Array.from({ length: Math.floor(random() * 400) }, () => Math.floor(random() * 256)));
    const begun =
      random() < 0.5
        ? bytes
        : inRecords(Buffer.concat([helloMessage().subarray(0, 60), bytes]), 1 + Math.floor(random() * 300));
    const reading = readClientHello(begun);
    if (reading.kind !== 'more') continue;
    expect(reading.atLeast).toBeGreaterThan(begun.length);
    expect(reading.atLeast).toBeLessThanOrEqual(RULE_LIMITS.TLS_HELLO_MAX_BYTES);
  }
});
