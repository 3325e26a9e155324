// Every command that connects uses the proxy from flag, file or environment, and never prints the proxy's password.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { ConnectOptions, Proxy } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { startConnectProxy, type TestProxy } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { EMAIL, type LoggedIn, logIn, PASSWORD } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, piping, type TestIo } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

let login: LoggedIn;
let proxy: TestProxy;

beforeEach(async () => {
  login = await logIn();
  proxy = await startConnectProxy({ credentials: 'ann:sesame' });
});
afterEach(async () => {
  await proxy.close();
  await login.close();
});

const write = (name: string, text: string): void => {
  const file = join(login.home.path, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
};

const tunnel = async (args: string[], env: Record<string, string> = {}): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: login.home.path, env, stdin: piping(`${PASSWORD}\n`) });
  return { code: await run(args, io), io };
};

describe('the proxy of a tunnel', () => {
  const asked: ConnectOptions[] = [];
  const proxyOf = async (args: string[], env: Record<string, string> = {}, fault = new Fault('AUTH_TOKEN_INVALID')) => {
    asked.length = 0;
    const connect = async (options: ConnectOptions): Promise<never> => {
      asked.push(options);
      throw fault;
    };
    const io = makeTestIo({ home: login.home.path, env, connect });
    const code = await run(['tcp', '80', '--token', 't', ...args], io);
    const used = asked[0]?.proxy as Proxy | null | undefined;
    const password = used?.credentials?.password.reveal();
    return { code, io, shown: used === null ? 'direct' : used?.text, password };
  };
  const REMOTE = ['--server', 'edge.example.com:443'];

  it('comes from the flag before config.yml before the environment', async () => {
    const env = { HTTPS_PROXY: 'http://from-env:1', ALL_PROXY: 'socks5://from-all:2' };
    expect((await proxyOf(REMOTE, env)).shown).toBe('http://from-env:1');
    write('.tunnel/config.yml', 'proxy: socks5h://from-file:3\n');
    expect((await proxyOf(REMOTE, env)).shown).toBe('socks5h://from-file:3');
    expect((await proxyOf([...REMOTE, '--proxy', 'https://from-flag:4'], env)).shown).toBe('https://from-flag:4');
    expect((await proxyOf([...REMOTE, '--proxy', 'none'], env)).shown).toBe('direct');
    write('.tunnel/config.yml', 'proxy: none\n');
    expect((await proxyOf(REMOTE, env)).shown).toBe('direct');
    write('.tunnel/config.yml', 'proxy: ""\n');
    expect((await proxyOf(REMOTE, env)).shown).toBe('http://from-env:1');
    expect((await proxyOf(REMOTE, { ...env, NO_PROXY: 'example.com:443' })).shown).toBe('direct');
    expect((await proxyOf(REMOTE, { ...env, NO_PROXY: 'example.com:444' })).shown).toBe('http://from-env:1');
    expect((await proxyOf(REMOTE, { ALL_PROXY: 'from-all:5' })).shown).toBe('http://from-all:5');
  });

  it('is not taken from the environment for a server on this machine', async () => {
    const env = { HTTPS_PROXY: 'http://from-env:1' };
    expect((await proxyOf([], env)).shown).toBe('direct');
    expect((await proxyOf(['--proxy', 'http://x:1'], env)).shown).toBe('http://x:1');
  });

  it('takes user and password from the URL, or from a file next to config.yml', async () => {
    write('.tunnel/config.yml', 'proxy: http://from-file:3\nproxy_auth_file: auth\n');
    write('.tunnel/auth', 'ann:of-the-file\n');
    expect((await proxyOf(REMOTE)).password).toBe('of-the-file');
    expect((await proxyOf([...REMOTE, '--proxy', 'http://bob:of-the-flag@x:1'])).password).toBe('of-the-flag');
    // A connection without a proxy does not read the file with the proxy's password.
    write('.tunnel/config.yml', 'proxy: none\nproxy_auth_file: missing\n');
    expect((await proxyOf(REMOTE)).shown).toBe('direct');
    write('.tunnel/config.yml', 'proxy: http://x:1\nproxy_auth_file: missing\n');
    const { code, io } = await proxyOf(REMOTE);
    expect([code, io.err()]).toEqual([2, expect.stringMatching(/cannot read .*missing: no such file/)]);
  });

  it.each([
    ['proxy: ftp://u:sesame@x:1\n', /config\.yml:1: `proxy` must be empty or a URL such as/],
    ['proxy: x:3128\n', /config\.yml:1: `proxy` must be/],
    ['proxy: http://u:sesame@x:1\nproxy_auth_file: auth\n', /:2: `proxy_auth_file` must be left out when `proxy` has/],
  ])('is refused at its line of config.yml without the password: %j', async (text, words) => {
    write('.tunnel/config.yml', text);
    const { code, io } = await proxyOf(REMOTE);
    expect([code, io.err()]).toEqual([2, expect.stringMatching(words)]);
    expect(io.err()).not.toContain('sesame');
  });

  it.each([
    ['--proxy', ['--proxy', 'ftp://u:sesame@x:1'], {}],
    ['HTTPS_PROXY', [], { HTTPS_PROXY: 'socks4://u:sesame@x:1' }],
  ])('is refused if %s is invalid, and the error does not contain the password', async (name, args, env) => {
    const { code, io } = await proxyOf([...REMOTE, ...args], env as Record<string, string>);
    expect([code, io.err()]).toEqual([2, expect.stringContaining(`tunnel: ${name} must be http://host:port`)]);
    expect(io.err() + inspect(asked, { depth: 9 })).not.toContain('sesame');
  });

  it.each(['CLIENT_PROXY_AUTH', 'CLIENT_PROXY_REFUSED', 'CLIENT_PROXY_UNREACHABLE'] as const)(
    'ends the client with 5 and a one-line reason on %s',
    async (code) => {
      const fault = new Fault(code, { proxy: 'http://x:1', server: 'edge.example.com:443', reason: 'because' });
      const answer = await proxyOf([...REMOTE, '--proxy', 'http://u:sesame@x:1'], {}, fault);
      expect(answer.code).toBe(5);
      expect(answer.io.err()).toMatch(/^tunnel: .*http:\/\/x:1.*because\n {2}\S.*\n$/);
    },
  );
});

