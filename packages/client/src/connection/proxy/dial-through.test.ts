import type { Socket } from 'node:net';
import { inspect } from 'node:util';
import { Fault } from '@tunnel/errors';
import { systemClock } from '@tunnel/runtime';
import {
  eventually,
  FakeClock,
  startConnectProxy,
  startSocksProxy,
  startTcpServer,
  type TcpServer,
  type TestProxy,
  testCertificate,
} from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { parseServerAddress } from '../../network/endpoint.ts';
import { dialThrough } from './dial-through.ts';
import { parseProxy } from './proxy-address.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const closing = <T extends { close(): Promise<void> }>(one: T): T => {
  cleanUps.push(() => one.close());
  return one;
};

/** Starts a server with a greeting for every connection and an echo afterwards. */
const startServer = async (): Promise<TcpServer> =>
  closing(
    await startTcpServer((socket) => {
      socket.write('hello\n');
      socket.pipe(socket);
    }),
  );

/** Starts a proxy with a script, run once the first bytes of a request have arrived. */
const startScripted = async (script: (socket: Socket) => void): Promise<TcpServer> =>
  closing(await startTcpServer((socket) => socket.once('data', () => script(socket))));

const PLAIN = { kind: 'plain', loopbackOnly: false } as const;

const dial = async (url: string, server: string, clock = systemClock, signal = new AbortController().signal) => {
  const socket = await dialThrough(parseProxy(url, { source: 'test' }), parseServerAddress(server), {
    clock,
    signal,
    security: { kind: 'tls', ca: testCertificate().cert, verify: true },
  });
  cleanUps.push(async () => socket.destroy());
  return socket;
};

const failure = async (dialled: Promise<unknown>): Promise<Fault> => {
  const error: unknown = await dialled.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof Fault) return error;
  throw new Error(`expected a fault, got ${inspect(error)}`);
};

const read = async (socket: Socket, bytes: number): Promise<string> => {
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  await eventually(() => expect(text.length).toBeGreaterThanOrEqual(bytes));
  return text;
};

describe('a dial through a proxy', () => {
  const KINDS: readonly [string, () => Promise<TestProxy>][] = [
    ['http', () => startConnectProxy({ credentials: 'ann:se:same' })],
    ['https', () => startConnectProxy({ credentials: 'ann:se:same', tls: testCertificate() })],
    ['socks5', () => startSocksProxy({ credentials: 'ann:se:same' })],
    ['socks5h', () => startSocksProxy({ credentials: 'ann:se:same' })],
  ];

  it.each(KINDS)('%s: reaches the server and loses none of its first bytes', async (kind, start) => {
    const server = await startServer();
    const proxy = closing(await start());
    const socket = await dial(`${kind}://ann:se%3Asame@127.0.0.1:${proxy.port}`, `127.0.0.1:${server.port}`);
    // The greeting may arrive before the test has a listener.
    await new Promise((resolve) => setImmediate(resolve));
    socket.write('and back');
    expect(await read(socket, 14)).toBe('hello\nand back');
    expect(proxy.requests).toEqual([{ target: `127.0.0.1:${server.port}`, credentials: 'ann:se:same' }]);
  });

  it('lets CONNECT and socks5h proxies resolve host names, but resolves them locally for socks5', async () => {
    const { port } = await startServer();
    const http = closing(await startConnectProxy({ leadsTo: { port } }));
    await dial(`http://127.0.0.1:${http.port}`, 'no.such.test:443');
    expect(http.requests).toEqual([{ target: 'no.such.test:443', credentials: null }]);
    const socks = closing(await startSocksProxy({ leadsTo: { port } }));
    await dial(`socks5h://127.0.0.1:${socks.port}`, 'no.such.test:443');
    await dial(`socks5://127.0.0.1:${socks.port}`, 'localhost:443');
    expect(socks.requests.map(({ target }) => target)).toEqual(['no.such.test:443', '127.0.0.1:443']);
    const unknown = dial(`socks5://127.0.0.1:${socks.port}`, 'no.such.invalid:443');
    await expect(unknown).rejects.toMatchObject({ syscall: 'getaddrinfo', hostname: 'no.such.invalid' });
  });

  it('puts IPv6 addresses in brackets in the CONNECT request', async () => {
    const { port } = await startServer();
    const proxy = closing(await startConnectProxy({ leadsTo: { port } }));
    await dial(`http://127.0.0.1:${proxy.port}`, '[2001:db8::1]:443');
    expect(proxy.requests[0]?.target).toBe('[2001:db8::1]:443');
  });

  it.each([
    ['in one piece', ['HTTP/1.1 200 OK\r\n\r\nhello\n']],
    ['byte by byte', [...'HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello\n']],
    ['of HTTP/1.0', ['HTTP/1.0 200 OK\r\n\r\n', 'hello\n']],
    ['with a body that is none', ['HTTP/1.1 200 OK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\nhello\n']],
    [
      'behind others that are not the last',
      ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nx: y\r\n\r', '\nHTTP/1.1 200 OK\r\n\r\nhello\n'],
    ],
    ['of another 2xx, without words, and with an odd header', ['HTTP/1.1 204\r\nodd\r\nx: \xff\r\n\r\nhello\n']],
  ])('keeps the bytes behind the response head: a response %s', async (_how, pieces) => {
    const { port } = await startScripted((socket) => {
      for (const piece of pieces) socket.write(piece, 'latin1');
    });
    expect(await read(await dial(`http://127.0.0.1:${port}`, 'edge.test:443'), 6)).toBe('hello\n');
  });

  it('keeps the bytes right behind the response of a SOCKS proxy', async () => {
    const { port } = closing(
      await startTcpServer((socket) => {
        let step = 0;
        socket.on('data', () => {
          step += 1;
          if (step === 1) socket.write(Buffer.from([5, 0]));
          else socket.write(Buffer.concat([Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), Buffer.from('hello\n')]));
        });
      }),
    );
    expect(await read(await dial(`socks5h://127.0.0.1:${port}`, 'edge.test:443'), 6)).toBe('hello\n');
  });
});

