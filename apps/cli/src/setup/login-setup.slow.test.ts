// `tunnel login` with a scripted platform and a real edge: the files created in ~/.tunnel, and the files left unchanged.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Edge } from '@tunnel/edge';
import { takeLock } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { EMAIL, KEY, PASSWORD, ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, piping, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

let edge: Edge;
let home: TemporaryDirectory;
let platform: ScriptedPlatform;
let server: string;

beforeAll(async () => {
  edge = await startEdge();
  server = `127.0.0.1:${edge.addresses.control.port}`;
});
afterAll(() => edge.stop({ drainMs: 0 }));
beforeEach(async () => {
  home = await temporaryDirectory();
  platform = await ScriptedPlatform.start();
  platform.regions = [region('local', server)];
});
afterEach(async () => {
  await platform.stop();
  await home.close();
});

const region = (region_id: string, control: string, control_tls = false) => ({
  region_id,
  name: region_id,
  location: '',
  control,
  control_tls,
  http_url: '',
});
const file = (name: string): string => join(home.path, '.tunnel', name);
const read = (name: string): string => readFileSync(file(name), 'utf8');
const write = (name: string, text: string): void => {
  mkdirSync(dirname(file(name)), { recursive: true });
  writeFileSync(file(name), text);
};
const keysMade = (): number => platform.paths().filter((path) => path === 'POST /keys').length;

const tunnel = async (args: string[], options: Partial<TestIoOptions> = {}): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: home.path, ...options });
  return { code: await run(args, io), io };
};
const logIn = (...args: string[]) =>
  tunnel(['login', '--platform', platform.url, '--email', EMAIL, '--password-stdin', ...args], {
    stdin: piping(PASSWORD),
  });

/** Runs `tunnel login` at a terminal, and types each answer after its question has appeared. */
const logInTyping = async (answers: readonly [question: string, answer: string][], ...args: string[]) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const io = makeTestIo({ home: home.path, stdin });
  const code = run(['login', '--platform', platform.url, '--email', EMAIL, ...args], io);
  for (const [question, answer] of [['Password: ', `${PASSWORD}\r`], ...answers] as const) {
    await eventually(() => expect(io.err()).toContain(question));
    stdin.write(answer);
  }
  return { code: await code, io };
};

