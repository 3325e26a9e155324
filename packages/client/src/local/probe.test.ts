// Both probes against real services of every temper.
import { writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, freePort, temporaryDirectory } from '@tunnel/testkit';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpProbeOptions, httpProbe, type ProbeResult, readStatusLine, tcpProbe } from './probe.ts';
import { answering, greeting, resetting, type Service, saying, secure, silent } from './services.fixture.ts';

const services: Service[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

const keep = async (started: Promise<Service>): Promise<Service> => {
  const service = await started;
  services.push(service);
  return service;
};

const never = new AbortController().signal;
const local = (port: number, tls: { verify: boolean } | null = null) =>
  ({ kind: 'address', host: '127.0.0.1', port, tls }) as const;

const ask = (port: number, options: Partial<HttpProbeOptions> = {}, signal = never): Promise<ProbeResult> =>
  httpProbe({
    target: local(port),
    timeoutMs: 5000,
    clock: systemClock,
    path: '/healthz',
    localAddress: `127.0.0.1:${port}`,
    expect2xx: true,
    ...options,
  })(signal);

const knock = (port: number, tls: { verify: boolean } | null = null): Promise<ProbeResult> =>
  tcpProbe({ target: local(port, tls), timeoutMs: 5000, clock: systemClock })(never);

const fails = (reason: string): ProbeResult => ({ ok: false, reason });

describe('the tcp probe', () => {
  it.each([
    ['a service that says nothing', silent],
    ['one that resets what it is sent', resetting],
    ['one that speaks TLS', secure],
  ])('is content with %s', async (_, start) => {
    expect(await knock((await keep(start())).port, { verify: true })).toEqual({ ok: true });
  });

  it('says that nobody is there', async () => {
    expect(await knock(await freePort())).toEqual(fails('connection refused'));
  });

  it('says in words what is in the way of a Unix socket', async () => {
    const directory = await temporaryDirectory();
    const reach = (path: string): Promise<ProbeResult> =>
      tcpProbe({ target: { kind: 'socket', path, tls: null }, timeoutMs: 5000, clock: systemClock })(never);
    await writeFile(join(directory.path, 'file'), '');
    expect(await reach(join(directory.path, 'none.sock'))).toEqual(fails('no such file'));
    expect(await reach(join(directory.path, 'file/x.sock'))).toEqual(fails('part of the path is not a folder'));
    expect(await reach(join(directory.path, 'file'))).toEqual(fails('connection refused'));
    await directory.close();
  });

  it('says what cannot be dialled at all', async () => {
    expect(await knock(70_000)).toMatchObject({ ok: false, reason: expect.stringContaining('70000') as string });
  });

  it('leaves no connection and no timer behind', async () => {
    const service = await keep(silent());
    const clock = new FakeClock();
    await tcpProbe({ target: local(service.port), timeoutMs: 5000, clock })(never);
    expect(clock.pendingTimers).toBe(0);
    await eventually(() => expect(service.openConnections()).toBe(0));
  });
});

describe('the http probe', () => {
  it('asks for the path as a small HTTP/1.0 client that closes', async () => {
    const service = await keep(saying('HTTP/1.1 200 OK\r\n\r\n'));
    expect(await ask(service.port, { path: '/prüf?a=b', localAddress: 'app.test' })).toEqual({ ok: true });
    expect(service.heads).toEqual([
      'GET /pr%C3%BCf?a=b HTTP/1.0\r\nHost: app.test\r\nUser-Agent: tunnel-probe\r\nConnection: close\r\n\r\n',
    ]);
  });

  it.each([
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', { ok: true }],
    ['HTTP/1.1 204\r\n\r\n', { ok: true }],
    ['HTTP/1.0 299 Odd but good\r\n\r\n', { ok: true }],
    ['HTTP/1.1 199 Early\r\n\r\n', fails('status 199')],
    ['HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n', fails('status 302')],
    ['HTTP/1.1 503 Service Unavailable\r\n\r\n', fails('status 503')],
    ['SSH-2.0-OpenSSH_9.9\r\n', fails('the response is not HTTP/1')],
    ['HTTP/1.1 20 OK\r\n', fails('the response is not HTTP/1')],
    ['HTTP/1.1 200 OK\n\n', fails('the response is not HTTP/1')],
    ['HTTP/1.1 200 O', fails('the connection was closed before a response')],
    ['', fails('the connection was closed before a response')],
  ])('takes %j for %j', async (answer, result) => {
    expect(await ask((await keep(saying(answer))).port)).toEqual(result);
  });

  it.each([503, 404, 302, 204])('takes any status, %i too, when told so', async (status) => {
    const service = await keep(saying(`HTTP/1.1 ${status} Some\r\n\r\n`));
    expect(await ask(service.port, { expect2xx: false })).toEqual({ ok: true });
  });

  it.each(['no answer, nothing', 'HTTP/2 200\r\n', `HTTP/1.1 200 ${'x'.repeat(5000)}`])(
    'takes what is no HTTP/1 for no answer, also when any status will do: %.20j',
    async (words) => {
      // It does not close: what cannot become an answer is not waited for.
      const service = await keep(answering((write) => write(words)));
      expect(await ask(service.port, { expect2xx: false })).toEqual(fails('the response is not HTTP/1'));
    },
  );

  it('reads the status line alone, however it is cut', async () => {
    const service = await keep(
      answering((write) => {
        for (const piece of ['HT', 'TP/1.1 2', '00 O', 'K\r', '\nand so on']) setImmediate(() => write(piece));
      }),
    );
    expect(await ask(service.port)).toEqual({ ok: true });
    await eventually(() => expect(service.openConnections()).toBe(0));
  });

  it('says that nobody is there, or that it was cut off', async () => {
    expect(await ask(await freePort())).toEqual(fails('connection refused'));
    expect(await ask((await keep(resetting())).port)).toEqual(fails('the connection was reset'));
  });

  it('goes over TLS to a service that speaks it, and looks at the certificate unless told not to', async () => {
    const service = await keep(secure());
    expect(await ask(service.port, { target: local(service.port, { verify: false }) })).toEqual({ ok: true });
    expect(service.heads[0]).toMatch(/^GET \/healthz HTTP\/1\.0\r\n/);
    expect(await ask(service.port, { target: local(service.port, { verify: true }) })).toEqual(
      fails('certificate not accepted: self-signed certificate'),
    );
    const plain = await keep(greeting('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await ask(plain.port, { target: local(plain.port, { verify: false }) })).toEqual(
      fails('the service does not speak TLS'),
    );
  });
});

describe('the deadline', () => {
  const late = async (service: Service, tls: { verify: boolean } | null): Promise<ProbeResult> => {
    const clock = new FakeClock();
    const asked = ask(service.port, { target: local(service.port, tls), timeoutMs: 2500, clock });
    let result: ProbeResult | undefined;
    void asked.then((settled) => {
      result = settled;
    });
    await clock.advance(2499);
    expect(result).toBeUndefined();
    await clock.advance(1);
    expect(clock.pendingTimers).toBe(0);
    return asked;
  };

  it('ends with a service that says nothing, in plain HTTP and in the middle of TLS', async () => {
    const service = await keep(silent());
    expect(await late(service, null)).toEqual(fails('no response within 2.5 s'));
    expect(await late(service, { verify: false })).toEqual(fails('no response within 2.5 s'));
    await eventually(() => expect(service.openConnections()).toBe(0));
  });

  it('is said in the words of its owner, not in those of binary fractions', async () => {
    const clock = new FakeClock();
    const { port } = await keep(silent());
    const asked = ask(port, { timeoutMs: 1.1 * 1000, clock });
    await clock.advance(2000);
    expect(await asked).toEqual(fails('no response within 1.1 s'));
  });

  it('is one for all: a status line that comes in drips does not put it off', async () => {
    let drip: ((text: string) => void) | undefined;
    const service = await keep(
      answering((write) => {
        drip = write;
      }),
    );
    const clock = new FakeClock();
    const asked = ask(service.port, { timeoutMs: 3000, clock });
    await eventually(() => expect(drip).toBeDefined());
    for (const piece of ['H', 'T', 'T', 'P', '/', '1']) {
      drip?.(piece);
      await clock.advance(500);
    }
    drip?.('.1 200 OK\r\n\r\n');
    expect(await asked).toEqual(fails('no response within 3 s'));
  });
});

it('a probe that is stopped lets go at once', async () => {
  const service = await keep(silent());
  const clock = new FakeClock();
  const stop = new AbortController();
  const asked = ask(service.port, { clock }, stop.signal);
  await eventually(() => expect(service.openConnections()).toBe(1));
  stop.abort();
  await asked;
  expect(clock.pendingTimers).toBe(0);
  await eventually(() => expect(service.openConnections()).toBe(0));
  // And one that is not wanted any more when it begins does not begin.
  expect((await ask(service.port, { clock }, stop.signal)).ok).toBe(false);
  expect(clock.pendingTimers).toBe(0);
});

it.each([
  ['', 'unfinished'],
  ['HTTP', 'unfinished'],
  ['HTTP/1.1 200 O', 'unfinished'],
  ['HTTP/1.1 200 OK\r', 'unfinished'],
  ['HTTP/1.1 200 OK\r\n', { status: 200 }],
  ['HTTP/1.0 599\r\nX: y', { status: 599 }],
  ['HTTP/1.1 200 \xe4\r\n', { status: 200 }],
  ['HTTP/1.1 600 Too Much\r\n', 'not-http'],
  ['HTTP/1.1 099 Too Little\r\n', 'not-http'],
  ['HTTP/1.1 200OK\r\n', 'not-http'],
  ['HTTP/1.1  200 OK\r\n', 'not-http'],
  ['HTTP/1.2 200 OK\r\n', 'not-http'],
  ['http/1.1 200 OK\r\n', 'not-http'],
  ['HTTP/1.1 200 O\0K\r\n', 'not-http'],
  ['HTTP/1.1 200 O\rK\r\n', 'not-http'],
  [' HTTP', 'not-http'],
  ['\r\nHTTP/1.1 200 OK\r\n', 'not-http'],
] as const)('%j is %j', (text, line) => {
  expect(readStatusLine(text)).toEqual(line);
});

it('whatever comes, an end is seen within the bound, and pieces change nothing', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 80 }), fc.boolean(), (rest, isPromising) => {
      const text = isPromising ? `HTTP/1.1 200 ${rest}\r\n` : rest;
      let seen = readStatusLine('');
      for (let end = 1; end <= text.length && seen === 'unfinished'; end += 1)
        seen = readStatusLine(text.slice(0, end));
      expect(seen).toEqual(readStatusLine(text));
      expect(readStatusLine(text.padEnd(4096, 'x'))).not.toBe('unfinished');
    }),
  );
});

describe('behind a Unix socket', () => {
  it('a service is looked at, and missed when it is gone', async () => {
    const directory = await temporaryDirectory();
    const path = join(directory.path, 'app.sock');
    const server = createHttpServer((_request, response) => response.end('ok'));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const target = { kind: 'socket', path, tls: null } as const;
    const options = { target, timeoutMs: 5000, clock: systemClock };
    const http = httpProbe({ ...options, path: '/', localAddress: 'localhost', expect2xx: true });
    expect([await http(never), await tcpProbe(options)(never)]).toEqual([{ ok: true }, { ok: true }]);
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
    expect(await http(never)).toMatchObject({ ok: false });
    await directory.close();
  });
});