describe('a proxy that refuses a connection', () => {
  const refuse = (answer: string) => startScripted((socket) => void socket.end(answer, 'latin1'));

  it('causes CLIENT_PROXY_AUTH for a missing or wrong password, without the password in the error', async () => {
    const proxy = closing(await startConnectProxy({ credentials: 'ann:sesame' }));
    const without = await failure(dial(`http://127.0.0.1:${proxy.port}`, 'edge.test:443'));
    expect(without).toMatchObject({ code: 'CLIENT_PROXY_AUTH', retryable: false });
    expect(without.message).toContain('requires a user name and password');
    const wrong = await failure(dial(`http://ann:wrong-pass@127.0.0.1:${proxy.port}`, 'edge.test:443'));
    expect(wrong.message).toBe(
      `authentication at the proxy http://127.0.0.1:${proxy.port} failed: the proxy rejected the user name and password`,
    );
    expect(inspect(wrong, { depth: 9, showHidden: true })).not.toMatch(/wrong-pass|ann:/);
  });

  it.each([
    ['Negotiate, Basic realm="a, b", charset="UTF-8"', 'the proxy rejected the user name and password'],
    [
      'Digest realm="say \\"Basic\\", or Basic", nonce="x", NTLM TlRM==',
      'the proxy requires Digest, NTLM, but this client',
    ],
  ])('can list several authentication schemes in one header line: %s', async (value, words) => {
    const { port } = await refuse(`HTTP/1.1 407 No\r\nProxy-Authenticate: ${value}\r\n\r\n`);
    const fault = await failure(dial(`http://ann:sesame@127.0.0.1:${port}`, 'edge.test:443'));
    expect(fault.message).toContain(words);
  });

  it('causes an error that names authentication schemes without client support', async () => {
    const head = 'HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nproxy-authenticate: NTLM abc\r\n\r\n';
    const { port } = await refuse(head);
    const fault = await failure(dial(`http://127.0.0.1:${port}`, 'edge.test:443'));
    expect(fault.message).toContain('the proxy requires Negotiate, NTLM, but this client supports only Basic');
  });

  it.each([
    ['HTTP/1.1 403 Forbidden\r\n\r\n', 'the response was 403 Forbidden'],
    ['HTTP/1.1 503 Service Unavailable\r\n\r\n', 'the response was 503 Service Unavailable'],
    ['HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n', 'the response was 302 Found'],
    ['HTTP/1.1 101 Switching Protocols\r\n\r\n', 'the response was 101 Switching Protocols'],
    ['HTTP/1.1 403 No\x1b[31m\x07 way\r\n\r\n', 'the response was 403 No [31m way'],
    [
      'HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nask\r\nhelpdesk',
      'the response was 403 Forbidden: ask helpdesk',
    ],
    ['HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\n\r\n<html>', 'the response was 403 Forbidden'],
  ])('with %j causes CLIENT_PROXY_REFUSED with the text of the response', async (answer, words) => {
    const { port } = await refuse(answer);
    const fault = await failure(dial(`http://127.0.0.1:${port}`, 'edge.test:443'));
    expect(fault).toMatchObject({ code: 'CLIENT_PROXY_REFUSED', retryable: false });
    expect(fault.message).toBe(`the proxy http://127.0.0.1:${port} rejected the connection to edge.test:443: ${words}`);
  });

  it('is quoted with at most 200 characters of its response', async () => {
    const { port } = await refuse(`HTTP/1.1 403 ${'x'.repeat(5000)}\r\n\r\n`);
    const fault = await failure(dial(`http://127.0.0.1:${port}`, 'edge.test:443'));
    expect(fault.values['reason']).toHaveLength(200);
  });

  it('over SOCKS causes different errors for a wrong password, a missing password and a rule', async () => {
    const proxy = closing(await startSocksProxy({ credentials: 'ann:sesame' }));
    const wrong = await failure(dial(`socks5://ann:wrong-pass@127.0.0.1:${proxy.port}`, '127.0.0.1:1'));
    expect(wrong).toMatchObject({ code: 'CLIENT_PROXY_AUTH' });
    expect(wrong.message).toContain('rejected the user name');
    expect(inspect(wrong, { depth: 9, showHidden: true })).not.toMatch(/wrong-pass/);
    const none = await failure(dial(`socks5h://127.0.0.1:${proxy.port}`, 'edge.test:443'));
    expect(none.message).toContain('requires a user name and password');
    const rule = closing(await startSocksProxy({ reply: 2 }));
    const refused = await failure(dial(`socks5h://127.0.0.1:${rule.port}`, 'edge.test:443'));
    expect(refused).toMatchObject({ code: 'CLIENT_PROXY_REFUSED' });
    expect(refused.message).toContain('edge.test:443: not allowed by the rules of the proxy');
    const odd = closing(await startSocksProxy({ reply: 99 }));
    expect((await failure(dial(`socks5h://127.0.0.1:${odd.port}`, 'edge.test:443'))).code).toBe('CLIENT_PROXY_REFUSED');
  });
});