describe('`tunnel login` on a new computer', () => {
  it('saves an API key and a server in files with mode 0600', async () => {
    const { code, io } = await logIn();
    expect([code, io.err()]).toEqual([0, '']);
    expect(io.out()).toBe(
      [
        `Signed in to ${platform.url} as ${EMAIL}.`,
        'API key saved to ~/.tunnel/key.',
        `Server set to ${server} (region local).`,
        'Next: tunnel http 3000',
        '',
      ].join('\n'),
    );
    expect(read('key')).toBe('tnl_new\n');
    expect(read('config.yml')).toBe(`auth_token_file: key\nserver: "${server}"\n`);
    expect([statSync(file('key')).mode & 0o777, statSync(file('config.yml')).mode & 0o777]).toEqual([0o600, 0o600]);
    expect(platform.keys[0]?.['label']).toBe('test-computer');
    expect(existsSync(file('config.yml.key.lock'))).toBe(false);
  });

  it('saves neither key nor server with --no-key', async () => {
    const { code, io } = await logIn('--no-key');
    expect([code, io.out()]).toEqual([0, `Signed in to ${platform.url} as ${EMAIL}.\n`]);
    expect([existsSync(file('key')), existsSync(file('config.yml'))]).toEqual([false, false]);
  });

  it('keeps the existing lines of config.yml', async () => {
    write('config.yml', '# mine\ntunnels:\n  web: { proto: http, local_port: 3000 } # dev\n');
    expect((await logIn()).code).toBe(0);
    expect(read('config.yml')).toBe(
      `# mine\ntunnels:\n  web: { proto: http, local_port: 3000 } # dev\nauth_token_file: key\nserver: "${server}"\n`,
    );
  });

  it('writes the file of --config with a separate key, and keeps the first key', async () => {
    await logIn();
    const { io } = await logIn('--config', join(home.path, '.tunnel/work.yml'));
    expect(io.out()).toContain('API key saved to ~/.tunnel/work.key.');
    expect(read('work.yml')).toContain('auth_token_file: work.key\n');
    expect(existsSync(file('key.old'))).toBe(false);
  });

  it('warns when no edge is online, and still signs in', async () => {
    platform.regions = [];
    const { code, io } = await logIn();
    expect([code, read('config.yml')]).toEqual([0, 'auth_token_file: key\n']);
    expect(io.err()).toContain('no reachable edge is online');
  });

  it('creates no key when config.yml cannot be edited', async () => {
    write('config.yml', '{ watch: true }\n');
    const { code, io } = await logIn();
    expect([code, io.err()]).toEqual([2, expect.stringContaining('cannot edit')]);
    expect([keysMade(), read('config.yml')]).toEqual([0, '{ watch: true }\n']);
  });

  it.each(['', 'a\nb', 'tnl_\u001b[2J', 'x'.repeat(2000)])(
    'saves no invalid key from the platform: %j',
    async (token) => {
      platform.trap('/keys', 200, '[]');
      platform.trap('/keys', 201, JSON.stringify({ id: 'key-new', token }));
      write('config.yml', 'auth_token: theirs\nserver: "127.0.0.1:1"\n');
      const { code, io } = await logIn('--replace');
      expect([code, existsSync(file('key'))]).toEqual([2, false]);
      expect(io.err()).toContain('the response contains no API key');
    },
  );

  it('starts no session when it could not be saved', async () => {
    writeFileSync(join(home.path, '.tunnel'), 'a file');
    const { code, io } = await logIn();
    expect([code, platform.paths()]).toEqual([2, []]);
    expect(io.err()).toContain('part of the path is not a folder');
  });

  it('prints a key that could not be saved, because it cannot be shown again', async () => {
    platform.onCreate = () => mkdirSync(join(file('key'), 'x'), { recursive: true });
    const { code, io } = await logIn();
    expect([code, io.out()]).toEqual([2, expect.stringContaining('\ntnl_new\n')]);
  });
});

describe('a second `tunnel login`', () => {
  it('creates no second key', async () => {
    await logIn();
    const before = read('config.yml');
    const { code, io } = await logIn();
    expect([code, keysMade(), read('config.yml')]).toEqual([0, 1, before]);
    expect(io.out()).toContain('This computer already has an API key.\n');
  });

  it('creates a single key when three logins run at once', async () => {
    const runs = await Promise.all([logIn(), logIn(), logIn()]);
    expect(runs.map(({ code, io }) => `${code}${io.err()}`)).toEqual(['0', '0', '0']);
    expect([keysMade(), read('key')]).toEqual([1, 'tnl_new\n']);
  });

  it('creates no key when another process has just saved one', async () => {
    const regions = platform.paths().length;
    mkdirSync(dirname(file('key')), { recursive: true });
    const lock = takeLock(file('config.yml.key.lock'));
    const second = logIn();
    await eventually(() =>
      expect(
        platform
          .paths()
          .slice(regions)
          .some((path) => path.endsWith('/regions')),
      ).toBe(true),
    );
    write('key', 'tnl_first\n');
    write('config.yml', `server: "${server}"\nauth_token_file: key\n`);
    lock?.release();
    const { code, io } = await second;
    expect([code, keysMade(), read('key')]).toEqual([0, 0, 'tnl_first\n']);
    expect(io.out()).toContain('This computer already has an API key.\n');
  });

  it('replaces a missing or revoked key', async () => {
    write('config.yml', `server: "${server}"\nauth_token_file: key\n`);
    expect((await logIn()).io.out()).toContain('API key saved to ~/.tunnel/key.');
    write('key', 'tnl_revoked\n');
    platform.keys = [];
    const { io } = await logIn();
    expect(io.out()).toContain('The previous key is in ~/.tunnel/key.old.');
    expect([read('key'), read('key.old'), keysMade()]).toEqual(['tnl_new\n', 'tnl_revoked\n', 2]);
  });

  it('adds the server when the first login found none', async () => {
    platform.regions = [];
    await logIn();
    platform.regions = [region('local', server)];
    await logIn();
    expect([read('config.yml'), keysMade()]).toEqual([`auth_token_file: key\nserver: "${server}"\n`, 1]);
  });
});

