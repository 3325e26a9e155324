// The folders for sockets of running clients: up to three candidates, each accessible only to its owner. Finds the sockets and removes
// sockets without a listener.
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isProcessAlive } from '@tunnel/runtime';
import type { Io } from '../io/io.ts';

/** Maximum length of a socket path in bytes, accepted by every operating system. */
const AGENT_SOCKET_PATH_MAX_BYTES = 100;
/** Maximum sockets queried by a command. Further files in the folder cannot come from clients. */
const AGENT_SOCKETS_MAX = 256;

type Surroundings = Pick<Io, 'env' | 'home'>;

interface Folder {
  readonly path: string;
  /** Parent folder, which must exist. Missing parent folders are not created. */
  readonly above: string;
  /**
   * True if all users can write to the parent folder. A socket folder readable by other users was then not created by a client, and is
   * rejected.
   */
  readonly isShared: boolean;
}

const ownUid = (): number => process.getuid?.() ?? -1;

/** Returns the candidate folders for sockets in the order in which they are tried. */
const foldersOf = ({ env, home }: Surroundings): Folder[] => {
  const runtime = env['XDG_RUNTIME_DIR'] ?? '';
  const temporary = env['TMPDIR'] ?? tmpdir();
  return [
    ...(home === '' ? [] : [{ path: join(home, '.tunnel', 'run'), above: home, isShared: false }]),
    ...(runtime === '' ? [] : [{ path: join(runtime, 'tunnel'), above: runtime, isShared: false }]),
    { path: join(temporary, `tunnel-${ownUid()}`), above: temporary, isShared: true },
  ];
};

/** Creates a socket folder if it is missing. Throws if the folder is unusable, or not exclusive to this user. */
const prepare = ({ path, above, isShared }: Folder): void => {
  // A missing home folder is not created, because it belongs to an account without a home.
  if (!statSync(above).isDirectory()) throw new Error(`${above} is not a folder`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = ownFolder(path);
  if (uid !== ownUid()) throw new Error(`${path} belongs to another user`);
  if ((mode & 0o077) === 0) return;
  if (isShared) throw new Error(`other users can access ${path}`);
  chmodSync(path, 0o700);
};

/** Returns owner and mode of a folder. Throws for a symbolic link, because another user could choose the link's target. */
const ownFolder = (path: string): { uid: number; mode: number } => {
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a folder`);
  return found;
};

export interface SocketChoice {
  /** Paths where a client of this process can listen, in order of preference. */
  readonly paths: readonly string[];
  /** Reasons why the remaining folders cannot be used. */
  readonly problems: string[];
}

/**
 * Returns the usable socket paths for a client. The length limit applies to the client's actual path, so that no folder is ruled out
 * because of a longer pid.
 */
export const choosePaths = (around: Surroundings, owner: number | string): SocketChoice => {
  const paths: string[] = [];
  const problems: string[] = [];
  for (const folder of foldersOf(around)) {
    const path = join(folder.path, `${owner}.sock`);
    try {
      if (Buffer.byteLength(path) > AGENT_SOCKET_PATH_MAX_BYTES) {
        throw new Error(`the path ${folder.path} is too long for a socket`);
      }
      prepare(folder);
      paths.push(path);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  return { paths, problems };
};

export interface FoundSocket {
  readonly pid: number;
  readonly path: string;
}

const SOCKET_NAME = /^(\d{1,10})\.sock$/;

/**
 * Returns true if the path is a socket path of this user's clients, whether or not a client listens there now. `path` must be absolute
 * and free of symbolic links.
 */
export const isAgentSocketPath = (path: string, around: Surroundings): boolean =>
  SOCKET_NAME.test(basename(path)) && foldersOf(around).some((folder) => realFolder(folder.path) === dirname(path));

const realFolder = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

/** Finds the sockets in all three folders. A folder is skipped if another user owns it or has access to it. */
export const findSockets = (around: Surroundings): FoundSocket[] =>
  foldersOf(around)
    .flatMap(({ path }) => readFolder(path))
    .slice(0, AGENT_SOCKETS_MAX);

const readFolder = (path: string): FoundSocket[] => {
  try {
    const { uid, mode } = ownFolder(path);
    if (uid !== ownUid() || (mode & 0o077) !== 0) return [];
    return readdirSync(path).flatMap((name) => {
      const pid = SOCKET_NAME.exec(name)?.[1];
      return pid === undefined ? [] : [{ pid: Number(pid), path: join(path, name) }];
    });
  } catch {
    return [];
  }
};

/** Returns true if a process accepts connections on the socket, even if the process sends no valid response. */
export const isListening = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });

/**
 * Removes the socket of a dead client. The pid is checked first, because a client about to listen is already running. The socket is
 * checked again, because a client in another container can share the folder but not the process list.
 */
export const removeStale = async ({ pid, path }: FoundSocket): Promise<void> => {
  if (isProcessAlive(pid) || (await isListening(path))) return;
  try {
    rmSync(path, { force: true });
  } catch {
    // The folder is not writable, or the path is not a socket. The file stays, and no client is reported for it.
  }
};
