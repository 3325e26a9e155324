// The actions of `tunnel-server service`: creates the user and the systemd unit of a server, and controls the unit.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { readFirstAccountLink, writeAtomicSync } from '@tunnel/runtime';
import { makeDirectory } from '../data-dir/data-dir.ts';
import { UNIT_MARK, type UnitFacts, unitName, unitText } from './unit.rules.ts';
import { unitTemplate } from './unit-template.ts';

export type ServiceAction = 'install' | 'uninstall' | 'status';

/** Longer than TimeoutStartSec of the unit, and bounded in case the service manager does not respond. */
const PROGRAM_TIMEOUT_MS = 180_000;
const OUTPUT_MAX_BYTES = 1024 * 1024;

/** The machine on which the service is installed. */
export interface ServiceHost {
  readonly env: NodeJS.ProcessEnv;
  readonly isRoot: boolean;
  /** Folder for units of the operator: /etc/systemd/system. */
  readonly unitFolder: string;
  /** Folders for units of installed packages. */
  readonly packageFolders: readonly string[];
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
}

export interface ServiceFacts extends UnitFacts {
  readonly name: string | undefined;
  /** Whether user, config file and data directory are the defaults, as in the unit of a package. */
  readonly isStandard: boolean;
}

/** Returns the unit of a server. Throws a fault if a path cannot be written into a unit file. */
export const printedUnit = (facts: ServiceFacts): string => {
  if (!isAbsolute(facts.dataDir)) {
    throw refusal(`data_dir must be an absolute path for a service, such as /var/lib/tunnel, not ${facts.dataDir}`);
  }
  if (facts.backupDir !== '' && !isAbsolute(facts.backupDir)) {
    throw refusal(`backup.dir must be an absolute path for a service, such as /srv/backups, not ${facts.backupDir}`);
  }
  const unit = unitText(unitTemplate(), facts);
  if ('text' in unit) return unit.text.replace('systemctl edit UNIT', `systemctl edit ${unitName(facts.name)}`);
  throw refusal(`a unit file cannot contain ${JSON.stringify(unit.refused)}: use letters, digits and @:,.+/=_- only`);
};

/** Runs an action and returns the exit code. `facts` are read only for `install`, because the others need no config file. */
export const runService = (
  action: ServiceAction,
  name: string | undefined,
  host: ServiceHost,
  facts: () => ServiceFacts,
): number => {
  const unit = unitName(name);
  const path = join(host.unitFolder, unit);
  ensureSystemd(host);
  if (action === 'status') return showStatus(host, unit, path);
  if (!host.isRoot) throw refusal(`only root can ${action} a service: run the command with sudo`);
  refuseForeign(path);
  return action === 'install' ? install(host, unit, path, facts()) : uninstall(host, unit, path);
};

const install = (host: ServiceHost, unit: string, path: string, facts: ServiceFacts): number => {
  const text = printedUnit(facts);
  createUser(host, facts.user, facts.dataDir);
  const { uid, gid } = idsOf(host, facts.user);
  if (!facts.dataDir.startsWith('/var/lib/')) makeFolder(facts.dataDir, uid, gid);
  if (facts.backupDir !== '') makeFolder(facts.backupDir, uid, gid);
  shareConfig(facts.config, gid);
  const packaged = packagedUnit(host, unit);
  // A unit of a package is renewed by upgrades of the package, so it is replaced only if it does not fit.
  const isNeeded = packaged === undefined || !facts.isStandard || existsSync(path);
  if (isNeeded) changing(path, () => writeAtomicSync(path, text, { mode: 0o644, flush: true }));
  call(host, 'systemctl', 'daemon-reload');
  call(host, 'systemctl', 'enable', '--quiet', unit);
  host.write(`${isNeeded ? `Saved ${path}` : `Enabled ${packaged}`}. The service starts with the system.\n`);
  // Restarts a running service, so that the new unit and the config file take effect.
  if (run(host, 'systemctl', ['restart', unit]).code !== 0) {
    host.writeError(`tunnel-server: ${unit} did not start\n  To see the reason: sudo journalctl -u ${unit} -n 50\n`);
    return 1;
  }
  host.write(`${unit} is running.\n`);
  const link = readFirstAccountLink(facts.dataDir);
  if (link !== null) host.write(`Create the first account: ${link}\n`);
  return 0;
};

const packagedUnit = (host: ServiceHost, unit: string): string | undefined =>
  host.packageFolders.map((folder) => join(folder, unit)).find((file) => existsSync(file));