describe("`tunnel login` on a computer with another account's key", () => {
  const OTHER = () => `auth_token: admin # theirs\nserver: "${server}"\ninsecure: true\n`;
  beforeEach(() => {
    write('config.yml', OTHER());
    platform.regions = [region('eu', 'eu.example.com:443', true)];
  });

  it('changes nothing and says how to switch', async () => {
    const { code, io } = await logIn();
    expect([code, keysMade(), read('config.yml')]).toEqual([0, 0, OTHER()]);
    expect(io.out()).toContain(
      '~/.tunnel/config.yml keeps the API key of another account. To switch: `tunnel login --replace`.',
    );
  });

  it('with --replace switches key and server, and keeps a copy of the old key', async () => {
    expect((await logIn('--replace')).code).toBe(0);
    expect(read('config.yml')).toBe('auth_token_file: key # theirs\nserver: eu.example.com:443\ninsecure: false\n');
    expect([read('key'), read('key.old')]).toEqual(['tnl_new\n', 'admin\n']);
  });

  it('with --replace removes the addresses of the other platform', async () => {
    write('config.yml', `${OTHER()}platform_url: https://other.example.com\napi_url: https://other.example.com:4041\n`);
    await logIn('--replace');
    expect(read('config.yml')).not.toContain('other.example.com');
    expect(read('config.yml')).toContain(`platform_url: ${platform.url}\n`);
  });

  it.each([
    ['y\r', 1],
    ['\r', 0],
  ])('asks at a terminal whether to switch: %j', async (answer, made) => {
    const { code, io } = await logInTyping([['Switch it to', answer]]);
    expect([code, keysMade()]).toEqual([0, made]);
    expect(io.err()).toContain(`~/.tunnel/config.yml uses another account. Switch it to ${platform.url}? [y/N] `);
  });

  it('with --replace keeps the server if it belongs to the new platform', async () => {
    platform.regions = [region('local', server.replace('127.0.0.1', 'localhost'))];
    await logIn('--replace');
    expect(read('config.yml')).toContain(`server: "${server}"`);
  });

  it("is refused with only --region, so that the other account's key never reaches the new server", async () => {
    const { code, io } = await logIn('--region', 'eu');
    expect([code, keysMade(), read('config.yml')]).toEqual([2, 0, OTHER()]);
    expect(io.err()).toBe(
      'tunnel: ~/.tunnel/config.yml keeps the API key and the server of another account. To switch both: `tunnel login --replace --region eu`.\n',
    );
  });

  it('replaces key and server when the old key is revoked', async () => {
    write('config.yml', OTHER().replace('admin', 'tnl_revoked'));
    const { io } = await logIn();
    expect(io.out()).toContain('Server set to eu.example.com:443 (region eu).');
    expect(read('config.yml')).toBe('auth_token_file: key # theirs\nserver: eu.example.com:443\ninsecure: false\n');
  });

  it('warns when config.yml keeps a server that the platform does not list', async () => {
    write('config.yml', `server: "${server}"\n`);
    const { code, io } = await logIn();
    expect([code, read('config.yml')]).toEqual([0, `server: "${server}"\nauth_token_file: key\n`]);
    expect(io.err()).toBe(
      `tunnel: note: config.yml keeps the server ${server}, which does not belong to this platform. To use eu.example.com:443: \`tunnel login --region eu\`.\n`,
    );
  });
});

