import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { EMAIL, PASSWORD, ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, piping, type TestIo, type TestIoOptions, typing } from '../io/io.fixture.ts';

let home: TemporaryDirectory;
let platform: ScriptedPlatform;

beforeEach(async () => {
  home = await temporaryDirectory();
  platform = await ScriptedPlatform.start();
});
afterEach(async () => {
  await platform.stop();
  await home.close();
});

const tunnel = async (args: string[], options: Partial<TestIoOptions> = {}): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: home.path, ...options });
  return { code: await run(args, io), io };
};

const sessionFile = (): string => join(home.path, '.tunnel', 'session.json');
const saved = (): Record<string, string> => JSON.parse(readFileSync(sessionFile(), 'utf8')) as Record<string, string>;
const save = (change: Record<string, unknown>): void =>
  writeFileSync(sessionFile(), JSON.stringify({ ...saved(), ...change }));

const logIn = (args: string[] = [], stdin = piping(`${PASSWORD}\n`)) =>
  tunnel(['login', '--platform', platform.url, '--email', EMAIL, '--password-stdin', '--no-key', ...args], { stdin });

describe('`tunnel login`', () => {
  it('saves the session in a file with mode 0600, and prints the platform and the account', async () => {
    const { code, io } = await logIn();
    expect([code, io.out(), io.err()]).toEqual([0, `Signed in to ${platform.url} as ${EMAIL}.\n`, '']);
    expect(saved()).toMatchObject({
      version: 1,
      platform_url: platform.url,
      email: EMAIL,
      refresh_token: 'refresh-1',
      access_token: 'access-1',
    });
    expect(statSync(sessionFile()).mode & 0o777).toBe(0o600);
    expect(statSync(join(home.path, '.tunnel')).mode & 0o777).toBe(0o700);
    expect(platform.asks[0]?.headers['user-agent']).toMatch(/^tunnel\//);
  });

  it('asks at the terminal and never echoes the password, even if it is pasted in one piece', async () => {
    const { code, io } = await tunnel(['login', '--platform', platform.url, '--no-key'], {
      stdin: typing(`${EMAIL}\r${PASSWORD}\r`),
    });
    expect(code).toBe(0);
    expect(io.err()).toMatch(new RegExp(`^Sign in to ${platform.url}\n`));
    expect(io.err()).toContain('Email: ');
    expect(io.err()).toContain('Password: ');
    expect(io.err()).not.toContain('correct');
    expect(io.out()).not.toContain(PASSWORD);
  });

  /** Waits for the prompts, and types the passwords. */
  const typePasswords = async (...passwords: string[]): Promise<{ code: number; io: TestIo }> => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const io = makeTestIo({ home: home.path, stdin });
    const code = run(['login', '--platform', platform.url, '--email', EMAIL, '--no-key'], io);
    for (const [index, password] of passwords.entries()) {
      await eventually(() => expect(io.err().split('Password: ')).toHaveLength(index + 2));
      stdin.write(`${password}\r`);
    }
    return { code: await code, io };
  };

  it('asks again after a wrong password, and exits with 3 after the third', async () => {
    const right = await typePasswords('guess', 'another guess', PASSWORD);
    expect(right.code).toBe(0);
    expect(right.io.err().split('Incorrect email or password. Try again.\n')).toHaveLength(3);
    const wrong = await typePasswords('one', 'two', 'three');
    expect(wrong.code).toBe(3);
    expect(wrong.io.err().split('Password: ')).toHaveLength(4);
    expect(wrong.io.err()).not.toContain('three');
  });

  it('offers the previous email address, and ends the previous session on the platform', async () => {
    await logIn();
    const { code, io } = await tunnel(['login', '--no-key'], { stdin: typing(`\r${PASSWORD}\r`) });
    expect(code).toBe(0);
    expect(io.err()).toContain(`Email [${EMAIL}]: `);
    expect(saved()['refresh_token']).toBe('refresh-2');
    expect([...platform.refreshTokens]).toEqual(['refresh-2']);
  });

  it("takes the platform's URL from config.yml, including a path", async () => {
    writeFileSync(join(home.path, 'c.yml'), `platform_url: ${platform.url}/base/\n`);
    platform.trap('/base/auth/login', 404, 'not here');
    const { code, io } = await tunnel(['login', '--config', 'c.yml', '--email', EMAIL, '--password-stdin'], {
      stdin: piping(PASSWORD),
    });
    expect(code).toBe(2);
    expect(io.err()).toContain(`${platform.url}/base is not a platform API: the server responded with status 404`);
  });

  it('exits with 130 on Ctrl-C, and with 2 when the input ends', async () => {
    const asked = ['login', '--platform', platform.url];
    expect((await tunnel(asked, { stdin: typing('\u0003') })).code).toBe(130);
    const { code, io } = await tunnel(asked, { stdin: typing('') });
    expect([code, io.err()]).toEqual([2, expect.stringContaining('no input. Add --email and --password-stdin.')]);
    expect(platform.asks).toEqual([]);
  });

  it.each([
    [[], 'tunnel: this command needs a terminal. Add --email and --password-stdin.\n'],
    [['--password-stdin'], '--password-stdin needs --email.'],
    [['--email', EMAIL, '--password-stdin'], 'no password on standard input.'],
    [['--platform', 'platform:8080'], '--platform must be an http or https URL'],
    [['--platform', 'http://me:pw@127.0.0.1'], 'must be a URL without user name and password'],
    [['--platform', 'http://192.0.2.1:8080'], 'your password would be sent to 192.0.2.1:8080 unencrypted'],
  ])('exits with 2 and says why for %j', async (args, words) => {
    const { code, io } = await tunnel(['login', ...args]);
    expect([code, io.err()]).toEqual([2, expect.stringContaining(words)]);
  });

  it('exits with 3 for a wrong password and with 6 for a suspended account', async () => {
    const wrong = await logIn([], piping('guess'));
    expect([wrong.code, wrong.io.err()]).toEqual([
      3,
      expect.stringMatching(/^tunnel: incorrect email or password\. Also check/),
    ]);
    platform.suspended = true;
    expect((await logIn()).code).toBe(6);
    expect(() => saved()).toThrow('ENOENT');
  });

  it('exits with 5 when the platform is unreachable, and prints the request id of a server error', async () => {
    platform.trap('/auth', 502, '<html>');
    expect((await logIn()).code).toBe(5);
    platform.trap('/auth', 500, JSON.stringify({ error: 'oh', code: 'INTERNAL', request_id: 'req-77' }));
    const { code, io } = await logIn();
    expect([code, io.err()]).toEqual([1, expect.stringContaining('Request id: req-77')]);
    await platform.stop();
    const away = await logIn();
    expect([away.code, away.io.err()]).toEqual([5, expect.stringContaining('connection refused')]);
  });

  it('does not follow a redirect with the password', async () => {
    let reached = 0;
    const other = createServer((_request, response) => {
      reached += 1;
      response.end();
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    platform.trap('/auth', 307, '', { location: `http://127.0.0.1:${port}/auth/login` });
    const { code, io } = await logIn();
    expect([code, io.err(), reached]).toEqual([2, expect.stringContaining('the server responded with status 307'), 0]);
    await new Promise((resolve) => other.close(resolve));
  });
});

describe('`tunnel logout`', () => {
  it('ends the session on the platform and on this computer, and exits with 0 without a session too', async () => {
    await logIn();
    expect((await tunnel(['logout'])).io.out()).toBe(`Signed out of ${platform.url}.\n`);
    expect(platform.refreshTokens.size).toBe(0);
    expect(() => saved()).toThrow('ENOENT');
    const again = await tunnel(['logout']);
    expect([again.code, again.io.out()]).toEqual([0, 'Not signed in.\n']);
  });

  it('deletes the local session even if the platform is unreachable, and exits with 5', async () => {
    await logIn();
    await platform.stop();
    const { code, io } = await tunnel(['logout']);
    expect([code, io.err()]).toEqual([5, expect.stringContaining('the platform could not be reached: cannot reach')]);
    expect(() => saved()).toThrow('ENOENT');
  });
});

describe('the saved session', () => {
  const LIST = ['keys', 'list', '--json'];

  it('is used as long as its access token is valid', async () => {
    await logIn();
    expect((await tunnel(LIST)).code).toBe(0);
    expect(platform.paths()).toEqual(['POST /auth/login', 'GET /keys']);
  });

  it('is refreshed before its access token expires, and the new tokens are saved', async () => {
    await logIn();
    save({ access_token_until: new Date(Date.now() + 10_000).toISOString() });
    expect((await tunnel(LIST)).code).toBe(0);
    expect(platform.paths()).toEqual(['POST /auth/login', 'POST /auth/refresh', 'GET /keys']);
    expect(saved()).toMatchObject({ refresh_token: 'refresh-2', access_token: 'access-2', email: EMAIL });
    expect(Date.parse(saved()['access_token_until'] ?? '')).toBeGreaterThan(Date.now() + 14 * 60_000);
  });

  it('is refreshed when the platform rejects the access token, and the call is repeated', async () => {
    await logIn();
    platform.accessTokens.clear();
    expect((await tunnel(LIST)).code).toBe(0);
    expect(platform.paths().slice(1)).toEqual(['GET /keys', 'POST /auth/refresh', 'GET /keys']);
  });

  it('is refreshed only once by six commands that run at the same time', async () => {
    await logIn();
    save({ access_token_until: new Date(0).toISOString() });
    const runs = await Promise.all(Array.from({ length: 6 }, () => tunnel(LIST)));
    expect(runs.map(({ code, io }) => `${code}${io.err()}`)).toEqual(Array(6).fill('0'));
    expect(platform.paths().filter((path) => path === 'POST /auth/refresh')).toHaveLength(1);
    expect([...platform.refreshTokens]).toEqual([saved()['refresh_token']]);
  });

  it.each([
    ['none', () => {}, 'not signed in\\.'],
    ['an ended one', () => platform.refreshTokens.clear(), 'has ended\\.'],
    ['a torn file', () => writeFileSync(sessionFile(), '{"version":1'), 'not signed in\\.'],
  ])('gives exit code 3 and the hint to run `tunnel login` when the session is %s', async (name, change, words) => {
    if (name !== 'none') {
      await logIn();
      platform.accessTokens.clear();
      change();
    }
    const { code, io } = await tunnel(LIST);
    expect([code, io.err()]).toEqual([3, expect.stringMatching(new RegExp(`${words} Run .tunnel login.\\.\n$`))]);
  });

  it('gives exit code 6 when the account is suspended', async () => {
    await logIn();
    platform.suspended = true;
    expect((await tunnel(LIST)).code).toBe(6);
  });

  it('is not sent unencrypted to another host, even if the session file names it', async () => {
    await logIn();
    save({ platform_url: 'http://192.0.2.1:8080' });
    const { code, io } = await tunnel(LIST);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('unencrypted')]);
  });
});