const uninstall = (host: ServiceHost, unit: string, path: string): number => {
  if (!existsSync(path) && packagedUnit(host, unit) === undefined) {
    host.write(`${unit} is not installed.\n`);
    return 0;
  }
  call(host, 'systemctl', 'disable', '--now', '--quiet', unit);
  changing(path, () => rmSync(path, { force: true }));
  call(host, 'systemctl', 'daemon-reload');
  // Fails for a unit that has not failed.
  run(host, 'systemctl', ['reset-failed', unit]);
  host.write(`Stopped and disabled ${unit}. The config file, the data directory and the user are kept.\n`);
  // Drop-in files are written by the operator, and apply again after the next install.
  if (existsSync(`${path}.d`)) host.write(`Your drop-in files are kept, too: ${path}.d\n`);
  return 0;
};

/** Prints the status. Exit code 1 if the service is not running. A unit can also come from an installed package. */
const showStatus = (host: ServiceHost, unit: string, path: string): number => {
  const shown = run(host, 'systemctl', ['status', '--no-pager', '--lines=0', unit]);
  // systemctl exits with 4 for an unknown unit.
  if (shown.code === 4) throw refusal(`${unit} is not installed (${path})`);
  host.write(shown.out);
  return run(host, 'systemctl', ['is-active', '--quiet', unit]).code === 0 ? 0 : 1;
};

/** Rejects a unit that was written by hand. */
const refuseForeign = (path: string): void => {
  if (!existsSync(path) || readFileSync(path, 'utf8').startsWith(UNIT_MARK)) return;
  throw refusal(`${path} was not created by tunnel-server: choose another --name, or remove the file`);
};

const createUser = (host: ServiceHost, user: string, home: string): void => {
  if (run(host, 'id', ['-u', user]).code === 0) return;
  const flags = ['--system', '--user-group', '--no-create-home', '--home-dir', home, '--shell', '/usr/sbin/nologin'];
  call(host, 'useradd', ...flags, user);
  host.write(`Created the system user ${user}.\n`);
};

const idsOf = (host: ServiceHost, user: string): { readonly uid: number; readonly gid: number } => ({
  uid: Number(call(host, 'id', '-u', user)),
  gid: Number(call(host, 'id', '-g', user)),
});

/**
 * systemd creates the data directory below /var/lib. Elsewhere the directory is created here, for the user only. The user can enter the
 * folders above.
 */
const makeFolder = (dir: string, uid: number, gid: number): void =>
  changing(dir, () => {
    if (existsSync(dir)) return;
    makeDirectory(dir, 0o700, 0o755);
    chownSync(dir, uid, gid);
  });

const OTHERS_READ = 0o004;
const GROUP_READ = 0o040;

/** Lets the user of the service read a config file of root. Other users still cannot read the file, which may contain passwords. */
const shareConfig = (file: string, gid: number): void =>
  changing(file, () => {
    const { uid, mode } = statSync(file);
    if (uid !== 0 || (mode & OTHERS_READ) !== 0) return;
    chownSync(file, -1, gid);
    chmodSync(file, (mode & 0o777) | GROUP_READ);
  });

const ensureSystemd = (host: ServiceHost): void => {
  const { code, err } = run(host, 'systemctl', ['show', '--property=Version']);
  if (code !== 0) throw refusal(`systemd is not running (${firstLine(err)})`);
};

interface ProgramEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const run = (host: ServiceHost, program: string, args: readonly string[]): ProgramEnd => {
  const { error, status, stdout, stderr } = spawnSync(program, args, {
    env: { ...host.env, SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' },
    encoding: 'utf8',
    timeout: PROGRAM_TIMEOUT_MS,
    maxBuffer: OUTPUT_MAX_BYTES,
  });
  const { code: reason, message } = (error ?? {}) as NodeJS.ErrnoException;
  if (reason === 'ENOENT') {
    throw refusal(
      program === 'systemctl' ? 'systemd is not installed: systemctl was not found' : `${program} was not found`,
    );
  }
  return { code: status ?? -1, out: stdout ?? '', err: stderr || (message ?? '') };
};

/** Runs a program that must succeed, and returns its output. */
const call = (host: ServiceHost, program: string, ...args: readonly string[]): string => {
  const { code, out, err } = run(host, program, args);
  if (code !== 0) throw refusal(`${program} ${args.join(' ')} failed: ${firstLine(err) || `exit code ${code}`}`);
  return out.trim();
};

const changing = (file: string, change: () => void): void => {
  try {
    change();
  } catch (error) {
    const { message } = error as Error;
    throw new Fault('CONFIG_FILE_UNWRITABLE', { file, reason: message }, { cause: error });
  }
};

const refusal = (reason: string): Fault => new Fault('CONFIG_SERVICE', { reason });

const firstLine = (text: string): string => (text.trim().split('\n')[0] ?? '').replace(/\.$/, '');
