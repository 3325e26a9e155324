// Places of API calls over real sockets: calls hold their places until the test releases them, and only the test advances the clock.

import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { loadServerConfig, type ServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { openGate } from '../server/gate.fixture.ts';
import { HttpServer } from '../server/http-server.ts';
import { createPlatformApp } from '../server/platform-app.ts';
import { ApiAdmission, CALLS } from './api-admission.ts';
import { API_CALLS_LOOK_MS } from './call-queue.ts';

const ADMIN_TOKEN = 'the-token-of-the-operator';
const WAIT_MS = 2000;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface CallOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls of a flood. Wrapped in an object, because an async function would await a bare promise. */
interface Flood {
  readonly calls: ReturnType<Trial['call']>[];
}

class Trial {
  readonly clock = new FakeClock();
  readonly admission: ApiAdmission;
  readonly lines: string[] = [];
  readonly #server: HttpServer;
  readonly #held: (() => void)[] = [];
  checks = 0;
  /** Resolvers of pending key lookups. */
  readonly looks: (() => void)[] = [];

  constructor(settings: Partial<ServerConfig['platform']> = {}) {
    const { platform } = loadServerConfig({ env: {} });
    const all = { ...platform, ...settings };
    const stream = new Writable({ write: (chunk, _encoding, done) => done(void this.lines.push(String(chunk))) });
    const logger = createLogger({ level: 'warn', format: 'json', stream });
    this.admission = new ApiAdmission({
      clock: this.clock,
      logger,
      settings: all,
      adminToken: new Secret(ADMIN_TOKEN),
      accounts: {
        known: (token) => /^known-(.+)$/.exec(token)?.[1] ?? null,
        lookForKey: (token) => (token === 'of-no-key' ? new Promise((resolve) => void this.looks.push(resolve)) : null),
        check: async (token) => {
          this.checks += 1;
          return /^signed-(.+)$/.exec(token)?.[1] ?? null;
        },
      },
    });
    const app = createPlatformApp({ logger, settings: all });
    const hold = () => new Promise<void>((resolve) => void this.#held.push(resolve));
    app.get('/usage/held', async (context) => {
      await hold();
      return context.text('done');
    });
    for (const path of ['/usage', '/metrics', '/health', '/health/db', '/app/page', '/docs/page'])
      app.get(path, (context) => context.text('served'));
    for (const path of ['/auth/logout', '/auth/forgot-password', '/auth/resend-verification', '/mcp'])
      app.post(path, (context) => context.text('served'));
    app.post('/keys', async (context) => context.text(`made ${(await context.req.text()).length}`));
    this.#server = new HttpServer({
      host: '127.0.0.1',
      port: 0,
      app,
      gate: openGate(),
      clock: systemClock,
      logger,
      admission: this.admission,
    });
  }

  static async open(settings?: Partial<ServerConfig['platform']>): Promise<Trial> {
    const trial = new Trial(settings);
    await trial.#server.start();
    opened.push(trial);
    return trial;
  }

  /** Makes a call. `end` disconnects the caller. */
  call(path: string, { method = 'GET', headers = {} }: CallOptions = {}): Promise<Answer> & { end(): void } {
    const { port } = this.#server.address;
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false });
    const answer = new Promise<Answer>((resolve, reject) => {
      sent.on('error', reject);
      sent.on('response', (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
      });
    });
    sent.end();
    return Object.assign(answer, { end: () => void sent.destroy() });
  }

  /** Opens a connection and writes raw text, which may be an incomplete request. */
  write(text: string): Socket {
    const socket = connect({ host: '127.0.0.1', port: this.#server.address.port });
    socket.on('error', () => {}).write(text);
    return socket;
  }

  as(account: string, path: string): ReturnType<Trial['call']> {
    return this.call(path, { headers: { authorization: `Bearer known-${account}` } });
  }

  /** Makes calls, and resolves once all calls hold a place or wait. */
  async flood(count: number, call: () => ReturnType<Trial['call']>): Promise<Flood> {
    const before = this.admission.running + this.admission.waiting;
    const calls = Array.from({ length: count }, call);
    for (const each of calls) each.catch(() => {});
    await eventually(() => expect(this.admission.running + this.admission.waiting).toBe(before + count));
    return { calls };
  }

  /** Floods the API with calls of an account that take every place. */
  floodAs(account: string, count = 60): Promise<Flood> {
    return this.flood(count, () => this.as(account, '/usage/held'));
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += API_CALLS_LOOK_MS) {
      await this.clock.advance(API_CALLS_LOOK_MS);
    }
  }

  letGo(): void {
    for (const resolve of this.#held.splice(0)) resolve();
  }

  async close(): Promise<void> {
    const timer = setInterval(() => this.letGo(), 5);
    await this.#server.stop();
    clearInterval(timer);
  }
}

const opened: Trial[] = [];

afterEach(async () => {
  for (const trial of opened.splice(0)) await trial.close();
});

const codeOf = ({ status, body }: Answer) => [status, (JSON.parse(body) as { code: string }).code];

describe('API calls of an account', () => {
  it('use all places without competition, and calls of another account are still served at once', async () => {
    const trial = await Trial.open();
    await trial.floodAs('flood');
    expect(trial.admission.running).toBe(CALLS.aloneAtOnce);
    expect(await trial.as('other', '/usage')).toMatchObject({ status: 200, body: 'served' });
  });

  it('wait at most two seconds, then get a 429 with code, Retry-After and the usual headers', async () => {
    const trial = await Trial.open({ public_url: 'https://tunnels.localhost' });
    const { calls } = await trial.floodAs('flood', 30);
    await trial.pass(WAIT_MS);
    const answer = (await calls.at(-1)) as Answer;
    expect(JSON.parse(answer.body)).toEqual({
      error: 'too many requests',
      code: 'API_ACCOUNT_LIMIT',
      request_id: answer.headers['x-request-id'],
    });
    expect([answer.status, Number(answer.headers['retry-after'])]).toEqual([429, 1]);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    expect(answer.headers['strict-transport-security']).toBe('max-age=31536000');
    expect(trial.admission.refusals).toEqual({ account: 14, network: 0, writes: 0, pipelined: 0 });
    // Rejections are logged at most once a second.
    expect(trial.lines.filter((line) => line.includes('API calls are being rejected')).length).toBeLessThanOrEqual(3);
  });

  it('leave the queue if the caller disconnects', async () => {
    const trial = await Trial.open();
    const { calls } = await trial.floodAs('flood', 25);
    for (const call of calls.slice(CALLS.aloneAtOnce)) call.end();
    await eventually(() => expect(trial.admission.waiting).toBe(0));
    expect(trial.admission.refusals.account).toBe(0);
  });

  it('count for the account if a new token is signed, and for the network if it is forged', async () => {
    const trial = await Trial.open();
    await trial.flood(60, () => trial.call('/usage/held', { headers: { authorization: 'Bearer forged' } }));
    const signed = { headers: { authorization: 'Bearer signed-ann' } };
    expect((await trial.call('/usage', signed)).status).toBe(200);
    const {
      calls: [forged],
    } = await trial.flood(1, () => trial.call('/usage', { headers: { authorization: 'Bearer forged2' } }));
    await trial.pass(WAIT_MS);
    expect(codeOf((await forged) as Answer)).toEqual([429, 'API_NETWORK_LIMIT']);
    expect(trial.checks).toBeGreaterThan(0);
  });
});

describe('API calls without an account', () => {
  it('count for their network and do not delay other networks', async () => {
    const trial = await Trial.open({ trusted_proxies: ['127.0.0.1'] });
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    const {
      calls: [first],
    } = await trial.flood(60, () => trial.call('/usage/held', from('2001:db8::1')));
    // An IPv6 address in the same /64 network as the flood.
    const {
      calls: [same],
    } = await trial.flood(1, () => trial.call('/usage', from('2001:db8::2')));
    expect((await trial.call('/usage', from('2001:db8:0:1::2'))).status).toBe(200);
    expect((await trial.call('/usage', from('192.0.2.1'))).status).toBe(200);
    await trial.pass(WAIT_MS);
    expect(codeOf((await same) as Answer)).toEqual([429, 'API_NETWORK_LIMIT']);
    trial.letGo();
    expect((await first)?.status).toBe(200);
  });

  it('have no share or rate limit if a trusted proxy names no client', async () => {
    const trial = await Trial.open({ trusted_proxies: ['127.0.0.1'] });
    await trial.floodAs('flood', 10);
    const { calls: proxied } = await trial.flood(60, () => trial.call('/usage/held'));
    await trial.pass(500);
    // Serves sixty calls, ten places at a time, within the maximum wait. A network would be held to its rate.
    for (let round = 0; round < 12; round += 1) {
      trial.letGo();
      await eventually(() => expect(trial.admission.running + trial.admission.waiting).toBeLessThan(71 - 5 * round));
    }
    for (const call of proxied) expect((await call).status).toBe(200);
  });
});

/** Returns the text received until the connection ends or the text contains `until`. */
const answered = (socket: Socket, until: string): Promise<string> =>
  new Promise((resolve) => {
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes(until)) resolve(text);
    });
    socket.on('close', () => resolve(text));
  });

