// Captured requests are the same whether their heads arrive whole (and are only scanned) or byte by byte (and are parsed in full).
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import { FakeClock, seededRandom } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { presentDetail } from '../inspector/presented-request.ts';
import { Backoff } from '../network/backoff.ts';
import { TunnelEntry } from '../tunnels/tunnel.ts';
import type { RequestEvent } from './request-record.ts';
import { RequestReporter } from './request-reporter.ts';
import { RequestStore } from './request-store.ts';

const clock = new FakeClock();
const tunnel = new TunnelEntry(
  { proto: 'http', local_port: 1 },
  { backoff: new Backoff(clock, () => 0), owner: undefined as never },
);

type Chance = () => number;
const pick = <T>(chance: Chance, from: readonly T[]): T => from[Math.floor(chance() * from.length)] as T;

const FIELDS = [
  'Accept: */*',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64)',
  'Authorization: Bearer secret',
  'Cookie: a=b; c="d"',
  'X-Bytes: \x80\xe4',
  'X-Empty:',
  'X-Blank: \t',
  'Connection: keep-alive',
  'connection: close, x-a',
  'Upgrade: websocket',
  'Content-Encoding: gzip',
  'Expect: 100-continue',
];
const TYPES = [
  'Content-Type: text/plain',
  'content-type: application/json; charset=utf-8',
  'Content-Type: image/png',
  '',
];
const BODIES = ['', 'a', '{"token":"x","b":[1]}', 'user=a&password=b', 'x'.repeat(700)];

const framed = (chance: Chance): string[] => {
  const body = pick(chance, BODIES);
  const kind = chance();
  if (kind < 0.3) return ['', ''];
  if (kind < 0.7) return [`Content-Length: ${body.length}`, body];
  const chunk = body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`;
  return ['Transfer-Encoding: chunked', `${chunk}0\r\n\r\n`];
};

const message = (chance: Chance, first: string, lines: readonly string[]): string => {
  const [framing = '', body = ''] = framed(chance);
  const more = Array.from({ length: Math.floor(chance() * 4) }, () => pick(chance, FIELDS));
  const all = [first, ...lines, ...more, pick(chance, TYPES), framing].filter((line) => line !== '');
  const head = `${all.join('\r\n')}\r\n\r\n`;
  // In 10 % of the heads, a random byte is replaced by an invalid byte.
  const at = Math.floor(chance() * head.length);
  return `${chance() < 0.1 ? head.slice(0, at) + pick(chance, ['\n', ' ', '\0', ':', 'x']) + head.slice(at + 1) : head}${body}`;
};

const visit = (chance: Chance): readonly [request: string, response: string] => {
  const method = pick(chance, ['GET', 'GET', 'POST', 'HEAD', 'DELETE', 'PROPFIND']);
  const path = pick(chance, ['/', '/a/b?c=d&api_key=1', '/?token=a%20b', '//x', 'http://y/z', '/…'.slice(0, 1)]);
  const status = pick(chance, ['200 OK', '204 No Content', '304 Not Modified', '404', '500 \xe4', '200 ']);
  const interim = chance() < 0.1 ? 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n' : '';
  return [
    message(chance, `${method} ${path} HTTP/1.1`, ['Host: web.localhost']),
    interim + message(chance, `HTTP/1.1 ${status}`, []),
  ];
};

/** Runs the visits through a tap, split by `pieces`, and returns the inspector's records and the events. */
const recordsOf = async (visits: readonly (readonly [string, string])[], pieces: (text: string) => string[]) => {
  const store = new RequestStore();
  const reporter = new RequestReporter(clock);
  const events: RequestEvent[] = [];
  reporter.keepIn(store);
  reporter.on((event) => events.push(event));
  let reader: ByteReader | undefined;
  const visitor = { read: (given: ByteReader) => void (reader = given), write: () => true } as unknown as ByteDuplex;
  const tapped = reporter.tap(visitor, tunnel, { carrierTag: 'tag', id: 3 });
  const nobody = { onData: () => true, onReset: () => {} } as unknown as ByteReader;
  tapped.read(nobody);
  const send = (text: string, give: (bytes: Buffer, start: number, end: number) => void): void => {
    for (const piece of pieces(text)) {
      const bytes = Buffer.from(`##${piece}##`, 'latin1');
      give(bytes, 2, bytes.length - 2);
      // Overwrites the bytes, because the buffer belongs to the connection and is reused.
      bytes.fill(0);
    }
  };
  for (const [request, response] of visits) {
    send(request, (bytes, start, end) => reader?.onData(bytes, start, end, true));
    send(response, (bytes, start, end) => tapped.write(bytes, start, end, true));
  }
  reader?.onReset({ code: 'cancelled', text: 'over' });
  const records = store.list();
  const details = await Promise.all(records.map((record) => presentDetail(record)));
  // Only complete requests are compared: how much of an aborted body was captured depends on how the bytes are split.
  const settled = details.filter(({ state }) => state === 'complete');
  const held = records.map(({ state, heldBytes }) => (state === 'complete' ? heldBytes : 0));
  const told = events.map((event) => ['id' in event ? event.id : '', event.type]);
  return {
    settled,
    held,
    ids: details.map(({ id, state, status }) => [id, state, status]),
    told,
  };
};

it('captured records do not depend on how random connections with malformed heads are split', async () => {
  let seen = 0;
  for (let seed = 1; seed <= 100; seed += 1) {
    const chance = seededRandom(seed);
    const visits = Array.from({ length: 1 + Math.floor(chance() * 5) }, () => visit(chance));
    const whole = await recordsOf(visits, (text) => [text]);
    expect(await recordsOf(visits, (text) => [...text]), `seed ${seed}`).toEqual(whole);
    seen += whole.settled.length;
  }
  expect(seen).toBeGreaterThan(80);
});
