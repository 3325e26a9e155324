import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type UnitFacts, unitText } from './unit.ts';

let folder: TemporaryDirectory;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

const facts = (more: Partial<UnitFacts> = {}): UnitFacts => ({
  kind: 'user',
  unit: 'tunnel.service',
  program: [process.execPath, '/usr/bin/env'],
  config: '/etc/tunnel/config.yml',
  user: null,
  writable: ['/etc/tunnel/state'],
  ...more,
});

const analyze = (...args: string[]) =>
  spawnSync('systemd-analyze', args, { encoding: 'utf8', env: { ...process.env, XDG_RUNTIME_DIR: folder.path } });

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;

describe('the systemd unit of a client', () => {
  it.each(['user', 'system'] as const)(
    'for a %s service has the expected type, restart policy, reload command and target',
    (kind) => {
      const lines = unitText(facts({ kind })).split('\n');
      expect(lines).toEqual(
        expect.arrayContaining([
          'Type=notify',
          'NotifyAccess=all',
          'WatchdogSec=60',
          'Restart=always',
          'RestartPreventExitStatus=2 3 4 6',
          'ExecReload=/bin/kill -HUP $MAINPID',
          `ExecStart=${process.execPath} /usr/bin/env start --config /etc/tunnel/config.yml`,
          `WantedBy=${kind === 'user' ? 'default.target' : 'multi-user.target'}`,
        ]),
      );
    },
  );

  it('for the system runs as the owner of its files and can write only the state folder', () => {
    const lines = unitText(facts({ kind: 'system', user: 'me' })).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining(['User=me', 'ProtectSystem=strict', 'ReadWritePaths=-/etc/tunnel/state']),
    );
    expect(unitText(facts({ user: null }))).not.toContain('User=');
  });

  it('quotes unusual paths, and refuses paths with line breaks', () => {
    const odd = unitText(facts({ kind: 'system', config: '/a "b" $c %d \\e.yml', writable: ['/x y $z'] }));
    expect(odd).toContain('start --config "/a \\"b\\" $$c %%d \\\\e.yml"');
    expect(odd).toContain('ReadWritePaths="-/x y $z"');
    expect(() => unitText(facts({ config: '/a\nExecStart=/bin/sh' }))).toThrow('control characters');
  });

  it("writes the path of Node.js in systemd's form, and refuses quotes and backslashes in it", () => {
    const [, program = ''] = facts().program;
    expect(unitText(facts({ program: ['/opt/a $b/100%/node', program] }))).toContain(
      'ExecStart="/opt/a $b/100%%/node" ',
    );
    for (const path of ['/opt/a"b/node', "/opt/a'b/node", '/opt/a\\b/node']) {
      expect(() => unitText(facts({ program: [path, program] }))).toThrow('the program path in a unit file');
    }
  });

  it.runIf(hasAnalyze)('passes systemd-analyze verify with an unusual path of Node.js', () => {
    const node = join(folder.path, 'a $b ${c} %h', 'node');
    mkdirSync(dirname(node));
    copyFileSync('/bin/true', node);
    const file = join(folder.path, 'tunnel.service');
    writeFileSync(file, unitText(facts({ program: [node, '/usr/bin/env'] })));
    const { status, stderr } = analyze('verify', '--user', file);
    expect(stderr.split('\n').filter((line) => line.includes('tunnel.service'))).toEqual([]);
    expect(status).toBe(0);
  });

  it.runIf(hasAnalyze).each(['user', 'system'] as const)('for a %s service passes systemd-analyze verify', (kind) => {
    const file = join(folder.path, 'tunnel.service');
    writeFileSync(file, unitText(facts({ kind })));
    const { status, stderr } = analyze('verify', ...(kind === 'user' ? ['--user'] : []), file);
    expect(stderr.split('\n').filter((line) => line.includes('tunnel.service'))).toEqual([]);
    expect(status).toBe(0);
  });

  it.runIf(hasAnalyze)('for the system has an exposure level of at most 3.0', () => {
    const file = join(folder.path, 'tunnel.service');
    for (const user of [null, 'nobody']) {
      writeFileSync(file, unitText(facts({ kind: 'system', user })));
      const { status, stdout } = analyze('security', '--offline=true', '--no-pager', '--threshold=30', file);
      expect(stdout).toMatch(/exposure level for tunnel\.service: [012]\./);
      expect(status).toBe(0);
    }
  });
});
