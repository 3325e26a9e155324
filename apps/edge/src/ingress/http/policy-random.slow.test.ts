// Pipelines of random requests for every kind of rule, in pieces of any size, and some cut off in the middle. Each request is answered in
// order according to its rule, the service gets exactly the allowed requests, byte for byte, and no held body remains.
import { createHmac } from 'node:crypto';
import * as net from 'node:net';
import type { PolicyEffect, Rule } from '@tunnel/policy';
import { eventually, hashOf, randomCases, seededRandom } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { basic, basicAuth } from '../../policy/policy.fixture.ts';
import { visitHttp2 } from './https.fixture.ts';
import { askHttp2, type PolicyStand, startPolicyStand } from './policy-stand.fixture.ts';
import { startRecordingH2c } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const SECRET = 'of the sender';
const MAX_BYTES = 16_000;
const at = (path: string, rule: Rule): Rule => ({ ...rule, match: { path: [`/${path}/**`] } });
const RULES: readonly Rule[] = [
  { response_headers: { set: { 'x-noted': 'yes' } } },
  at('deny', { deny: 403 }),
  at('slow', basicAuth),
  at('both', basicAuth),
  ...['hook', 'both'].map((path) =>
    at(path, { verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: MAX_BYTES } }),
  ),
  at('small', { max_body: 1000 }),
];

const PIPELINES = randomCases(60);
const ROUNDS_OF_HTTP2 = randomCases(10);
const signatureOf = (body: string): string => `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;

interface Sent {
  readonly path: string;
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isChunked: boolean;
  /** The response comes before the last byte of the request, so that no further request can follow. */
  readonly isLast: boolean;
}

class Maker {
  readonly #random: () => number;
  #count = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  next(): Sent {
    this.#count += 1;
    const kind = ['open', 'deny', 'slow', 'hook', 'both', 'small'][this.below(6)] as string;
    const isGood = this.below(3) > 0;
    const isKnown = this.below(3) > 0;
    const size = this.below(4) === 0 ? this.below(MAX_BYTES * 1.2) : this.below(900);
    const hasBody = kind === 'hook' || kind === 'both' || kind === 'small' || this.below(3) === 0;
    const body = hasBody ? `${this.#count} `.repeat(size).slice(0, size) : '';
    const isChunked = hasBody && this.below(2) === 0;
    const isSigned = kind === 'hook' || kind === 'both';
    const headers = {
      ...((kind === 'slow' || kind === 'both') && { authorization: basic('me', isKnown ? 'right' : 'wrong') }),
      ...(isSigned && { 'x-hub-signature-256': signatureOf(isGood ? body : `${body} forged`) }),
    };
    const status = this.#statusOf({ kind, isGood, isKnown, size: body.length });
    // A held body is complete before its response.
    const isHeld = isSigned && (status === 200 || status === 403);
    const isLast = status !== 200 && (isChunked || body !== '') && !isHeld;
    return { path: `/${kind}/${this.#count}`, status, body, headers, isChunked, isLast };
  }

  #statusOf(subject: { kind: string; isGood: boolean; isKnown: boolean; size: number }): number {
    const { kind, isGood, isKnown, size } = subject;
    if (kind === 'deny') return 403;
    if ((kind === 'slow' || kind === 'both') && !isKnown) return 401;
    if (kind === 'hook' || kind === 'both') {
      if (size > MAX_BYTES) return 413;
      return isGood ? 200 : 403;
    }
    return kind === 'small' && size > 1000 ? 413 : 200;
  }

  pipeline(): Sent[] {
    const requests: Sent[] = [];
    let bytes = 0;
    do {
      const request = this.next();
      requests.push(request);
      bytes += request.body.length + 500;
    } while (!requests.at(-1)?.isLast && bytes < 40_000 && this.below(6) > 0);
    return requests;
  }
}

const textOf = ({ path, body, headers, isChunked }: Sent, pieces: () => number): string => {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`${body === '' && !isChunked ? 'GET' : 'POST'} ${path} HTTP/1.1`, 'Host: web.localhost', ...fields];
  if (!isChunked) return [...head, ...(body === '' ? [] : [`Content-Length: ${body.length}`]), '', body].join('\r\n');
  let chunks = '';
  for (let from = 0; from < body.length; ) {
    const piece = body.slice(from, from + pieces() + 1);
    from += piece.length;
    chunks += `${piece.length.toString(16)}\r\n${piece}\r\n`;
  }
  return [...head, 'Transfer-Encoding: chunked', '', `${chunks}0\r\n\r\n`].join('\r\n');
};

const passing = (requests: readonly Sent[]): string[] =>
  requests.filter(({ status }) => status === 200).map(({ path, body }) => `${path} ${hashOf(Buffer.from(body))}`);

/** Returns the served requests among the given ones, because a request from an earlier, cut-off pipeline can arrive late. */
const served = ({ service }: PolicyStand, requests: readonly Sent[]): string[] => {
  const paths = new Set(requests.map(({ path }) => path));
  return service.asked.filter(({ url }) => paths.has(url)).map(({ url, bodyHash }) => `${url} ${bodyHash}`);
};

