// The units of deploy/systemd, and the unit of `tunnel-server service install`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { UNIT_MARK, type UnitFacts, unitName, unitText } from './unit.rules.ts';
import { unitTemplate } from './unit-template.ts';

const FOLDER = new URL('../../../../deploy/systemd/', import.meta.url);
const fileOf = (part: string): string => readFileSync(new URL(`tunnel-${part}.service`, FOLDER), 'utf8');

const FACTS: UnitFacts = {
  program: ['/usr/bin/node', '/opt/tunnel/tunnel-server.mjs'],
  command: 'stack',
  config: '/etc/tunnel/server.toml',
  user: 'tunnel',
  dataDir: '/var/lib/tunnel',
  backupDir: '',
};

const textOf = (facts: Partial<UnitFacts> = {}): string => {
  const unit = unitText(unitTemplate(), { ...FACTS, ...facts });
  return 'text' in unit ? unit.text : `refused: ${unit.refused}`;
};

const folder = mkdtempSync(join(tmpdir(), 'server-unit-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the unit of `service install`', () => {
  it('is the unit of the repository with the program, the config file and the user of this machine', () => {
    const changed = textOf().split('\n');
    const kept = fileOf('server')
      .split('\n')
      .filter((line) => !changed.includes(line));
    expect(kept).toEqual(['ExecStart=/usr/bin/tunnel-server stack --config /etc/tunnel/server.toml', 'Group=tunnel']);
    expect(changed[0]).toBe(UNIT_MARK);
    expect(changed).toContain(
      'ExecStart=/usr/bin/node /opt/tunnel/tunnel-server.mjs stack --config /etc/tunnel/server.toml',
    );
  });

  it('makes a data directory outside of /var/lib writable, and opens home folders only if a path is in one', () => {
    expect(textOf({ dataDir: '/var/lib/tunnel/second' })).toContain('\nStateDirectory=tunnel/second\n');
    const elsewhere = textOf({ dataDir: '/srv/tunnel' });
    expect(elsewhere).toContain('\nReadWritePaths=/srv/tunnel\n');
    expect(elsewhere).not.toContain('StateDirectory');
    expect(elsewhere).toContain('\nProtectHome=yes\n');
    expect(textOf({ config: '/home/ann/server.toml' })).toContain('\nProtectHome=read-only\n');
  });

  it('makes the folder for backups writable', () => {
    expect(textOf({ backupDir: '/srv/backups' })).toContain('\nStateDirectory=tunnel\nReadWritePaths=/srv/backups\n');
    expect(textOf({ dataDir: '/srv/tunnel', backupDir: '/home/ann/backups' })).toContain(
      '\nReadWritePaths=/srv/tunnel\nReadWritePaths=/home/ann/backups\n',
    );
    expect(textOf({ backupDir: '/home/ann/backups' })).toContain('\nProtectHome=read-only\n');
    expect(textOf({ backupDir: '/srv/my backups' })).toBe('refused: /srv/my backups');
  });

  it('refuses paths with characters that have a meaning in a unit file', () => {
    for (const bad of ['/etc/my server.toml', '/etc/%i.toml', '/etc/a"b', '/etc/$HOME', '/etc/a\nUser=root']) {
      expect(textOf({ config: bad })).toBe(`refused: ${bad}`);
    }
    expect(textOf({ dataDir: '/var/lib/a:b' })).toBe('refused: /var/lib/a:b');
  });

  it('has the name of the additional server', () => {
    expect([unitName(undefined), unitName('eu')]).toEqual(['tunnel-server.service', 'tunnel-server-eu.service']);
  });
});

describe('the units of deploy/systemd', () => {
  it('differ only in the description and the command', () => {
    const linesOf = (part: string): string[] =>
      fileOf(part)
        .split('\n')
        .filter((line) => !/^(?:Description|ExecStart)=/.test(line));
    expect(linesOf('edge')).toEqual(linesOf('server'));
    expect(linesOf('platform')).toEqual(linesOf('server'));
    for (const [part, command] of [
      ['server', 'stack'],
      ['edge', 'edge'],
      ['platform', 'platform'],
    ] as const) {
      expect(fileOf(part)).toContain(
        `\nExecStart=/usr/bin/tunnel-server ${command} --config /etc/tunnel/server.toml\n`,
      );
    }
  });

  const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;
  const units = [
    ['server', () => fileOf('server')],
    ['edge', () => fileOf('edge')],
    ['platform', () => fileOf('platform')],
    ['installed', () => textOf({ dataDir: '/srv/tunnel', config: '/home/ann/server.toml' })],
  ] as const;

  it.runIf(hasAnalyze).each(units)(
    'systemd accepts the unit %s, and rates its exposure 2.5 or better',
    (name, text) => {
      const file = join(folder, `tunnel-${name}.service`);
      writeFileSync(file, text());
      const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
      const said = verified.stderr.split('\n').filter((line) => line.includes(`tunnel-${name}`));
      expect(said.filter((line) => !line.includes('is not executable: No such file'))).toEqual([]);
      const args = ['security', '--offline=true', '--threshold=25', file];
      const { status, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
      expect([status, stdout.split('\n').find((line) => line.includes('Overall'))]).toEqual([
        0,
        expect.stringMatching(/: [0-2]\.\d OK/),
      ]);
    },
  );
});