describe('`tunnel login` with several regions', () => {
  beforeEach(() => {
    platform.regions = [region('us', 'us.example.com:443', true), region('eu', 'eu.example.com:443', true)];
  });

  it('asks for a region at a terminal, and again after an unknown name', async () => {
    const { io } = await logInTyping([
      ['Region [eu]: ', 'mars\r'],
      ['Region [eu]: ', 'us\r'],
    ]);
    expect(io.err()).toContain('Regions:\n  eu\n  us\n');
    expect(read('config.yml')).toContain('server: us.example.com:443\n');
  });

  it('takes the first region by id without a terminal, and says so', async () => {
    const { io } = await logIn();
    expect(io.out()).toContain(
      'Server set to eu.example.com:443 (region eu). Regions: eu, us. Choose another with --region.\n',
    );
  });

  it('takes the region of --region, also in a later login, and refuses an unknown region before creating a key', async () => {
    const { code, io } = await logIn('--region', 'mars');
    expect([code, io.err(), keysMade()]).toEqual([2, "tunnel: no region 'mars'. Use eu, us.\n", 0]);
    await logIn('--region', 'eu');
    await logIn('--region', 'us');
    expect([read('config.yml'), keysMade()]).toEqual(['auth_token_file: key\nserver: us.example.com:443\n', 1]);
  });

  it('allows an edge without TLS on another machine only with --no-tls', async () => {
    platform.regions = [region('eu', 'eu.example.com:4040')];
    const { io } = await logIn();
    // The platform is on this machine, but the edge is not.
    expect(io.err()).toContain(
      'eu.example.com:4040 does not use TLS. On a network you trust, set `tls: false` in config.yml.',
    );
    expect(read('config.yml')).not.toContain('tls');
    await logIn('--region', 'eu', '--no-tls');
    expect(read('config.yml')).toContain('tls: false\n');
  });
});

describe('`tunnel logout`', () => {
  it('keeps the API key, and with --revoke-key revokes the key and removes it from config.yml', async () => {
    await logIn();
    expect((await tunnel(['logout'])).code).toBe(0);
    expect([platform.keys.length, read('key')]).toEqual([1, 'tnl_new\n']);
    await logIn();
    const { code, io } = await tunnel(['logout', '--revoke-key']);
    expect([code, io.out()]).toEqual([0, `API key revoked.\nSigned out of ${platform.url}.\n`]);
    expect([platform.keys, existsSync(file('key')), read('config.yml')]).toEqual([[], false, `server: "${server}"\n`]);
    expect((await tunnel(['http', '3000'])).io.err()).toBe(
      'tunnel: no API key. Run `tunnel login`, or set TUNNEL_API_KEY.\n',
    );
  });

  it("--revoke-key changes nothing without a session, without a key, or with another account's key", async () => {
    expect((await tunnel(['logout', '--revoke-key'])).io.err()).toBe('tunnel: not signed in. Run `tunnel login`.\n');
    await logIn('--no-key');
    expect((await tunnel(['logout', '--revoke-key'])).io.err()).toContain('config.yml has no API key.');
    platform.keys = [{ ...KEY }];
    write('config.yml', 'auth_token: tnl_theirs\n');
    const { code, io } = await tunnel(['logout', '--revoke-key']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('does not belong to this account')]);
    expect([platform.keys.length, existsSync(file('session.json'))]).toEqual([1, true]);
  });

  it('--revoke-key keeps the session when the platform is unreachable, so that it can be repeated', async () => {
    await logIn();
    await platform.stop();
    expect((await tunnel(['logout', '--revoke-key'])).code).toBe(5);
    expect([existsSync(file('session.json')), read('key')]).toEqual([true, 'tnl_new\n']);
  });
});
