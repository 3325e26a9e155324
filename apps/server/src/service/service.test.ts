// `tunnel-server service` with fake programs that record the calls: order, and files left on disk.
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { factsOf } from '../commands/service-command.ts';
import { reportProblem } from '../process/problem-report.ts';
import { printedUnit, runService, type ServiceAction, type ServiceHost } from './service.ts';

let root: TemporaryDirectory;
let config: string;
let unit: string;
beforeEach(async () => {
  root = await temporaryDirectory();
  config = join(root.path, 'server.toml');
  unit = join(root.path, 'units/tunnel-server.service');
  mkdirSync(join(root.path, 'units'));
  mkdirSync(join(root.path, 'packaged'));
  mkdirSync(join(root.path, 'bin'));
  writeFileSync(config, `data_dir = "${root.path}/data"\n`, { mode: 0o640 });
  program(
    'id',
    `[ -e '${root.path}/user' ] || exit 1; [ "$1" = -u ] && echo ${process.getuid?.()} || echo ${process.getgid?.()}`,
  );
  program('useradd', `touch '${root.path}/user'`);
});
afterEach(() => root.close());

const program = (name: string, script = ''): void => {
  const file = join(root.path, 'bin', name);
  writeFileSync(file, `#!/bin/sh\necho "${name} $*" >> '${root.path}/called'\n${script}\n`);
  chmodSync(file, 0o755);
};

const calls = (): string[] =>
  readFileSync(join(root.path, 'called'), 'utf8')
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('id '));

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const service = (action: ServiceAction, { name, isRoot = true }: { name?: string; isRoot?: boolean } = {}): Ended => {
  let out = '';
  let err = '';
  const host: ServiceHost = {
    env: { PATH: `${root.path}/bin:/usr/bin:/bin` },
    isRoot,
    unitFolder: join(root.path, 'units'),
    packageFolders: [join(root.path, 'packaged')],
    write: (text) => (out += text),
    writeError: (text) => (err += text),
  };
  const flags = { config, user: 'tunnel', ...(name === undefined ? {} : { name }) };
  try {
    return { code: runService(action, name, host, () => factsOf(flags, {})), out, err };
  } catch (error) {
    const code = reportProblem(error, { write: (text: string) => (err += text) }, {});
    return { code, out, err };
  }
};