describe('a call that is still waiting', () => {
  const HEAD = 'POST /keys HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n';
  const lengthOf = (length: number) => `${HEAD}content-length: ${length}\r\n\r\n`;

  it('for a slow body takes no place, and is served once the body is complete', async () => {
    const trial = await Trial.open();
    const slow = Array.from({ length: 60 }, () => trial.write(`${lengthOf(5)}1`));
    await eventually(() => expect(slow.every(({ bytesWritten }) => bytesWritten > 0)).toBe(true));
    expect(await trial.call('/usage')).toMatchObject({ status: 200 });
    expect([trial.admission.running, trial.admission.waiting]).toEqual([0, 0]);
    const [first, second, ...others] = slow as [Socket, Socket, ...Socket[]];
    first.write('2345');
    expect(await answered(first, 'made')).toMatch(/^HTTP\/1.1 200 [^]*made 5$/);
    for (const socket of [first, ...others]) socket.destroy();
    second.write('2345');
    expect(await answered(second, 'made')).toContain('made 5');
    // The connection stays usable.
    second.write(`${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`);
    expect(await answered(second, 'made')).toContain('made 3');
    second.destroy();
    await eventually(() => expect([trial.admission.running, trial.admission.waiting]).toEqual([0, 0]));
  });

  it('for a body over the limit takes no place and gets a 413, with a declared length or chunked', async () => {
    const trial = await Trial.open();
    expect(await answered(trial.write(lengthOf(LIMITS.BODY_MAX_BYTES + 1)), 'limit')).toContain('HTTP/1.1 413');
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
    const chunked = trial.write(`${HEAD}transfer-encoding: chunked\r\n\r\n${chunk.repeat(17)}`);
    expect(await answered(chunked, 'API_BODY_TOO_LARGE')).toContain('HTTP/1.1 413');
    await eventually(() => expect(trial.admission.running).toBe(0));
  });

  it('for the lookup of its key takes no place', async () => {
    const trial = await Trial.open();
    const forged = Array.from({ length: 60 }, () =>
      trial.call('/usage', { headers: { authorization: 'Bearer of-no-key' } }),
    );
    await eventually(() => expect(trial.looks).toHaveLength(60));
    expect([trial.admission.running, trial.admission.waiting]).toEqual([0, 0]);
    expect(await trial.call('/usage')).toMatchObject({ status: 200 });
    for (const resolve of trial.looks) resolve();
    for (const call of forged) expect((await call).status).toBe(200);
  });
});

