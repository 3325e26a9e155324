// `tunnel init` with a real edge in the same process. The tests type answers into the real prompts.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let server: string;
let config: string;

beforeEach(async () => {
  home = await temporaryDirectory();
  config = join(home.path, '.tunnel/config.yml');
  edge = await startEdge();
  server = `127.0.0.1:${edge.addresses.control.port}`;
  writeFileSync(join(home.path, 'token'), 'admin\n');
});
afterEach(async () => {
  await edge.stop({ drainMs: 0 });
  await home.close();
});

const testIo = (more: Partial<TestIoOptions> = {}): TestIo => makeTestIo({ home: home.path, ...more });
const text = (): string => readFileSync(config, 'utf8');

describe('`tunnel init` without questions', () => {
  it('writes config.yml with mode 0600, tests the connection and prints the next command', async () => {
    const io = testIo();
    const tunnels = ['--tunnel', 'web:http:3000', '--tunnel', 'my db:tcp:5432'];
    expect(await run(['init', '--yes', '--server', server, '--token-file', 'token', ...tunnels], io)).toBe(0);
    expect(text()).toBe(
      `server: ${JSON.stringify(server)}\nauth_token_file: ${join(home.path, 'token')}\ntunnels:\n  web:\n    proto: http\n    local_port: 3000\n  "my db":\n    proto: tcp\n    local_port: 5432\n`,
    );
    expect([statSync(config).mode & 0o777, statSync(join(config, '..')).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(io.out()).toBe(
      `Saved ~/.tunnel/config.yml.\nConnecting to ${server}…\nConnected. The API key works.\nNext: tunnel start\n`,
    );
    expect(await run(['check'], testIo())).toBe(0);
  });

  it('prints the next command with a quoted path for a config file elsewhere', async () => {
    const io = testIo();
    const args = ['init', '--yes', '--server', server, '--token-file', 'token', '--config', "it's/my.yml"];
    expect(await run([...args, '--tunnel', 'web:http:3000'], io)).toBe(0);
    expect(io.out()).toContain(`Next: tunnel start --config '${home.path}/it'\\''s/my.yml'\n`);
  });

  it('saves a key given with --token in a separate file and never prints it', async () => {
    const io = testIo();
    expect(await run(['init', '--yes', '--server', server, '--token', 'admin'], io)).toBe(0);
    expect(text()).toContain('auth_token_file: key\n');
    expect(readFileSync(join(config, '../key'), 'utf8')).toBe('admin\n');
    expect(io.out() + io.err() + text()).not.toContain('admin');
    expect(io.out()).toContain('Next: tunnel http 3000\n');
  });

  it('uses the key saved by `tunnel keys create --save`', async () => {
    mkdirSync(join(config, '..'));
    writeFileSync(join(config, '../key'), 'admin\n');
    expect(await run(['init', '--yes', '--server', server], testIo())).toBe(0);
    expect(text()).toContain('auth_token_file: key\n');
  });

  it('refuses to overwrite an existing config file, and keeps a copy with --force', async () => {
    mkdirSync(join(config, '..'));
    writeFileSync(config, '# mine\n');
    const io = testIo();
    const args = ['init', '--yes', '--server', server, '--token-file', 'token'];
    expect(await run(args, io)).toBe(2);
    expect(io.err()).toContain('exists. Edit the file, or replace it with --force');
    expect(text()).toBe('# mine\n');
    expect(await run([...args, '--force'], testIo())).toBe(0);
    expect(readFileSync(`${config}.old`, 'utf8')).toBe('# mine\n');
    expect(text()).toContain('server:');
  });

  it('exits with 3 for a refused key and with 5 at once for an unreachable server, and keeps the file', async () => {
    const io = testIo();
    expect(await run(['init', '--yes', '--server', server, '--token', 'wrong'], io)).toBe(3);
    expect(io.err()).toMatch(/^tunnel: .*\n/);
    expect(text()).toContain('auth_token_file: key\n');
    const away = testIo();
    const args = ['init', '--yes', '--force', '--server', '127.0.0.1:9', '--token', 'x'];
    const begun = Date.now();
    expect(await run(args, away)).toBe(5);
    expect(Date.now() - begun).toBeLessThan(10_000);
    expect(away.err()).toContain('127.0.0.1:9');
    expect(text()).toContain('server: "127.0.0.1:9"\n');
    expect(readFileSync(join(config, '../key.old'), 'utf8')).toBe('wrong\n');
  });

  it.each([
    [['--server', 'x'], 'this is not a terminal: add --yes, and flags for the values to set.'],
    [['--yes'], 'no API key. Run `tunnel login`'],
    [['--yes', '--token-file', 'none'], 'cannot read the token from'],
    [['--yes', '--token-file', '/dev/null'], 'the file is empty'],
    [['--yes', '--token-file', '.'], 'cannot read the token from'],
    [['--yes', '--token', 'x', '--server', 'http://x'], 'http://x'],
    [['--yes', '--token', 'x', '--tunnel', 'web:ftp:1'], 'NAME:PROTO:PORT'],
    [['--yes', '--token', 'x', '--tunnel', 'web:http:0'], '1 to 65535'],
    [['--yes', '--token', 'x', '--tunnel', 'a:http:1', '--tunnel', 'a:tcp:2'], 'Two tunnels are named a.'],
    [['--yes', '--token', 'x', '--tunnel', '__proto__:http:1'], 'do not make a valid config.yml'],
  ])('exits with 2 and writes no file for %j', async (args, words) => {
    const io = testIo();
    expect(await run(['init', ...args], io)).toBe(2);
    expect(io.err()).toContain(words);
    expect(existsSync(config)).toBe(false);
    expect(existsSync(join(config, '..')) ? readdirSync(join(config, '..')) : []).toEqual([]);
  });
});

describe('`tunnel init` at a terminal', () => {
  /** Waits for the questions, and types the answers. */
  const type = async (io: TestIo, stdin: PassThrough, answers: readonly [string, string][]): Promise<void> => {
    for (const [question, answer] of answers) {
      await eventually(() => expect(io.err()).toContain(question));
      stdin.write(answer);
    }
  };
  const terminal = (): { io: TestIo; stdin: PassThrough } => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} });
    return { io: testIo({ stdin }), stdin };
  };

  it('asks for missing values and does not echo the key', async () => {
    const { io, stdin } = terminal();
    const code = run(['init'], io);
    await type(io, stdin, [
      ['Server address', `${server}\r`],
      ['API key (from', 'admin\r'],
      ['Add a tunnel now?', '\r'],
      ['Protocol of the local service', '\r'],
      ['Local port', '3000\r'],
      ['Name of the tunnel', 'web\r'],
      ['Add another tunnel?', '\r'],
    ]);
    expect(await code).toBe(0);
    expect(text()).toBe(
      `server: ${JSON.stringify(server)}\nauth_token_file: key\ntunnels:\n  web:\n    proto: http\n    local_port: 3000\n`,
    );
    expect(io.err() + io.out()).not.toContain('admin');
  });

  it('prints whole questions at a terminal of unknown width', async () => {
    const { io, stdin } = terminal();
    Object.assign(io.stderr, { isTTY: true, columns: 0, rows: 0 });
    const code = run(['init'], io);
    await type(io, stdin, [['Server address (host:port of the control port)', '\u0003']]);
    expect(await code).toBe(130);
  });

  it.each([
    ['Ctrl-C', (stdin: PassThrough) => stdin.write('\u0003')],
    ['Ctrl-D', (stdin: PassThrough) => stdin.write('\u0004')],
    ['a terminal that is gone', (stdin: PassThrough) => stdin.end()],
  ])('stops at %s during a question and writes no file', async (_, act) => {
    const { io, stdin } = terminal();
    const code = run(['init', '--server', server], io);
    await eventually(() => expect(io.err()).toContain('API key (from'));
    act(stdin);
    expect(await code).toBe(130);
    expect(existsSync(config)).toBe(false);
  });
});