describe('`tunnel-server service`', () => {
  it('install creates the user, the data directory and the unit, and starts the service; a second install changes nothing', () => {
    program('systemctl');
    const installed = service('install');
    expect(installed).toMatchObject({ code: 0, err: '' });
    expect(installed.out).toContain('tunnel-server.service is running.');
    const started = [
      'systemctl show --property=Version',
      'systemctl daemon-reload',
      'systemctl enable --quiet tunnel-server.service',
      'systemctl restart tunnel-server.service',
    ];
    const useradd = `useradd --system --user-group --no-create-home --home-dir ${root.path}/data --shell /usr/sbin/nologin tunnel`;
    expect(calls()).toEqual([started[0], useradd, ...started.slice(1)]);
    expect(statSync(join(root.path, 'data')).mode & 0o777).toBe(0o700);
    expect(statSync(config).mode & 0o777).toBe(0o640);
    const text = readFileSync(unit, 'utf8');
    expect(text).toContain(` stack --config ${config}\nUser=tunnel\nReadWritePaths=${root.path}/data\n`);
    expect(service('install').code).toBe(0);
    expect(calls().slice(5)).toEqual(started);
    expect(readFileSync(unit, 'utf8')).toBe(text);
  });

  it('install creates the folder for backups, which the service can write to', () => {
    program('systemctl');
    const backupDir = join(root.path, 'backups');
    writeFileSync(config, `data_dir = "${root.path}/data"\n[backup]\ndir = "${backupDir}"\n`);
    expect(service('install')).toMatchObject({ code: 0, err: '' });
    expect(statSync(backupDir).mode & 0o777).toBe(0o700);
    expect(readFileSync(unit, 'utf8')).toContain(`\nReadWritePaths=${backupDir}\n`);
  });

  it('install prints the link for the first account', () => {
    program(
      'systemctl',
      `[ "$1" != restart ] || echo https://t.test/app/signup > '${root.path}/data/first-account-link'`,
    );
    expect(service('install').out).toContain('Create the first account: https://t.test/app/signup\n');
  });

  it('uninstall stops the service and keeps config, data and user', () => {
    program('systemctl');
    service('install');
    expect(service('uninstall').code).toBe(0);
    expect(calls().slice(-4)).toEqual([
      'systemctl show --property=Version',
      'systemctl disable --now --quiet tunnel-server.service',
      'systemctl daemon-reload',
      'systemctl reset-failed tunnel-server.service',
    ]);
    expect([unit, config, join(root.path, 'data')].map((path) => existsSync(path))).toEqual([false, true, true]);
    expect(service('uninstall')).toMatchObject({ code: 0, out: 'tunnel-server.service is not installed.\n' });
  });

  it('uninstall keeps the drop-in files of the operator and says so, and a new install uses them again', () => {
    program('systemctl');
    service('install');
    mkdirSync(`${unit}.d`);
    writeFileSync(`${unit}.d/override.conf`, '[Service]\nMemoryMax=1G\n');
    expect(service('uninstall').out).toMatch(/\nYour drop-in files are kept, too: .*tunnel-server\.service\.d\n$/);
    expect(existsSync(`${unit}.d/override.conf`)).toBe(true);
    expect(service('install').code).toBe(0);
  });

  it('install creates a data directory whose parents the user can enter, and keeps an existing one', () => {
    program('systemctl');
    const dataDir = join(root.path, 'srv/hatchway/data');
    writeFileSync(config, `data_dir = "${dataDir}/../data"\n`);
    expect(service('install').code).toBe(0);
    const modes = ['srv', 'srv/hatchway', 'srv/hatchway/data'].map(
      (path) => statSync(join(root.path, path)).mode & 0o777,
    );
    expect(modes).toEqual([0o755, 0o755, 0o700]);
    expect(readFileSync(unit, 'utf8')).toContain(`\nReadWritePaths=${dataDir}\n`);
    chmodSync(dataDir, 0o750);
    service('install');
    expect(statSync(dataDir).mode & 0o777).toBe(0o750);
  });

  it.each(['show', 'daemon-reload', 'enable', 'restart'])(
    'install ends with one problem when `systemctl %s` fails, and a second install works',
    (step) => {
      program('systemctl', `[ "$1" != ${step} ] || { echo "Failed: $1" >&2; exit 1; }`);
      const failed = service('install');
      expect([failed.code, failed.err.split('\n')[0]]).toEqual(
        step === 'restart'
          ? [1, 'tunnel-server: tunnel-server.service did not start']
          : [2, expect.stringMatching(`^tunnel-server: .*Failed: ${step}`)],
      );
      expect(failed.out).not.toContain('is running');
      program('systemctl');
      expect(service('install')).toMatchObject({ code: 0, err: '' });
    },
  );

  it.each(['show', 'disable'])('uninstall keeps the unit when `systemctl %s` fails, and can be repeated', (step) => {
    program('systemctl');
    service('install');
    program('systemctl', `[ "$1" != ${step} ] || { echo "Failed: $1" >&2; exit 1; }`);
    expect(service('uninstall')).toMatchObject({ code: 2, out: '' });
    expect(existsSync(unit)).toBe(true);
    program('systemctl');
    expect(service('uninstall').code).toBe(0);
    expect(existsSync(unit)).toBe(false);
  });

  it('install ends with one problem when the user cannot be created, and changes nothing else', () => {
    program('systemctl');
    program('useradd', 'echo "useradd: group tunnel exists" >&2; exit 9');
    const { code, err } = service('install');
    expect([code, err.split('\n').length]).toEqual([2, 2]);
    expect(err).toContain('failed: useradd: group tunnel exists');
    expect(existsSync(unit)).toBe(false);
  });

  it('an edge with a platform elsewhere is installed as an edge, beside another server under a name', () => {
    program('systemctl');
    writeFileSync(
      config,
      `data_dir = "/var/lib/tunnel-eu"\n[server]\nplatform_url = "https://t.test"\nplatform_credential_file = "/etc/tunnel/credential"\n`,
    );
    expect(service('install', { name: 'eu' }).code).toBe(0);
    const text = readFileSync(join(root.path, 'units/tunnel-server-eu.service'), 'utf8');
    expect(text).toContain(` edge --config ${config}\n`);
    expect(text).toContain('\nStateDirectory=tunnel-eu\n');
    expect(text).toContain('systemctl edit tunnel-server-eu.service');
  });

  it('install exits with 1 and names the log when the service does not start', () => {
    program('systemctl', 'test "$1" != restart');
    expect(service('install')).toMatchObject({
      code: 1,
      err: 'tunnel-server: tunnel-server.service did not start\n  To see the reason: sudo journalctl -u tunnel-server.service -n 50\n',
    });
  });

  it.each(['install', 'uninstall', 'status'] as const)('%s without systemd exits with 2 and one line', (action) => {
    program('systemctl', 'echo "System has not been booted with systemd as init system" >&2; exit 1');
    const { code, err } = service(action);
    expect(code).toBe(2);
    expect(err).toMatch(/^tunnel-server: systemd is not running \(System has not been booted [^\n]+\n$/);
    expect(existsSync(unit)).toBe(false);
  });

  it('install and uninstall need root and leave a unit alone that was written by hand', () => {
    program('systemctl');
    expect(service('install', { isRoot: false })).toMatchObject({ code: 2, out: '' });
    writeFileSync(unit, '[Service]\nExecStart=/bin/true\n');
    expect(service('install').code).toBe(2);
    expect(service('uninstall').err).toContain('was not created by tunnel-server');
    expect(readFileSync(unit, 'utf8')).toBe('[Service]\nExecStart=/bin/true\n');
  });

  it('install refuses wrong settings and a relative data directory before any change', () => {
    program('systemctl');
    writeFileSync(config, 'surprise = 1\n');
    expect(service('install').err).toContain('unknown key `surprise`');
    writeFileSync(config, '[server]\ndomain = "localhost"\n');
    expect(service('install')).toMatchObject({ code: 2 });
    expect(service('install').err).toContain('data_dir must be an absolute path for a service');
    expect([existsSync(unit), existsSync(join(root.path, 'user'))]).toEqual([false, false]);
  });

  it('the unit of a package is enabled, and replaced only if it does not fit', () => {
    program('systemctl');
    writeFileSync(join(root.path, 'packaged/tunnel-server.service'), '');
    writeFileSync(config, 'data_dir = "/var/lib/tunnel"\n');
    const flags = { config, user: 'tunnel' };
    const standard = { ...factsOf(flags, {}), isStandard: true };
    const host = {
      env: { PATH: `${root.path}/bin:/usr/bin:/bin` },
      isRoot: true,
      write: () => {},
      writeError: () => {},
    };
    const folders = { unitFolder: join(root.path, 'units'), packageFolders: [join(root.path, 'packaged')] };
    expect(runService('install', undefined, { ...host, ...folders }, () => standard)).toBe(0);
    expect(existsSync(unit)).toBe(false);
    expect(calls()).toContain('systemctl enable --quiet tunnel-server.service');
    expect(runService('install', undefined, { ...host, ...folders }, () => ({ ...standard, isStandard: false }))).toBe(
      0,
    );
    expect(existsSync(unit)).toBe(true);
    expect(runService('uninstall', undefined, { ...host, ...folders }, () => standard)).toBe(0);
    expect(existsSync(join(root.path, 'packaged/tunnel-server.service'))).toBe(true);
  });

  it('status exits with 1 for a stopped service, and with 2 for a service that is not installed', () => {
    program('systemctl', '[ "$1" != status ] || echo shown; test "$1" != is-active');
    expect(service('status', { isRoot: false })).toMatchObject({ code: 1, out: 'shown\n' });
    program('systemctl', '[ "$1" != status ] || exit 4');
    expect(service('status').code).toBe(2);
  });
});

it('--print needs no config file, and is not influenced by variables of the shell', () => {
  const flags = { config: '/nowhere/server.toml', user: 'tunnel', print: true };
  expect(printedUnit(factsOf(flags, {}))).toContain('StateDirectory=tunnel\n');
  const env = { TUNNEL_DATA_DIR: '/elsewhere' };
  expect(printedUnit(factsOf({ ...flags, config }, env))).toContain(`ReadWritePaths=${root.path}/data\n`);
});
