// Whom the server runs as. PostgreSQL refuses root; so under root it gets another user, and, where that user cannot enter
// the folders above its files (a home or a data directory of mode 0700), the one capability that lets it through.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, lchownSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface UserIds {
  readonly uid: number;
  readonly gid: number;
}

export interface RunAs extends UserIds {
  /** Programs to put before the command, and the ids that Node.js sets where none is needed. */
  readonly prefix: readonly string[];
  readonly spawnIds: Partial<UserIds>;
}

/** The first that exists: one made for us, one made for databases, the one that owns nothing. */
const USERS = ['tunnel', 'postgres', 'nobody'];

/** Those of capabilities(7) that open a closed folder, by bit; the one that can only read comes first. */
const OPENERS = [
  { bit: 2n, name: 'dac_read_search' },
  { bit: 1n, name: 'dac_override' },
];
/** The one that may set how capabilities are treated. */
const SETPCAP = 8n;

/** `home` is the folder that decides by its owner, `paths` must be entered. Throws an Error that says why it cannot be. */
export const chooseRunAs = (home: string, paths: readonly string[]): RunAs => {
  const ownUid = process.getuid?.() ?? 0;
  const ownGid = process.getgid?.() ?? 0;
  if (ownUid !== 0) return { uid: ownUid, gid: ownGid, prefix: [], spawnIds: {} };
  const user = ownerOf(home) ?? firstUser();
  const { uid, gid } = user;
  if (paths.every((path) => canEnter(path, user))) return { uid, gid, prefix: [], spawnIds: { uid, gid } };
  return { uid, gid, prefix: setprivPrefix(uid, gid), spawnIds: {} };
};

/** Gives the folder and all in it to that user, unless it is theirs already. */
export const giveTo = (path: string, user: RunAs): void => {
  const { uid, gid } = user;
  if (process.getuid?.() !== 0 || lstatSync(path).uid === uid) return;
  lchownSync(path, uid, gid);
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) lchownSync(join(path, name), uid, gid);
};

/** A server that ran here before keeps its user, as long as the system still knows it. */
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
  // access(2) forgets the capabilities of other users than root unless it is told not to; PostgreSQL asks it for its programs.
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
