// `tunnel service` with a fake systemctl that records the calls: verbs, order, and files left on disk.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo } from '../io/io.fixture.ts';

let home: TemporaryDirectory;
let unit: string;
beforeEach(async () => {
  home = await temporaryDirectory();
  unit = join(home.path, '.config/systemd/user/tunnel.service');
  write('.tunnel/config.yml', 'auth_token_file: key\ntunnels:\n  web: { proto: http, local_port: 3000 }\n');
});
afterEach(() => home.close());

const write = (name: string, text: string, mode = 0o600): void => {
  const file = join(home.path, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
};

/** Installs a fake systemctl that runs `script`, where $2 is the verb. */
const systemctl = (script = ''): void =>
  write('bin/systemctl', `#!/bin/sh\necho "$*" >> '${home.path}/called'\n${script}\n`, 0o755);

const calls = (): string[] =>
  existsSync(join(home.path, 'called')) ? readFileSync(join(home.path, 'called'), 'utf8').trim().split('\n') : [];

const service = async (...args: string[]): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({
    home: home.path,
    env: { PATH: `${home.path}/bin:/usr/bin:/bin`, TUNNEL_API_KEY: 'tnl_secret' },
  });
  return { code: await run(['service', ...args], io), io };
};

describe('`tunnel service`', () => {
  it('install writes a unit without the API key, enables and starts it, and uninstall removes it', async () => {
    systemctl();
    const installed = await service('install');
    expect(installed.io.err()).toBe('');
    expect(installed.code).toBe(0);
    expect(installed.io.out()).toContain('tunnel.service is ready: all tunnels are open.');
    expect(calls()).toEqual([
      '--user show --property=Version',
      '--user daemon-reload',
      '--user enable --quiet tunnel.service',
      '--user restart tunnel.service',
    ]);
    expect(readFileSync(unit, 'utf8')).toContain(`start --config ${home.path}/.tunnel/config.yml`);
    expect(readFileSync(unit, 'utf8')).not.toContain('tnl_');
    const removed = await service('uninstall');
    expect(removed.code).toBe(0);
    expect(calls().slice(4)).toEqual([
      '--user show --property=Version',
      '--user disable --now --quiet tunnel.service',
      '--user daemon-reload',
      '--user reset-failed tunnel.service',
    ]);
    expect(existsSync(unit)).toBe(false);
    expect((await service('uninstall')).code).toBe(0);
  });

  it('install with --name and --config creates an additional service', async () => {
    systemctl();
    write('web.yml', 'auth_token_file: key\ntunnels:\n  web: { proto: http, local_port: 3000 }\n');
    expect((await service('install', '--name', 'web', '--config', 'web.yml')).code).toBe(0);
    const file = join(home.path, '.config/systemd/user/tunnel-web.service');
    expect(readFileSync(file, 'utf8')).toContain(`--config ${home.path}/web.yml`);
    expect(calls().at(-1)).toBe('--user restart tunnel-web.service');
  });

  it('install exits with 1 and names the log when the service does not start', async () => {
    systemctl('test "$2" != restart');
    const { code, io } = await service('install');
    expect(code).toBe(1);
    expect(io.err()).toBe('tunnel: tunnel.service did not start\n  See why: tunnel service logs\n');
  });

  it('install --print changes nothing and needs no systemd', async () => {
    const { code, io } = await service('install', '--print', '--config', 'not/there.yml');
    expect(code).toBe(0);
    expect(io.out()).toContain('[Service]\nType=notify\n');
    expect(existsSync(unit)).toBe(false);
    expect(calls()).toEqual([]);
  });

  it('install --print exits with 2 when the owner of the config path cannot be determined', async () => {
    write('file', '');
    const { code, io } = await service('install', '--print', '--system', '--config', 'file/config.yml');
    expect(code).toBe(2);
    expect(io.err()).toContain(`${home.path}/file/config.yml`);
    expect(io.err()).toContain('part of the path is not a folder');
  });

  it.each(['install', 'uninstall', 'start', 'stop', 'status', 'logs'])(
    '%s without systemd exits with 2 and one line',
    async (verb) => {
      const io = makeTestIo({ home: home.path, env: { PATH: home.path } });
      expect(await run(['service', verb], io)).toBe(2);
      expect(io.err()).toMatch(/^tunnel: systemd is not installed: systemctl was not found\. [^\n]+\n$/);
      expect(io.out()).toBe('');
    },
  );

  it('install exits with 2 and one line without a systemd user manager', async () => {
    systemctl('echo "Failed to connect to bus: No medium found" >&2; exit 1');
    const { code, io } = await service('install');
    expect(code).toBe(2);
    expect(io.err()).toMatch(
      /^tunnel: the systemd user manager is not running \(Failed to connect to bus: No medium found\)\. [^\n]+\n$/,
    );
    expect(existsSync(unit)).toBe(false);
  });

  it.each([
    [
      'has no key',
      'tunnels:\n  web: { proto: http, local_port: 3000 }\n',
      '(services do not inherit TUNNEL_API_KEY). Run `tunnel login`',
    ],
    ['has no tunnels', 'auth_token_file: key\n', 'no tunnels in'],
    ['is not good', 'auth_token_file: key\ntunnel: {}\n', 'unknown key `tunnel`'],
  ])('install refuses a config that %s', async (_, text, reason) => {
    systemctl();
    write('.tunnel/config.yml', text);
    const { code, io } = await service('install');
    expect(code).toBe(2);
    expect(io.err()).toContain(reason);
    expect(existsSync(unit)).toBe(false);
  });

  it('install and uninstall leave a unit file alone that the command did not create', async () => {
    systemctl();
    write('.config/systemd/user/tunnel.service', '[Service]\nExecStart=/bin/true\n');
    expect((await service('install')).code).toBe(2);
    expect((await service('uninstall')).io.err()).toContain('was not created by tunnel');
    expect(readFileSync(unit, 'utf8')).toBe('[Service]\nExecStart=/bin/true\n');
  });

  it('start, stop and status require an installed service', async () => {
    systemctl();
    const { code, io } = await service('start');
    expect(code).toBe(2);
    expect(io.err()).toContain('tunnel.service is not installed');
    await service('install');
    expect((await service('start')).code).toBe(0);
    expect(calls().at(-1)).toBe('--user start tunnel.service');
    expect((await service('stop')).code).toBe(0);
    systemctl('test "$2" != is-active');
    expect((await service('status')).code).toBe(1);
  });
});