describe('without a place', () => {
  const full = async (): Promise<Trial> => {
    const trial = await Trial.open();
    await trial.flood(60, () => trial.call('/usage/held'));
    return trial;
  };

  it('pages, probes, sign-outs and /mcp are served while all places are taken', async () => {
    const trial = await full();
    for (const path of ['/health', '/health/db', '/app/page', '/docs/page?x=/usage']) {
      expect([path, (await trial.call(path)).body]).toEqual([path, 'served']);
    }
    for (const path of ['/auth/logout', '/mcp']) {
      expect([path, (await trial.call(path, { method: 'POST' })).body]).toEqual([path, 'served']);
    }
  });

  it('a request with the admin token is served', async () => {
    const trial = await full();
    expect((await trial.call('/metrics', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).status).toBe(200);
  });

  it('other spellings of an API path still wait for a place', async () => {
    const trial = await full();
    const { waiting } = trial.admission;
    const targets = [
      '/app/../usage',
      '/app/%2e%2e/usage',
      '/docs\\..\\usage',
      '/health/../usage',
      'http://localhost/usage',
    ];
    await trial.flood(targets.length, () => trial.call(targets.shift() ?? ''));
    expect(trial.admission.waiting).toBe(waiting + 5);
  });

  it('forgot-password and resend-verification give their usual response when refused, and do nothing', async () => {
    const trial = await full();
    for (const path of ['/auth/forgot-password', '/auth/resend-verification']) {
      const {
        calls: [call],
      } = await trial.flood(1, () => trial.call(path, { method: 'POST' }));
      await trial.pass(WAIT_MS);
      const { status, body } = (await call) as Answer;
      expect([status, body]).toEqual([200, expect.stringContaining('we have sent')]);
    }
  });
});

describe('pipelined requests on one connection', () => {
  const asked = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

  it('are served in order, one at a time', async () => {
    const trial = await Trial.open();
    const socket = trial.write(asked('/usage/held') + asked('/usage/held') + asked('/health'));
    let answers = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answers += text;
    });
    await eventually(() => expect(trial.admission.running).toBe(1));
    // The second request has not begun, although further requests were sent behind it.
    expect((await trial.call('/health')).status).toBe(200);
    expect([trial.admission.running, trial.admission.waiting]).toEqual([1, 0]);
    await eventually(() => {
      trial.letGo();
      expect(answers.match(/done|served/g)).toEqual(['done', 'done', 'served']);
    });
    socket.destroy();
  });

  it('are limited: the request over the limit of 33 closes the connection and is counted', async () => {
    const trial = await Trial.open();
    const socket = trial.write(asked('/usage/held').repeat(2000));
    await new Promise((resolve) => socket.once('close', resolve));
    expect(trial.admission.refusals.pipelined).toBe(1);
    trial.letGo();
    await eventually(() => expect([trial.admission.running, trial.admission.waiting]).toEqual([0, 0]));
    expect((await trial.call('/usage')).status).toBe(200);
  });
});
