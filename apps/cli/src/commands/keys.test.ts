import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadClientConfig } from '@tunnel/config/client';
import { sha256Hex } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { EMAIL, KEY, PASSWORD, ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, piping, type TestIo, type TestIoOptions, typing } from '../io/io.fixture.ts';

let home: TemporaryDirectory;
let platform: ScriptedPlatform;

beforeEach(async () => {
  home = await temporaryDirectory();
  platform = await ScriptedPlatform.start();
  platform.keys = [{ ...KEY, of_a_later_version: 1 }];
  const args = ['login', '--platform', platform.url, '--email', EMAIL, '--password-stdin', '--no-key'];
  await run(args, makeTestIo({ home: home.path, stdin: piping(PASSWORD) }));
});
afterEach(async () => {
  await platform.stop();
  await home.close();
});

const tunnel = async (args: string[], options: Partial<TestIoOptions> = {}): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: home.path, ...options });
  return { code: await run(args, io), io };
};

describe('`tunnel keys list`', () => {
  it('prints one line for each key, even if a label has control characters', async () => {
    platform.keys.push({ ...KEY, id: 'key-2', label: 'a\u001b[2Jb\nc', last_used_at: null, tunnel_count: 1 });
    const { code, io } = await tunnel(['keys', 'list']);
    expect(code).toBe(0);
    expect(io.out().split('\n')).toEqual([
      expect.stringMatching(/^key-1 {2}laptop {3,}used 20\S+ \d\d:\d\d {2}7 tunnels {2}created 20\S+$/),
      expect.stringMatching(/^key-2 {2}a \[2Jb c {2}never used +1 tunnel +created 20\S+$/),
      '',
    ]);
  });

  it('is the default of `tunnel keys`', async () => {
    const alone = await tunnel(['keys']);
    const named = await tunnel(['keys', 'list']);
    expect([alone.code, alone.io.out()]).toEqual([0, named.io.out()]);
    expect(JSON.parse((await tunnel(['keys', '--json'])).io.out())).toHaveLength(1);
  });

  it.each([
    ['config.yml', 'auth_token: tnl_mine\n', {}],
    ['the environment', 'auth_token: tnl_other\n', { TUNNEL_API_KEY: 'tnl_mine' }],
  ])('marks the key of this computer, from %s, and shows how many tunnels use it', async (_, text, env) => {
    platform.keys.push({ ...KEY, id: 'key-2', label: 'ci', token_hash: sha256Hex('tnl_mine'), active_tunnels: 2 });
    writeFileSync(join(home.path, '.tunnel', 'config.yml'), text);
    const { io } = await tunnel(['keys'], { env });
    expect(io.out().split('\n')).toEqual([
      expect.stringMatching(/^key-1 {2}laptop {17}used 20/),
      expect.stringMatching(/^key-2 {2}ci {6}this computer {2}in use by 2 tunnels +7 tunnels/),
      '',
    ]);
  });

  it('marks no key while the key of this computer cannot be read', async () => {
    writeFileSync(join(home.path, '.tunnel', 'config.yml'), 'auth_token_file: gone\n');
    const { code, io } = await tunnel(['keys']);
    expect([code, io.out()]).toEqual([0, expect.stringMatching(/^key-1 {2}laptop {2}used 20/)]);
  });

  it('cuts its lines to the width of the terminal', async () => {
    const { io } = await tunnel(['keys'], { isTTY: true, columns: 40 });
    expect(io.out().split('\n')[0]).toMatch(/^key-1 {2}laptop {2}used 20.*…$/);
  });

  it("prints the platform's list unchanged with --json", async () => {
    const { io } = await tunnel(['keys', 'list', '--json']);
    expect(JSON.parse(io.out())).toEqual([{ ...KEY, of_a_later_version: 1 }]);
  });

  it('says how to create a key when the account has none', async () => {
    platform.keys = [];
    expect((await tunnel(['keys', 'list'])).io.out()).toMatch(/^no keys\n {2}Create a key: tunnel keys create/);
  });

  it('refuses a response of unexpected shape', async () => {
    platform.trap('/keys', 200, '{"keys":[]}');
    const { code, io } = await tunnel(['keys', 'list']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('unexpected response to GET /keys')]);
  });
});

