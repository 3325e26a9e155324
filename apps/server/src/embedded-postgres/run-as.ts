// Chooses the user of the database server. PostgreSQL refuses to run as root. If our process runs as root, the database server runs as a
// different user. If that user cannot enter the folders above its files (a home or data directory with mode 0700), the server also gets
// the single capability that allows access.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, lchownSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface UserIds {
  readonly uid: number;
  readonly gid: number;
}

export interface RunAs extends UserIds {
  /** Program and arguments to put before the command (setpriv). Empty if no capability is needed. */
  readonly prefix: readonly string[];
  readonly spawnIds: Partial<UserIds>;
}

/** Users to run as, in order of preference: a user created for this product, a user for databases, and a user without any files. */
const USERS = ['tunnel', 'postgres', 'nobody'];

/**
 * Capabilities, see capabilities(7), that allow a process to enter closed folders, with their bit. The capability that only permits
 * reading comes first.
 */
const OPENERS = [
  { bit: 2n, name: 'dac_read_search' },
  { bit: 1n, name: 'dac_override' },
];
/** Bit of the capability CAP_SETPCAP, which permits changes of the process's securebits. */
const SETPCAP = 8n;

/**
 * Chooses the user. The owner of the folder `home` is preferred, and the user must be able to enter all `paths`. Throws an Error with the
 * reason if no user is suitable.
 */
export const chooseRunAs = (home: string, paths: readonly string[]): RunAs => {
  const ownUid = process.getuid?.() ?? 0;
  const ownGid = process.getgid?.() ?? 0;
  if (ownUid !== 0) return { uid: ownUid, gid: ownGid, prefix: [], spawnIds: {} };
  const user = ownerOf(home) ?? firstUser();
  const { uid, gid } = user;
  if (paths.every((path) => canEnter(path, user))) return { uid, gid, prefix: [], spawnIds: { uid, gid } };
  return { uid, gid, prefix: setprivPrefix(uid, gid), spawnIds: {} };
};

/** Gives a folder and all its content to a user, unless the user already owns the folder. */
export const giveTo = (path: string, user: RunAs): void => {
  const { uid, gid } = user;
  if (process.getuid?.() !== 0 || lstatSync(path).uid === uid) return;
  lchownSync(path, uid, gid);
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) lchownSync(join(path, name), uid, gid);
};

/**
 * Returns the owner of a folder, so that the database keeps the user of earlier runs. Undefined if the owner is root or unknown to the
 * system.
 */
const ownerOf = (path: string): UserIds | undefined => {
  const { uid, gid } = statSync(path);
  return uid === 0 || idOf('-un', String(uid)) === undefined ? undefined : { uid, gid };
};

const firstUser = (): UserIds => {
  for (const name of USERS) {
    const uid = Number(idOf('-u', name) ?? 0);
    const gid = Number(idOf('-g', name) ?? 0);
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new Error('PostgreSQL does not run as root, and the user `nobody` does not exist');
};

const idOf = (flag: string, user: string): string | undefined => {
  const { status, stdout } = spawnSync('id', [flag, user], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
};

const canEnter = (path: string, user: UserIds): boolean => {
  const { mode, uid, gid } = statSync(path);
  const bit = [uid === user.uid && 0o100, gid === user.gid && 0o010, 0o001].find((entry) => entry !== false) ?? 0;
  if ((mode & bit) === 0) return false;
  return path === dirname(path) || canEnter(dirname(path), user);
};

const setprivPrefix = (uid: number, gid: number): string[] => {
  const setpriv = onPath('setpriv');
  if (setpriv === undefined) throw new Error('PostgreSQL does not run as root, and setpriv (util-linux) is missing');
  const held = effectiveCapabilities();
  const opener = OPENERS.find(({ bit }) => has(held, bit));
  if (opener === undefined)
    throw new Error('PostgreSQL does not run as root, and no other user can access this folder');
  const ids = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  // By default, access(2) ignores the capabilities of users other than root. PostgreSQL calls access(2) for its programs, so the default
  // is turned off.
  const checks = has(held, SETPCAP) ? ['--securebits=+no_setuid_fixup'] : [];
  return [setpriv, ...ids, ...checks, `--inh-caps=+${opener.name}`, `--ambient-caps=+${opener.name}`, '--'];
};

const has = (capabilities: bigint, bit: bigint): boolean => ((capabilities >> bit) & 1n) === 1n;

const effectiveCapabilities = (): bigint => {
  try {
    const hex = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return hex === undefined ? 0n : BigInt(`0x${hex}`);
  } catch {
    return 0n;
  }
};

const onPath = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(':')
    .map((folder) => join(folder, program))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
