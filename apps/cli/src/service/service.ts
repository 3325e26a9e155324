// The actions of `tunnel service`: creates a systemd unit for the client, and controls the unit through the service manager.
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { isSea } from 'node:sea';
import { type ClientConfig, loadClientConfig } from '@tunnel/config/client';
import { pathFrom } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { defaultConfigPath } from '../config/file.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';
import { misuse } from '../io/problem-report.ts';
import { type ServiceKind, Systemd } from './systemd.ts';
import { UNIT_MARK, unitText } from './unit.ts';

/** Time that `tunnel service` waits for a client to become ready. If the server is unreachable, the client has already exited by then. */
const SERVICE_START_TIMEOUT_MS = 45_000;

export type ServiceAction = 'install' | 'uninstall' | 'start' | 'stop' | 'status' | 'logs';

export interface ServiceFlags {
  readonly system?: boolean;
  readonly name?: string;
  readonly config?: string;
  readonly print?: boolean;
  readonly lines: number;
  readonly follow?: boolean;
}

export const runService = async (action: ServiceAction, flags: ServiceFlags, io: Io): Promise<ExitCode> => {
  const kind: ServiceKind = flags.system === true ? 'system' : 'user';
  const unit = flags.name === undefined ? 'tunnel.service' : `tunnel-${flags.name}.service`;
  const config = flags.config === undefined ? defaultConfigPath(io) : pathFrom(io.cwd, flags.config, io.home);
  const service: Service = {
    kind,
    unit,
    config,
    path: join(unitFolder(kind, io), unit),
    manager: new Systemd(kind, io),
  };
  if (flags.print === true) {
    io.stdout.write(textOf(service, ownerOf(config, kind, io), io));
    return EXIT.endedAsAsked;
  }
  if (action === 'install') return install(service, io);
  await service.manager.ensureRunning();
  if (action === 'uninstall') return uninstall(service, io);
  if (!existsSync(service.path)) {
    throw new Fault('CLIENT_SERVICE', { reason: `${unit} is not installed (${service.path})` });
  }
  if (action === 'start') return start(service, io, 'start');
  if (action === 'status') {
    await service.manager.showStatus(unit);
    return (await service.manager.isActive(unit)) ? EXIT.endedAsAsked : EXIT.unexpected;
  }
  if (action === 'logs') {
    await service.manager.showLogs(unit, { lines: flags.lines, follow: flags.follow === true });
    return EXIT.endedAsAsked;
  }
  await service.manager.call('stop', unit);
  io.stdout.write(`Stopped ${unit}.\n`);
  return EXIT.endedAsAsked;
};

interface Service {
  readonly kind: ServiceKind;
  readonly unit: string;
  readonly path: string;
  readonly config: string;
  readonly manager: Systemd;
}

const install = async (service: Service, io: Io): Promise<ExitCode> => {
  const { kind, unit, path, manager } = service;
  await manager.ensureRunning();
  refuseForeign(path);
  const owner = ownerOf(service.config, kind, io);
  checkConfig(service.config, owner, io);
  makeFolders(service, owner, io);
  writePrivateFile(path, textOf(service, owner, io), { mode: 0o644 });
  await manager.call('daemon-reload');
  await manager.call('enable', '--quiet', unit);
  io.stdout.write(`Saved ${path}. The service starts with ${kind === 'system' ? 'the system' : 'your session'}.\n`);
  if (kind === 'user' && !existsSync(join('/var/lib/systemd/linger', owner.name ?? ''))) {
    io.stdout.write('  The service stops when you log out. To keep it running: loginctl enable-linger\n');
  }
  // Restarts a running service, so that the new unit takes effect.
  return start(service, io, 'restart');
};

const start = async ({ unit, kind, manager }: Service, io: Io, verb: 'start' | 'restart'): Promise<ExitCode> => {
  const outcome = await manager.start(verb, unit, SERVICE_START_TIMEOUT_MS);
  if (outcome === 'ready') {
    io.stdout.write(`${unit} is ready: all tunnels are open.\n`);
    return EXIT.endedAsAsked;
  }
  const what = outcome === 'failed' ? 'did not start' : 'is running, but not all tunnels are open yet';
  const also = kind === 'system' ? ' --system' : '';
  const name = unit === 'tunnel.service' ? '' : ` --name ${unit.slice('tunnel-'.length, -'.service'.length)}`;
  io.stderr.write(`tunnel: ${unit} ${what}\n  See why: tunnel service logs${also}${name}\n`);
  return EXIT.unexpected;
};