describe('`tunnel keys create`', () => {
  it('prints only the key on stdout', async () => {
    const { code, io } = await tunnel(['keys', 'create', '--label', 'ci']);
    expect([code, io.out()]).toEqual([0, 'tnl_new\n']);
    expect(io.err()).toContain("Copy this key now. You won't see it again.");
    expect(platform.keys[0]?.['label']).toBe('ci');
  });

  it('prints id and key with --json', async () => {
    const { io } = await tunnel(['keys', 'create', '--label', 'ci', '--json']);
    expect(JSON.parse(io.out())).toEqual({ id: 'key-new', token: 'tnl_new' });
  });

  it("requires a label, and prints the platform's objection to it", async () => {
    expect((await tunnel(['keys', 'create'])).code).toBe(2);
    const refusal = { error: 'label: must have 1 to 100 characters', code: 'API_BAD_REQUEST', request_id: 'r' };
    platform.trap('/keys', 400, JSON.stringify(refusal));
    const { code, io } = await tunnel(['keys', 'create', '--label', '']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('label: must have 1 to 100 characters')]);
  });
});

describe('`tunnel keys create --save`', () => {
  const folder = (): string => join(home.path, '.tunnel');
  const config = (): string => join(folder(), 'config.yml');
  const read = (name: string): string => readFileSync(join(folder(), name), 'utf8');
  const create = (options: Partial<TestIoOptions> = {}) =>
    tunnel(['keys', 'create', '--label', 'laptop', '--save'], options);

  it('saves the key in a separate file with mode 0600 and does not print it', async () => {
    const { code, io } = await create();
    expect([code, io.out(), io.err()]).toEqual([0, 'API key saved to ~/.tunnel/key.\n', '']);
    expect([read('key'), read('config.yml')]).toEqual(['tnl_new\n', 'auth_token_file: key\n']);
    expect(statSync(join(folder(), 'key')).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['a key in the file', 'auth_token: tnl_old   # mine\n', 'auth_token_file: key   # mine\n', 'tnl_old\n'],
    ['a quoted key', 'auth_token: "tnl #old" # mine\n', 'auth_token_file: key # mine\n', 'tnl #old\n'],
    ['another file', "auth_token_file: '/etc/key'\n", 'auth_token_file: key\n', null],
    ['no key', '', 'auth_token_file: key\n', null],
  ])("changes only the key's line of config.yml: %s", async (_name, before, after, old) => {
    const head = '# my tunnels\nserver: edge.example.com:4040\n';
    const tail = '# the shop\ntunnels:\n  web: { proto: http, local_port: 3000 } # dev';
    // If config.yml has no line for the key, the new line is appended last. The file here ends without a line break.
    writeFileSync(config(), before === '' ? head + tail : head + before + tail, { mode: 0o644 });
    expect((await create()).code).toBe(0);
    expect(read('config.yml')).toBe(before === '' ? `${head}${tail}\n${after}` : head + after + tail);
    expect(statSync(config()).mode & 0o777).toBe(0o644);
    expect(existsSync(join(folder(), 'key.old')) ? read('key.old') : null).toBe(old);
    expect(loadClientConfig({ file: config(), env: {} }).auth_token_file).toBe('key');
  });

  it('leaves a config.yml that already names the key file, and keeps the previous key', async () => {
    writeFileSync(config(), '{ auth_token_file: ./key }');
    writeFileSync(join(folder(), 'key'), 'tnl_before\n');
    const { io } = await create();
    expect(io.out()).toContain('The previous key is in ~/.tunnel/key.old.');
    expect([read('config.yml'), read('key'), read('key.old')]).toEqual([
      '{ auth_token_file: ./key }',
      'tnl_new\n',
      'tnl_before\n',
    ]);
  });

  it('creates no key when config.yml has a form that the command cannot edit', async () => {
    writeFileSync(config(), '{ server: "127.0.0.1:4040", auth_token: tnl_old }\n');
    const { code, io } = await create();
    expect([code, io.err()]).toEqual([
      2,
      expect.stringContaining('by hand, then run the command again: `auth_token_file: key`.'),
    ]);
    expect(read('config.yml')).toBe('{ server: "127.0.0.1:4040", auth_token: tnl_old }\n');
    expect(platform.paths()).not.toContain('POST /keys');
  });

  it('creates no key when config.yml is invalid', async () => {
    writeFileSync(config(), 'sever: x\n');
    const { code, io } = await create();
    expect([code, io.err()]).toEqual([2, expect.stringContaining('unknown key `sever`')]);
    expect(platform.paths()).not.toContain('POST /keys');
  });

  it('writes to the target of a symbolic link', async () => {
    mkdirSync(join(home.path, 'dotfiles'));
    writeFileSync(join(home.path, 'dotfiles', 'config.yml'), '# mine\n');
    symlinkSync('../dotfiles/config.yml', config());
    expect((await create()).code).toBe(0);
    expect(readFileSync(join(home.path, 'dotfiles', 'config.yml'), 'utf8')).toBe('# mine\nauth_token_file: key\n');
    expect(readFileSync(join(home.path, 'dotfiles', 'key'), 'utf8')).toBe('tnl_new\n');
  });

  it('prints a key that could not be saved, because it cannot be shown again', async () => {
    // A folder appears at the path of the key file after the command has checked the path.
    const io = makeTestIo({ home: home.path });
    platform.keys = [];
    const inTheWay = join(folder(), 'key');
    platform.onCreate = () => mkdirSync(join(inTheWay, 'x'), { recursive: true });
    expect(await run(['keys', 'create', '--label', 'l', '--save'], io)).toBe(2);
    expect([io.out(), io.err()]).toEqual(['tnl_new\n', expect.stringContaining('cannot use')]);
  });

  it('warns that TUNNEL_API_KEY takes precedence', async () => {
    const { io } = await create({ env: { TUNNEL_API_KEY: 'other' } });
    expect(io.err()).toContain('TUNNEL_API_KEY is set');
  });
});

describe('`tunnel keys revoke`', () => {
  it.each([
    ['y\r', 0, 'API key revoked.\n', 0],
    ['n\r', 0, 'Nothing revoked.\n', 1],
    ['\r', 0, 'Nothing revoked.\n', 1],
  ])('asks for confirmation at a terminal: %j', async (typed, code, out, left) => {
    const ran = await tunnel(['keys', 'revoke', 'key-1'], { stdin: typing(typed) });
    expect([ran.code, ran.io.out(), platform.keys.length]).toEqual([code, out, left]);
    expect(ran.io.err()).toContain('Revoke the key "laptop" (key-1)? Its tunnels will close. [y/N] ');
  });

  it('requires --yes without a terminal', async () => {
    const { code, io } = await tunnel(['keys', 'revoke', 'key-1']);
    expect([code, io.err(), platform.keys.length]).toEqual([
      2,
      expect.stringContaining('tunnel: this command needs a terminal. Add --yes to confirm.\n'),
      1,
    ]);
    expect((await tunnel(['keys', 'revoke', 'key-1', '--yes'])).code).toBe(0);
    expect(platform.keys).toEqual([]);
  });

  it.each([['--yes'], []])('reports an unknown key id, with flags %j', async (...flags: string[]) => {
    const { code, io } = await tunnel(['keys', 'revoke', 'key/9', ...flags], { stdin: typing('y\r') });
    expect([code, io.err()]).toEqual([2, expect.stringContaining('no such key\n  List your keys: `tunnel keys list`')]);
    if (flags.length > 0) expect(platform.paths()).toContain('DELETE /keys/key%2F9');
  });
});
