// `tunnel login` on a computer, with a scripted platform and a real edge: what it leaves in ~/.tunnel, and what it leaves alone.
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

/** Types each answer when its question has been asked. */
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

describe('a new computer', () => {
  it('has a key and a server after it, for its owner alone', async () => {
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

  it('has neither with --no-key', async () => {
    const { code, io } = await logIn('--no-key');
    expect([code, io.out()]).toEqual([0, `Signed in to ${platform.url} as ${EMAIL}.\n`]);
    expect([existsSync(file('key')), existsSync(file('config.yml'))]).toEqual([false, false]);
  });

  it('keeps the words of a config.yml that has neither', async () => {
    write('config.yml', '# mine\ntunnels:\n  web: { proto: http, local_port: 3000 } # dev\n');
    expect((await logIn()).code).toBe(0);
    expect(read('config.yml')).toBe(
      `# mine\ntunnels:\n  web: { proto: http, local_port: 3000 } # dev\nauth_token_file: key\nserver: "${server}"\n`,
    );
  });

  it('writes a file of its own with --config, and touches no key of another one', async () => {
    await logIn();
    const { io } = await logIn('--config', join(home.path, '.tunnel/work.yml'));
    expect(io.out()).toContain('API key saved to ~/.tunnel/work.key.');
    expect(read('work.yml')).toContain('auth_token_file: work.key\n');
    expect(existsSync(file('key.old'))).toBe(false);
  });

  it('is told when the edge is not there yet, and logged in all the same', async () => {
    platform.regions = [];
    const { code, io } = await logIn();
    expect([code, read('config.yml')]).toEqual([0, 'auth_token_file: key\n']);
    expect(io.err()).toContain('no reachable edge is online');
  });

  it('makes no key where config.yml cannot be changed', async () => {
    write('config.yml', '{ watch: true }\n');
    const { code, io } = await logIn();
    expect([code, io.err()]).toEqual([2, expect.stringContaining('cannot edit')]);
    expect([keysMade(), read('config.yml')]).toEqual([0, '{ watch: true }\n']);
  });

  it.each(['', 'a\nb', 'tnl_\u001b[2J', 'x'.repeat(2000)])('keeps nothing that is no key: %j', async (token) => {
    platform.trap('/keys', 200, '[]');
    platform.trap('/keys', 201, JSON.stringify({ id: 'key-new', token }));
    write('config.yml', 'auth_token: theirs\nserver: "127.0.0.1:1"\n');
    const { code, io } = await logIn('--replace');
    expect([code, existsSync(file('key'))]).toEqual([2, false]);
    expect(io.err()).toContain('the response contains no API key');
  });

  it('starts no session where it could not be kept', async () => {
    writeFileSync(join(home.path, '.tunnel'), 'a file');
    const { code, io } = await logIn();
    expect([code, platform.paths()]).toEqual([2, []]);
    expect(io.err()).toContain('part of the path is not a folder');
  });

  it('prints a key that could not be kept, for it cannot be shown again', async () => {
    platform.onCreate = () => mkdirSync(join(file('key'), 'x'), { recursive: true });
    const { code, io } = await logIn();
    expect([code, io.out()]).toEqual([2, expect.stringContaining('\ntnl_new\n')]);
  });
});

describe('a second login', () => {
  it('makes no second key', async () => {
    await logIn();
    const before = read('config.yml');
    const { code, io } = await logIn();
    expect([code, keysMade(), read('config.yml')]).toEqual([0, 1, before]);
    expect(io.out()).toContain('This computer already has an API key.\n');
  });

  it('makes one key when both run at once', async () => {
    const runs = await Promise.all([logIn(), logIn(), logIn()]);
    expect(runs.map(({ code, io }) => `${code}${io.err()}`)).toEqual(['0', '0', '0']);
    expect([keysMade(), read('key')]).toEqual([1, 'tnl_new\n']);
  });

  it('makes none when another process has saved one meanwhile', async () => {
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

  it('makes one in the place of a key that is gone or that the edge refuses', async () => {
    write('config.yml', `server: "${server}"\nauth_token_file: key\n`);
    expect((await logIn()).io.out()).toContain('API key saved to ~/.tunnel/key.');
    write('key', 'tnl_revoked\n');
    platform.keys = [];
    const { io } = await logIn();
    expect(io.out()).toContain('The previous key is in ~/.tunnel/key.old.');
    expect([read('key'), read('key.old'), keysMade()]).toEqual(['tnl_new\n', 'tnl_revoked\n', 2]);
  });

  it('goes on where an earlier one stopped', async () => {
    platform.regions = [];
    await logIn();
    platform.regions = [region('local', server)];
    await logIn();
    expect([read('config.yml'), keysMade()]).toEqual([`auth_token_file: key\nserver: "${server}"\n`, 1]);
  });
});

describe('a computer that uses another account or platform', () => {
  const OTHER = () => `auth_token: admin # theirs\nserver: "${server}"\ninsecure: true\n`;
  beforeEach(() => {
    write('config.yml', OTHER());
    platform.regions = [region('eu', 'eu.example.com:443', true)];
  });

  it('is left alone without a word from a person, and says how to switch', async () => {
    const { code, io } = await logIn();
    expect([code, keysMade(), read('config.yml')]).toEqual([0, 0, OTHER()]);
    expect(io.out()).toContain(
      '~/.tunnel/config.yml keeps the API key of another account. To switch: `tunnel login --replace`.',
    );
  });

  it('switches with --replace: key and server as one, the old key is kept', async () => {
    expect((await logIn('--replace')).code).toBe(0);
    expect(read('config.yml')).toBe('auth_token_file: key # theirs\nserver: eu.example.com:443\ninsecure: false\n');
    expect([read('key'), read('key.old')]).toEqual(['tnl_new\n', 'admin\n']);
  });

  it('leaves no address of the other platform behind', async () => {
    write('config.yml', `${OTHER()}platform_url: https://other.example.com\napi_url: https://other.example.com:4041\n`);
    await logIn('--replace');
    expect(read('config.yml')).not.toContain('other.example.com');
    expect(read('config.yml')).toContain(`platform_url: ${platform.url}\n`);
  });

  it.each([
    ['y\r', 1],
    ['\r', 0],
  ])('asks at a terminal: %j', async (answer, made) => {
    const { code, io } = await logInTyping([['Switch it to', answer]]);
    expect([code, keysMade()]).toEqual([0, made]);
    expect(io.err()).toContain(`~/.tunnel/config.yml uses another account. Switch it to ${platform.url}? [y/N] `);
  });

  it('keeps its server when that is one of this platform', async () => {
    platform.regions = [region('local', server.replace('127.0.0.1', 'localhost'))];
    await logIn('--replace');
    expect(read('config.yml')).toContain(`server: "${server}"`);
  });

  it('does not show their key to a server of this platform: --region alone changes nothing', async () => {
    const { code, io } = await logIn('--region', 'eu');
    expect([code, keysMade(), read('config.yml')]).toEqual([2, 0, OTHER()]);
    expect(io.err()).toBe(
      'tunnel: ~/.tunnel/config.yml keeps the API key and the server of another account. To switch both: `tunnel login --replace --region eu`.\n',
    );
  });

  it('leaves their server with their key when that key has ended', async () => {
    write('config.yml', OTHER().replace('admin', 'tnl_revoked'));
    const { io } = await logIn();
    expect(io.out()).toContain('Server set to eu.example.com:443 (region eu).');
    expect(read('config.yml')).toBe('auth_token_file: key # theirs\nserver: eu.example.com:443\ninsecure: false\n');
  });

  it('is told when config.yml keeps a server that this platform does not name', async () => {
    write('config.yml', `server: "${server}"\n`);
    const { code, io } = await logIn();
    expect([code, read('config.yml')]).toEqual([0, `server: "${server}"\nauth_token_file: key\n`]);
    expect(io.err()).toBe(
      `tunnel: note: config.yml keeps the server ${server}, which does not belong to this platform. To use eu.example.com:443: \`tunnel login --region eu\`.\n`,
    );
  });
});

describe('several regions', () => {
  beforeEach(() => {
    platform.regions = [region('us', 'us.example.com:443', true), region('eu', 'eu.example.com:443', true)];
  });

  it('the one that is chosen at a terminal, after a word that is none', async () => {
    const { io } = await logInTyping([
      ['Region [eu]: ', 'mars\r'],
      ['Region [eu]: ', 'us\r'],
    ]);
    expect(io.err()).toContain('Regions:\n  eu\n  us\n');
    expect(read('config.yml')).toContain('server: us.example.com:443\n');
  });

  it('the first by its id where nobody can be asked, and a line says so', async () => {
    const { io } = await logIn();
    expect(io.out()).toContain(
      'Server set to eu.example.com:443 (region eu). Regions: eu, us. Choose another with --region.\n',
    );
  });

  it('the one of --region, also later; one that is none makes no key', async () => {
    const { code, io } = await logIn('--region', 'mars');
    expect([code, io.err(), keysMade()]).toEqual([2, "tunnel: no region 'mars'. Use eu, us.\n", 0]);
    await logIn('--region', 'eu');
    await logIn('--region', 'us');
    expect([read('config.yml'), keysMade()]).toEqual(['auth_token_file: key\nserver: us.example.com:443\n', 1]);
  });

  it('an edge without TLS on another machine: nothing goes there in clear unless told', async () => {
    platform.regions = [region('eu', 'eu.example.com:4040')];
    const { io } = await logIn();
    // The platform is on this machine, the edge is not.
    expect(io.err()).toContain(
      'eu.example.com:4040 does not use TLS. On a network you trust, set `tls: false` in config.yml.',
    );
    expect(read('config.yml')).not.toContain('tls');
    await logIn('--region', 'eu', '--no-tls');
    expect(read('config.yml')).toContain('tls: false\n');
  });
});

describe('logout', () => {
  it('keeps the key; with --revoke-key it ends, and config.yml names none', async () => {
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

  it('--revoke-key without a session, without a key, or with the key of another account changes nothing', async () => {
    expect((await tunnel(['logout', '--revoke-key'])).io.err()).toBe('tunnel: not signed in. Run `tunnel login`.\n');
    await logIn('--no-key');
    expect((await tunnel(['logout', '--revoke-key'])).io.err()).toContain('config.yml has no API key.');
    platform.keys = [{ ...KEY }];
    write('config.yml', 'auth_token: tnl_theirs\n');
    const { code, io } = await tunnel(['logout', '--revoke-key']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('does not belong to this account')]);
    expect([platform.keys.length, existsSync(file('session.json'))]).toEqual([1, true]);
  });

  it('--revoke-key with a platform that is away leaves one logged in, to try again', async () => {
    await logIn();
    await platform.stop();
    expect((await tunnel(['logout', '--revoke-key'])).code).toBe(5);
    expect([existsSync(file('session.json')), read('key')]).toEqual([true, 'tnl_new\n']);
  });
});