/** Answers password checks after a few event loop turns. */
const perform = (maker: Maker) => async (effect: PolicyEffect) => {
  for (let turns = maker.below(4); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
  if (effect.kind !== 'check-password') throw new Error(effect.kind);
  return { kind: 'password-checked', isRight: effect.password === 'right' } as const;
};

type ServiceKind = 'http1' | 'h2c';

const start = async (seed: number, localProtocol: ServiceKind): Promise<{ stand: PolicyStand; maker: Maker }> => {
  const maker = new Maker(seededRandom(seed));
  const stand = await startPolicyStand(RULES, { perform: perform(maker), http: { localProtocol } });
  cleanups.push(() => stand.stop());
  if (localProtocol === 'http1') return { stand, maker };
  const service = await startRecordingH2c('served');
  cleanups.push(() => service.close());
  stand.http.localPort = service.port;
  return { stand: { ...stand, service }, maker };
};

/** Sends the text in pieces. If `cutAt` is given, the visitor leaves at that position. */
const talkInPieces = async (stand: PolicyStand, text: string, maker: Maker, cutAt: number | null): Promise<string> => {
  const socket = net.connect({ port: stand.http.port, host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  let heard = '';
  socket.setEncoding('latin1').on('data', (part: string) => (heard += part));
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('error', () => {});
  const end = cutAt ?? text.length;
  for (let from = 0; from < end && !socket.destroyed; ) {
    const to = Math.min(end, from + 1 + maker.below(maker.below(3) === 0 ? 5000 : 300));
    socket.write(text.slice(from, to));
    from = to;
    if (maker.below(3) === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (cutAt !== null) socket.destroy();
  await closed;
  return heard;
};

it.each<[ServiceKind, number]>([
  ['http1', 1],
  ['http1', 2],
  ['h2c', 3],
])(
  'HTTP/1.1: random pipelines with rules are answered in order and free all held bodies: service %s, seed %i',
  async (kind, seed) => {
    const { stand, maker } = await start(seed, kind);
    for (let round = 0; round < PIPELINES; round += 1) {
      stand.service.asked.length = 0;
      const requests = maker.pipeline();
      const last = requests.at(-1) as Sent;
      const closing = { ...last, headers: { ...last.headers, connection: 'close' } };
      const texts = [...requests.slice(0, -1), closing].map((one) => textOf(one, () => maker.below(4000)));
      const text = texts.join('');
      const cutAt = maker.below(4) === 0 ? maker.below(text.length) : null;
      const heard = await talkInPieces(stand, text, maker, cutAt);
      const statuses = [...heard.matchAll(/HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/g)].map(([, status]) => Number(status));
      const wanted = requests.map(({ status }) => status);
      if (cutAt === null) {
        expect(statuses, `${seed} ${round}`).toEqual(wanted);
        expect(served(stand, requests)).toEqual(passing(requests));
        expect(heard.match(/x-noted: yes/gi)).toHaveLength(wanted.length);
      } else {
        expect(wanted.slice(0, statuses.length)).toEqual(statuses);
        await eventually(() => expect(stand.http.ingress.connections).toBe(0));
        const reached = served(stand, requests);
        expect(reached).toEqual(passing(requests).slice(0, reached.length));
      }
    }
    await eventually(() => expect([stand.heldBodies.bytes, stand.http.ingress.connections]).toEqual([0, 0]));
  },
);

it.each<ServiceKind>(['http1', 'h2c'])(
  'HTTP/2: random parallel requests with rules are answered correctly and free all held bodies: service %s',
  async (kind) => {
    const { stand, maker } = await start(4, kind);
    const session = visitHttp2(stand.https);
    cleanups.push(() => session.destroy());
    for (let round = 0; round < ROUNDS_OF_HTTP2; round += 1) {
      stand.service.asked.length = 0;
      const requests = Array.from({ length: 20 }, () => maker.next());
      const leaving = Array.from({ length: 5 }, () => {
        const { path, headers } = maker.next();
        // Without this option, Node.js would mark the end of the body before the reset.
        const options = { waitForTrailers: true };
        const stream = session.request({ ':path': `${path}/left`, ':method': 'POST', ...headers }, options);
        stream.on('error', () => {});
        stream.write('x');
        return stream;
      });
      const answers = requests.map(async (one) => {
        const { path, body, headers, isChunked } = one;
        const method = body === '' && !isChunked ? 'GET' : 'POST';
        const visit = method === 'GET' ? { method, headers } : { method, headers, body, isChunked };
        const answer = await askHttp2(session, path, visit);
        expect([path, answer.status, answer.headers['x-noted']]).toEqual([path, one.status, 'yes']);
      });
      for (const stream of leaving) {
        if (maker.below(2) === 0) await new Promise((resolve) => setImmediate(resolve));
        stream.close(8);
      }
      await Promise.all(answers);
      expect(served(stand, requests).toSorted()).toEqual(passing(requests).toSorted());
      expect(stand.service.asked.filter(({ url }) => url.endsWith('/left'))).toEqual([]);
    }
    await eventually(() => expect(stand.heldBodies.bytes).toBe(0));
  },
);
