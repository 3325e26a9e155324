import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectOptions } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo } from '../io/io.fixture.ts';

let home: TemporaryDirectory;
let asked: ConnectOptions[];

beforeEach(async () => {
  home = await temporaryDirectory();
  asked = [];
});
afterEach(() => home.close());

/** An Io that never connects: the requested connection options are stored in `asked`. */
const testIo = (env: Record<string, string> = {}, fault = new Fault('AUTH_TOKEN_INVALID')): TestIo =>
  makeTestIo({
    home: home.path,
    env,
    connect: async (options) => {
      asked.push(options);
      throw fault;
    },
  });

const write = (name: string, text: string): string => {
  const file = join(home.path, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  return file;
};

const tokenOf = (options: ConnectOptions | undefined): string | undefined =>
  options?.token instanceof Secret ? options.token.reveal() : options?.token;

describe('command-line usage', () => {
  it.each([
    [[], 'Usage: tunnel'],
    [['nonsense'], "tunnel: unknown command 'nonsense'."],
    [['tcp'], 'tunnel: missing argument: port.\n  See `tunnel tcp --help`.\n'],
    [['tcp', '0'], "tunnel: invalid port '0'. Use 1-65535, host:port or unix:PATH.\n"],
    [['tcp', '70000'], "invalid port '70000'."],
    [['tcp', '80', '--remote-port', 'x'], "tunnel: invalid --remote-port 'x'. Use 1-65535.\n"],
    [['tcp', '80', '--nonsense'], "tunnel: unknown option '--nonsense'.\n  See `tunnel tcp --help`.\n"],
    [['tcp', '80', '--token', 'a', '--token-file', 'b'], 'tunnel: use --token or --token-file, not both.\n'],
    [['tcp', '80'], 'tunnel: no API key. Run `tunnel login`, or set TUNNEL_API_KEY.\n'],
    [['tcp', '80', '--token-file', 'missing'], 'cannot read the token from'],
    [['tcp', '80', '--config', 'missing.yml', '--token', 't'], 'missing.yml'],
    [['http'], 'tunnel: missing argument: port.'],
    [['http', 'x'], "tunnel: invalid port 'x'. Use 1-65535, host:port or a URL.\n"],
    [['http', '80', '--local-protocol', 'h3'], "tunnel: invalid --local-protocol 'h3'. Use http1, h2c.\n"],
    [['http', '80', '--host-header', 'a b', '--token', 't'], 'the Host header must be'],
    [['start'], 'config.yml'],
    [['check'], 'config.yml'],
    [['groups'], 'tunnel: no API key. Run `tunnel login`'],
    [['htp', '80'], "tunnel: unknown command 'htp'. Did you mean http?\n"],
    [['stat'], "tunnel: unknown command 'stat'. Did you mean status?\n"],
    [['http', '80', '--region', 'eu'], "tunnel: unknown option '--region'.\n"],
    [['http', '80', '--subdomian', 'x'], "unknown option '--subdomian'. Did you mean --subdomain?\n"],
    [
      ['http', 'http://ann:pw@localhost:80'],
      "invalid URL 'http://…@localhost:80'. Leave out user and password: http://localhost\n",
    ],
    [['http', '80', '--name'], 'tunnel: --name needs a value.\n'],
    [['groups', '--token', 't', '--interval', '0'], 'Use 1-3600.'],
    [['groups', '--token', 't', '--api', 'edge:4041'], 'must be an http or https URL'],
    [['groups', '--token', 't', '--api', 'http://me:pw@127.0.0.1'], 'must be a URL without user name and password'],
    [
      ['groups', '--token', 't', '--api', 'http://192.0.2.1:4041'],
      'the API key would be sent to 192.0.2.1:4041 unencrypted',
    ],
    [
      ['groups', '--token', 't', '--server', 'edge.example.com'],
      'the API key would be sent to edge.example.com:4041 unencrypted',
    ],
    [['groups', 'more'], 'tunnel: too many arguments: expected 0.\n'],
    [['keys', 'revoke'], 'tunnel: missing argument: id.\n  See `tunnel keys revoke --help`.\n'],
    [['keys', 'create'], 'tunnel: --label is required.\n'],
    [['logout', 'more'], 'too many arguments'],
  ])('exits with 2 and an error on stderr for %j', async (args, words) => {
    const io = testIo();
    expect(await run(args, io)).toBe(2);
    expect(io.err()).toContain(words);
    expect(io.out()).toBe('');
    expect(io.err()).not.toMatch(/\n\s+at /);
  });

  it('prints examples for every command with --help, and the version with --version', async () => {
    const ofTunnels = ['', 'http', 'tcp', 'start', 'check', 'groups', 'group-key'];
    const ofAccounts = ['login', 'logout', 'usage', 'keys', 'keys list', 'keys create', 'keys revoke'];
    for (const command of [...ofTunnels, ...ofAccounts]) {
      const io = testIo();
      const words = command.split(' ').filter((word) => word !== '');
      expect(await run([...words, '--help'], io)).toBe(0);
      expect(io.out()).toContain('Examples:');
    }
    const io = testIo();
    expect(await run(['--version'], io)).toBe(0);
    expect(io.out()).toMatch(/^\d+\.\d+\.\d+/);
  });
});

describe('the API key', () => {
  it('comes from the flags before the environment before config.yml', async () => {
    write('.tunnel/config.yml', 'auth_token: from-file\n');
    write('key', 'from-token-file\n');
    await run(['tcp', '80', '--token', 'from-flag'], testIo({ TUNNEL_API_KEY: 'from-env' }));
    await run(['tcp', '80', '--token-file', 'key'], testIo({ TUNNEL_API_KEY: 'from-env' }));
    await run(['tcp', '80'], testIo({ TUNNEL_API_KEY: 'from-env' }));
    await run(['tcp', '80'], testIo());
    expect(asked.map(tokenOf)).toEqual(['from-flag', 'from-token-file', 'from-env', 'from-file']);
  });

  it('is never printed, even with TUNNEL_DEBUG=1', async () => {
    const io = testIo({ TUNNEL_DEBUG: '1' });
    await run(['tcp', '80', '--token', 'tnl_very_secret'], io);
    expect(io.out() + io.err()).not.toContain('tnl_very_secret');
  });
});

describe('client settings', () => {
  it('have the documented defaults', async () => {
    await run(['tcp', '80', '--token', 't'], testIo());
    expect(asked[0]).toMatchObject({ server: '127.0.0.1:4040', tls: undefined, insecure: false });
    expect(asked[0]?.stateDir).toBe(join(home.path, '.tunnel', 'state'));
  });

  it('contain the client name only if --client-name is given', async () => {
    await run(['http', 'localhost:80', '--token', 't'], testIo());
    await run(['tcp', '80', '--token', 't', '--client-name', 'build box'], testIo());
    expect(asked.map((options) => options?.clientName)).toEqual([undefined, 'build box']);
  });

  it('are taken from flags before the config file, and paths in the file start at its folder', async () => {
    write('conf/tunnel.yml', 'server: edge.test:1\ntls: true\nca_file: ca.pem\nauth_token_file: key\n');
    write('conf/key', 'k');
    await run(['tcp', '80', '--config', 'conf/tunnel.yml'], testIo());
    await run(['tcp', '80', '--config', 'conf/tunnel.yml', '--server', 'other:2', '--no-tls'], testIo());
    expect(asked[0]).toMatchObject({ server: 'edge.test:1', tls: true, caFile: join(home.path, 'conf/ca.pem') });
    expect(asked[0]?.stateDir).toBe(join(home.path, 'conf/state'));
    expect(asked[1]).toMatchObject({ server: 'other:2', tls: false });
  });

  it('use a separate resume state for each set of tunnels, in any order', async () => {
    write('.tunnel/config.yml', 'tunnels:\n  a: {proto: tcp, local_port: 1}\n  b: {proto: tcp, local_port: 2}\n');
    for (const args of [
      ['tcp', '1'],
      ['tcp', '2'],
      ['http', '1'],
      ['http', '1', '--subdomain', 'a'],
      ['start'],
      ['start', 'a'],
      ['start', 'a', 'b'],
      ['start', 'b', 'a'],
    ]) {
      await run([...args, '--token', 't'], testIo());
    }
    const keys = asked.map((options) => options.stateKey);
    expect(new Set(keys).size).toBe(7);
    expect(keys[6]).toBe(keys[7]);
  });
});

describe('config.yml', () => {
  it('is refused with the line of the unknown key', async () => {
    write('.tunnel/config.yml', 'server: a:1\nservr: b\n');
    const io = testIo();
    expect(await run(['start'], io)).toBe(2);
    expect(io.err()).toMatch(/config\.yml:2: unknown key `servr`/);
  });

  it('is refused before connecting if the requested tunnel is missing', async () => {
    write('.tunnel/config.yml', 'auth_token: t\ntunnels:\n  db: {proto: tcp, local_port: 5432}\n');
    const io = testIo();
    expect(await run(['start', 'web'], io)).toBe(2);
    expect(io.err()).toContain("no tunnel 'web' in");
    expect(asked).toEqual([]);
  });

  it('can be checked without connecting', async () => {
    write('.tunnel/config.yml', 'tunnels:\n  db: {proto: tcp, local_port: 5432}\n');
    const io = testIo();
    expect(await run(['check'], io)).toBe(0);
    expect(io.out()).toContain('db: tcp 127.0.0.1:5432');
  });
});

describe('a failed connection', () => {
  it.each([
    ['AUTH_TOKEN_INVALID', 3],
    ['AUTH_TOKEN_REVOKED', 3],
    ['CLIENT_SERVER_UNREACHABLE', 5],
    ['AUTH_BACKEND_AWAY', 5],
    ['ACCOUNT_SUSPENDED', 6],
    ['ACCOUNT_PAST_DUE', 6],
    ['SPEND_CAP_REACHED', 6],
    ['GROUP_KEY_MISMATCH', 4],
    ['GROUP_PROTOCOL_MISMATCH', 4],
    ['GROUP_FIELDS_INVALID', 4],
    ['CLIENT_SERVER_SPEAKS_TLS', 2],
    ['CLIENT_SERVER_SPEAKS_PLAIN', 2],
    ['CLIENT_CERTIFICATE', 2],
    ['CLIENT_NOT_AN_EDGE', 2],
    ['CONTROL_VERSION_UNSUPPORTED', 1],
  ] as const)('with %s exits with %i', async (code, exit) => {
    const io = testIo({}, new Fault(code, { server: 'edge:1', reason: 'because' }));
    expect(await run(['tcp', '80', '--token', 't'], io)).toBe(exit);
    expect(io.err().split('\n')[0]).toMatch(/^tunnel: \S/);
  });

  it('exits with 1 on an unexpected error, and prints the stack only with TUNNEL_DEBUG=1', async () => {
    const surprise = new TypeError('cannot read x of undefined') as unknown as Fault;
    const quiet = testIo({}, surprise);
    expect(await run(['tcp', '80', '--token', 't'], quiet)).toBe(1);
    expect(quiet.err()).toBe(
      'tunnel: unexpected error: cannot read x of undefined\n  Set TUNNEL_DEBUG=1 to see a stack trace.\n',
    );
    const loud = testIo({ TUNNEL_DEBUG: '1' }, surprise);
    await run(['tcp', '80', '--token', 't'], loud);
    expect(loud.err()).toMatch(/\n\s+at /);
  });

  it('is reported as an event and as a line on stderr with --json', async () => {
    const io = testIo();
    await run(['tcp', '80', '--token', 't', '--json'], io);
    expect(io.events()).toMatchObject([
      { event: 'error', code: 'AUTH_TOKEN_INVALID', fatal: true },
      { event: 'closed', exit_code: 3 },
    ]);
    expect(io.err()).toContain('tunnel: invalid API key. Run `tunnel login`, or set TUNNEL_API_KEY.\n');
  });
});
