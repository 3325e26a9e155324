// The TCP and HTTP health probes against real services: healthy, silent, slow and broken ones.
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
  ])('passes for %s', async (_, start) => {
    expect(await knock((await keep(start())).port, { verify: true })).toEqual({ ok: true });
  });

  it('fails with `connection refused` when the port is closed', async () => {
    expect(await knock(await freePort())).toEqual(fails('connection refused'));
  });

  it('names the problem with a Unix socket', async () => {
    const directory = await temporaryDirectory();
    const reach = (path: string): Promise<ProbeResult> =>
      tcpProbe({ target: { kind: 'socket', path, tls: null }, timeoutMs: 5000, clock: systemClock })(never);
    await writeFile(join(directory.path, 'file'), '');
    expect(await reach(join(directory.path, 'none.sock'))).toEqual(fails('no such file'));
    expect(await reach(join(directory.path, 'file/x.sock'))).toEqual(fails('part of the path is not a folder'));
    expect(await reach(join(directory.path, 'file'))).toEqual(fails('connection refused'));
    await directory.close();
  });

  it('fails with a reason when the address cannot be dialed at all', async () => {
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
  it('requests the path as an HTTP/1.0 client that closes the connection', async () => {
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
  ])('maps the response %j to %j', async (answer, result) => {
    expect(await ask((await keep(saying(answer))).port)).toEqual(result);
  });

  it.each([503, 404, 302, 204])('accepts any status, such as %i, when 2xx is not required', async (status) => {
    const service = await keep(saying(`HTTP/1.1 ${status} Some\r\n\r\n`));
    expect(await ask(service.port, { expect2xx: false })).toEqual({ ok: true });
  });

  it.each(['no answer, nothing', 'HTTP/2 200\r\n', `HTTP/1.1 200 ${'x'.repeat(5000)}`])(
    'fails for a response that is not HTTP/1 even if any status is accepted: %.20j',
    async (words) => {
      // The service keeps the connection open: the probe must not wait once the bytes cannot become an HTTP/1 response.
      const service = await keep(answering((write) => write(words)));
      expect(await ask(service.port, { expect2xx: false })).toEqual(fails('the response is not HTTP/1'));
    },
  );

  it('needs only the status line, however it is split', async () => {
    const service = await keep(
      answering((write) => {
        for (const piece of ['HT', 'TP/1.1 2', '00 O', 'K\r', '\nand so on']) setImmediate(() => write(piece));
      }),
    );
    expect(await ask(service.port)).toEqual({ ok: true });
    await eventually(() => expect(service.openConnections()).toBe(0));
  });

  it('tells a closed port from a reset connection', async () => {
    expect(await ask(await freePort())).toEqual(fails('connection refused'));
    expect(await ask((await keep(resetting())).port)).toEqual(fails('the connection was reset'));
  });

  it('uses TLS for a TLS service and verifies the certificate unless told not to', async () => {
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

describe('the probe timeout', () => {
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

  it('ends a probe of a silent service, for plain HTTP and during the TLS handshake', async () => {
    const service = await keep(silent());
    expect(await late(service, null)).toEqual(fails('no response within 2.5 s'));
    expect(await late(service, { verify: false })).toEqual(fails('no response within 2.5 s'));
    await eventually(() => expect(service.openConnections()).toBe(0));
  });

  it('is reported as configured, without floating-point digits', async () => {
    const clock = new FakeClock();
    const { port } = await keep(silent());
    const asked = ask(port, { timeoutMs: 1.1 * 1000, clock });
    await clock.advance(2000);
    expect(await asked).toEqual(fails('no response within 1.1 s'));
  });

  it('covers the whole probe: a status line that trickles in does not extend it', async () => {
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

it('a stopped probe closes its connection at once, and does not start again', async () => {
  const service = await keep(silent());
  const clock = new FakeClock();
  const stop = new AbortController();
  const asked = ask(service.port, { clock }, stop.signal);
  await eventually(() => expect(service.openConnections()).toBe(1));
  stop.abort();
  await asked;
  expect(clock.pendingTimers).toBe(0);
  await eventually(() => expect(service.openConnections()).toBe(0));
  // A probe does not start if aborted before the start.
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
] as const)('a status line %j reads as %j', (text, line) => {
  expect(readStatusLine(text)).toEqual(line);
});

it('the status line ends within a fixed length, and the result does not depend on how it is split', () => {
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

describe('a service behind a Unix socket', () => {
  it('passes probes while running, and fails probes once stopped', async () => {
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