describe('the proxy of account and edge commands', () => {
  const url = () => `http://ann:sesame@127.0.0.1:${proxy.port}`;
  const COMMANDS: readonly string[][] = [
    ['keys', 'list'],
    ['keys', 'create', '--label', 'x'],
    ['keys', 'revoke', 'none', '--yes'],
    ['usage'],
    ['billing'],
    ['billing', 'cap', 'none'],
    ['billing', 'portal'],
    ['logout'],
  ];

  it.each(COMMANDS.map((args) => [args.join(' '), args] as const))(
    'is used by `%s` with --proxy',
    async (_name, args) => {
      const { host } = new URL(login.platform.url);
      const { io } = await tunnel([...args, '--proxy', url()]);
      expect(proxy.requests.length).toBeGreaterThan(0);
      expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(new Set([host]));
      expect(login.platform.asks.length).toBeGreaterThan(0);
      expect(io.out() + io.err()).not.toContain('sesame');
    },
  );

  it.each(COMMANDS.map((args) => [args.join(' '), args] as const))(
    'is used by `%s` from config.yml',
    async (_name, args) => {
      write('.tunnel/config.yml', `proxy: http://127.0.0.1:${proxy.port}\nproxy_auth_file: auth\n`);
      write('.tunnel/auth', 'ann:sesame');
      await tunnel(args);
      expect(proxy.requests[0]).toMatchObject({ credentials: 'ann:sesame' });
    },
  );

  it('is used by `login`, and not saved', async () => {
    const args = ['login', '--platform', login.platform.url, '--email', EMAIL, '--password-stdin', '--no-key'];
    const { code, io } = await tunnel([...args, '--proxy', url()]);
    expect([code, io.err()]).toEqual([0, '']);
    // Two requests: the login, and the end of the previous session.
    expect(proxy.requests).toHaveLength(2);
    const { code: later } = await tunnel(['usage']);
    expect([later, proxy.requests.length]).toEqual([0, 2]);
  });

  it('is not used for a platform on this machine when only the environment names it', async () => {
    const { code } = await tunnel(['usage'], { HTTPS_PROXY: url(), ALL_PROXY: url() });
    expect([code, proxy.requests]).toEqual([0, []]);
  });

  it.each([
    ['http://ann:wrong@127.0.0.1', 'rejected the user name and password'],
    ['http://127.0.0.1', 'requires a user name and password'],
  ])('ends the command with 5 and without a retry when %s is rejected', async (start, words) => {
    const { code, io } = await tunnel(['usage', '--proxy', `${start}:${proxy.port}`]);
    expect(code).toBe(5);
    expect(io.err().split('\n')[0]).toContain(words);
    expect(io.err()).not.toMatch(/wrong|ann/);
    // `tunnel usage` sends three requests in parallel.
    expect(proxy.requests.length).toBeLessThanOrEqual(3);
  });

  it('does not stop `logout` from deleting the local session by refusing the connection', async () => {
    const { code, io } = await tunnel(['logout', '--proxy', `http://127.0.0.1:${proxy.port}`]);
    expect([code, io.err()]).toEqual([
      5,
      expect.stringContaining('signed out on this computer, but the platform could not be reached'),
    ]);
    expect((await tunnel(['logout'])).io.out()).toBe('Not signed in.\n');
  });

  it("is used by `groups` for the edge's API", async () => {
    const edge = await startEdge({ load_balancing: { enabled: true } });
    try {
      const { port } = edge.addresses.api;
      const args = ['groups', '--json', '--api', `http://127.0.0.1:${port}`, '--token', 'nobody'];
      const { code } = await tunnel([...args, '--proxy', url()]);
      expect([code, proxy.requests.map(({ target }) => target)]).toEqual([3, [`127.0.0.1:${port}`]]);
    } finally {
      await edge.stop({ drainMs: 0 });
    }
  });

  it('does not allow unencrypted calls to another host, even if the proxy is on this machine', async () => {
    const args = ['groups', '--token', 't', '--api', 'http://edge.example.com:4041', '--proxy', url()];
    const { code, io } = await tunnel(args);
    expect([code, io.err()]).toEqual([
      2,
      expect.stringContaining('would be sent to edge.example.com:4041 unencrypted'),
    ]);
    expect(proxy.requests).toEqual([]);
  });
});
