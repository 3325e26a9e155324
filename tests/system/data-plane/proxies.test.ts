// Tests of real clients behind proxies: the control connection and all carriers use the proxy, the client survives a restart of the
// proxy, and a wrong proxy password ends the start with 5.
import {
  deterministicBytes,
  eventually,
  hashOf,
  startConnectProxy,
  startEchoServer,
  startSocksProxy,
} from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import { type Stack, TLS_CERT } from '../stack.fixture.ts';
import { sendAndReadAll } from '../visitor.fixture.ts';

const BYTES = deterministicBytes(3_000_000, 15);
const CONNECTIONS = 3;
const CREDENTIALS = 'ann:sesame';

const shared = new Harness();
let secure: Stack;
beforeAll(async () => {
  secure = await shared.stack({ tls: true });
});
afterAll(() => shared.close());

const TLS = ['--tls', '--ca-file', TLS_CERT];

const expectServed = async (port: number): Promise<void> =>
  expect(hashOf(await sendAndReadAll(port, BYTES))).toBe(hashOf(BYTES));

describe.concurrent('a client behind a proxy', () => {
  it.for([
    ['http', startConnectProxy],
    ['socks5', startSocksProxy],
    ['socks5h', startSocksProxy],
  ] as const)('%s: serves visitors, and reconnects after the proxy was down', async ([kind, start], { harness }) => {
    const echo = harness.use(await startEchoServer());
    const proxy = harness.use(await start({ credentials: CREDENTIALS }));
    const url = `${kind}://${CREDENTIALS}@127.0.0.1:${proxy.port}`;
    const program = await harness.tcp(secure, echo.port, { flags: [...TLS, '--proxy', url] });
    const { assigned_port: port } = await program.ready();
    await expectServed(port);
    await eventually(() => expect(proxy.openConnections).toBe(CONNECTIONS));
    expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(new Set([secure.control]));

    await proxy.close();
    await program.waitFor('reconnecting');
    const again = harness.use(await start({ credentials: CREDENTIALS, port: proxy.port }));
    await program.waitFor('reconnected');
    await eventually(() => expect(again.openConnections).toBe(CONNECTIONS));
    await expectServed(port);
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
    expect([...program.stdout, ...program.stderr].join('\n')).not.toContain('sesame');
  });

  it('connects directly to localhost if only the environment names a proxy', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const proxy = harness.use(await startConnectProxy());
    const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, ALL_PROXY: `http://127.0.0.1:${proxy.port}` };
    const program = await harness.tcp(secure, echo.port, { flags: TLS, env });
    await expectServed((await program.ready()).assigned_port);
    expect(proxy.requests).toEqual([]);
  });

  it.for([
    ['http', startConnectProxy],
    ['socks5h', startSocksProxy],
  ] as const)(
    '%s: a wrong password prints a single line and ends the client with 5 after a single attempt',
    async ([kind, start], { harness }) => {
      const proxy = harness.use(await start({ credentials: CREDENTIALS }));
      const url = `${kind}://ann:wrong-word@127.0.0.1:${proxy.port}`;
      const env = { TUNNEL_DEBUG: '1' };
      const program = await harness.tcp(secure, 9, { flags: [...TLS, '--proxy', url], env });
      expect(await program.exitCode()).toBe(5);
      expect(program.events('error')).toMatchObject([{ code: 'CLIENT_PROXY_AUTH', fatal: true }]);
      expect(program.stderr.filter((line) => line.startsWith('tunnel: '))).toEqual([
        `tunnel: authentication at the proxy ${kind}://127.0.0.1:${proxy.port} failed: the proxy rejected the user name and password`,
      ]);
      expect([...program.stdout, ...program.stderr].join('\n')).not.toContain('wrong-word');
      expect(proxy.requests).toHaveLength(1);
    },
  );
});