describe('a proxy that is unreachable or not a proxy', () => {
  it.each([
    ['closes at once', 'http', (socket: Socket) => socket.end(), 'closed the connection without a response'],
    ['resets', 'http', (socket: Socket) => socket.resetAndDestroy(), 'the connection was reset'],
    [
      'ends in the middle of its head',
      'http',
      (socket: Socket) => socket.end('HTTP/1.1 200 O'),
      'closed the connection',
    ],
    [
      'speaks something else',
      'http',
      (socket: Socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n'),
      'does not speak HTTP',
    ],
    ['sends garbage', 'http', (socket: Socket) => socket.write(Buffer.alloc(70_000, 0xee)), 'does not speak HTTP'],
    ['has an odd status', 'http', (socket: Socket) => socket.write('HTTP/1.1 2000 OK\r\n\r\n'), 'does not speak HTTP'],
    [
      'has a giant head',
      'http',
      (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(17_000)}`),
      'too long',
    ],
    [
      'speaks no SOCKS',
      'socks5h',
      (socket: Socket) => socket.write('HTTP/1.1 400 Bad\r\n\r\n'),
      'does not speak SOCKS5',
    ],
    ['closes at SOCKS', 'socks5h', (socket: Socket) => socket.end(), 'closed the connection without a response'],
    ['sends half of SOCKS', 'socks5h', (socket: Socket) => socket.end(Buffer.from([5])), 'closed the connection'],
  ])('%s: CLIENT_PROXY_UNREACHABLE', async (_what, kind, script, reason) => {
    const { port } = await startScripted(script);
    const fault = await failure(dial(`${kind}://127.0.0.1:${port}`, 'edge.test:443'));
    expect(fault).toMatchObject({ code: 'CLIENT_PROXY_UNREACHABLE', retryable: true });
    expect(fault.message).toContain(reason);
  });

  it('a response head of 16 KiB is still read, in one piece or in several', async () => {
    const head = `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(16_384 - 20)}`;
    expect(head.length).toBe(16_384);
    const { port } = await startScripted((socket) => {
      for (let from = 0; from < head.length; from += 1000) socket.write(head.slice(from, from + 1000));
      socket.write('\r\n\r\nhello\n');
    });
    expect(await read(await dial(`http://127.0.0.1:${port}`, 'edge.test:443'), 6)).toBe('hello\n');
  });

  it('a closed port is reported as connection refused', async () => {
    const closed = await startTcpServer(() => {});
    await closed.close();
    const fault = await failure(dial(`http://127.0.0.1:${closed.port}`, 'edge.test:443'));
    expect(fault.message).toBe(`cannot reach the proxy http://127.0.0.1:${closed.port}: connection refused`);
  });

  it.each(['http', 'https', 'socks5h'])(
    '%s: a proxy that stays silent or sends half a response fails the dial after 15 s',
    async (kind) => {
      const half = kind === 'http' ? 'HTTP/1.1 200 OK\r\n' : '';
      const { port } = closing(await startTcpServer((socket) => void socket.write(half)));
      const clock = new FakeClock();
      let fault: Fault | undefined;
      void failure(dial(`${kind}://127.0.0.1:${port}`, 'edge.test:443', clock)).then((found) => {
        fault = found;
      });
      await eventually(() => expect(clock.pendingTimers).toBe(1));
      await clock.advance(14_999);
      expect(fault).toBeUndefined();
      await clock.advance(1);
      await eventually(() => expect(fault).toMatchObject({ code: 'CLIENT_PROXY_UNREACHABLE' }));
      expect(fault?.message).toContain('no response within 15 s');
    },
  );

  it('an HTTPS proxy with an untrusted certificate does not get the password', async () => {
    const proxy = closing(await startConnectProxy({ tls: testCertificate() }));
    const url = `https://ann:sesame@127.0.0.1:${proxy.port}`;
    const dialled = dialThrough(parseProxy(url, { source: 'test' }), parseServerAddress('edge.test:443'), {
      clock: systemClock,
      signal: new AbortController().signal,
      security: PLAIN,
    });
    const fault = await failure(dialled);
    expect(fault.code).toBe('CLIENT_CERTIFICATE');
    expect(fault.message).toContain(`https://127.0.0.1:${proxy.port}`);
    expect(proxy.requests).toEqual([]);
  });

  it('aborting the dial closes the connection to the proxy', async () => {
    const silent = closing(await startTcpServer((socket) => socket.resume().on('end', () => socket.end())));
    const abort = new AbortController();
    const dialled = dial(`http://127.0.0.1:${silent.port}`, 'edge.test:443', systemClock, abort.signal);
    await eventually(() => expect(silent.openConnections).toBe(1));
    abort.abort(new Fault('CLIENT_CLOSED'));
    expect((await failure(dialled)).code).toBe('CLIENT_CLOSED');
    await eventually(() => expect(silent.openConnections).toBe(0));
    await expect(dial(`http://127.0.0.1:${silent.port}`, 'edge.test:443', systemClock, abort.signal)).rejects.toThrow();
  });
});

it('a failed dial closes the connection to the proxy', async () => {
  const proxy = closing(await startConnectProxy({ credentials: 'a:b' }));
  await failure(dial(`http://127.0.0.1:${proxy.port}`, 'edge.test:443'));
  await eventually(() => expect(proxy.openConnections).toBe(0));
});