const uninstall = async ({ unit, path, manager }: Service, io: Io): Promise<ExitCode> => {
  if (!existsSync(path)) {
    io.stdout.write(`${unit} is not installed.\n`);
    return EXIT.endedAsAsked;
  }
  refuseForeign(path);
  await manager.call('disable', '--now', '--quiet', unit);
  try {
    rmSync(path);
    rmSync(`${path}.d`, { recursive: true, force: true });
  } catch (error) {
    throw fileFault(path, error);
  }
  await manager.call('daemon-reload');
  await manager.resetFailed(unit);
  io.stdout.write(`Stopped and removed ${unit}.\n`);
  return EXIT.endedAsAsked;
};

const unitFolder = (kind: ServiceKind, io: Io): string => {
  if (kind === 'system') return '/etc/systemd/system';
  return join(io.env['XDG_CONFIG_HOME'] || join(io.home, '.config'), 'systemd', 'user');
};

/** Rejects a unit that was written by hand. Only units created by `tunnel service` are replaced or removed. */
const refuseForeign = (path: string): void => {
  if (!existsSync(path) || readFileSync(path, 'utf8').startsWith(UNIT_MARK)) return;
  throw new Fault('CLIENT_SERVICE', {
    reason: `${path} was not created by tunnel: choose another --name, or remove the file`,
  });
};

interface Owner {
  readonly uid: number;
  readonly name: string | null;
  readonly home: string;
}

/**
 * Returns the user of the service. A system service runs as the owner of its config file: this user can read the file and the key beside
 * it, and no other user needs to.
 */
const ownerOf = (config: string, kind: ServiceKind, io: Io): Owner => {
  const self = whoWeAre();
  const uid = kind === 'system' ? (uidOf(config) ?? 0) : self.uid;
  if (uid === self.uid) return { uid, name: self.username, home: io.home };
  const entry = passwdEntry(uid);
  return { uid, name: entry?.[0] ?? String(uid), home: entry?.[5] ?? '/' };
};

/** Returns the current user. In a container, the uid may have no user name. */
const whoWeAre = (): { readonly uid: number; readonly username: string } => {
  try {
    return userInfo();
  } catch {
    const uid = process.getuid?.() ?? -1;
    return { uid, username: String(uid) };
  }
};

/** Returns the uid of a file's owner, or null if the file does not exist. */
const uidOf = (file: string): number | null => {
  try {
    return statSync(file).uid;
  } catch (error) {
    // Does not use `throwIfNoEntry`, because newer Node.js versions take a path through a file for a missing file.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw fileFault(file, error);
  }
};

const passwdEntry = (uid: number): string[] | undefined => {
  if (!existsSync('/etc/passwd')) return undefined;
  const entries = readFileSync('/etc/passwd', 'utf8').split('\n');
  return entries.map((line) => line.split(':')).find((fields) => fields[2] === String(uid));
};

const textOf = (service: Service, owner: Owner, io: Io): string => {
  const { kind, unit, config } = service;
  // A single executable is Node.js and the program in one file.
  const program = isSea() ? [process.execPath] : [process.execPath, process.argv[1] ?? ''];
  const user = kind === 'system' && owner.uid !== 0 ? owner.name : null;
  const writable = foldersOf(service, owner, io);
  return unitText({ kind, unit, config, user, writable, program });
};

/** Returns the folders that a client writes to: the socket of its agent, the state for a restart, and the log. */
const foldersOf = ({ config }: Service, owner: Owner, io: Io): string[] => {
  const own = [join(owner.home, '.tunnel'), join(dirname(config), 'state')];
  const log = existsSync(config) ? logFolder(config, owner, io) : null;
  return [...own, ...(log === null ? [] : [log])];
};

const logFolder = (config: string, owner: Owner, io: Io): string | null => {
  try {
    const { log_file: file } = loadClientConfig({ file: config, env: io.env, home: owner.home });
    return file === undefined ? null : dirname(pathFrom(dirname(config), file, owner.home));
  } catch {
    // `checkConfig` reports an invalid config file when the service is installed.
    return null;
  }
};

/** Checks the config file without the environment variables of this shell, because the service does not have them. */
const checkConfig = (config: string, owner: Owner, io: Io): void => {
  const values: ClientConfig = loadClientConfig({ file: config, env: {}, home: owner.home });
  if (Object.keys(values.tunnels).length === 0) throw misuse(`no tunnels in ${config}. Add one under \`tunnels:\`.`);
  if (values.auth_token !== undefined || values.auth_token_file !== undefined) return;
  const seen = (io.env['TUNNEL_API_KEY'] ?? '') === '' ? '' : ' (services do not inherit TUNNEL_API_KEY)';
  throw misuse(`no API key in ${config}${seen}. Run \`tunnel login\`, or set \`auth_token_file\` there.`);
};

/** Creates the writable folders of a system service for their owner. The sandboxed service has no permission to create the folders. */
const makeFolders = (service: Service, owner: Owner, io: Io): void => {
  if (service.kind === 'user') return;
  for (const folder of foldersOf(service, owner, io).slice(0, 2)) {
    if (existsSync(folder)) continue;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chownSync(folder, owner.uid, -1);
  }
};
