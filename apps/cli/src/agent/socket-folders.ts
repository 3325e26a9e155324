// Where the sockets of running clients are: one folder of three, for their owner alone; whose a socket is; and which of them nobody
// listens on any more.
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isProcessAlive } from '@tunnel/runtime';
import type { Io } from '../io/io.ts';

/** the longest path of a Unix socket that every system takes, with room for the longest pid */
const AGENT_SOCKET_PATH_MAX_BYTES = 100;
/** sockets that a command asks; whatever else is in the folder was not put there by clients */
const AGENT_SOCKETS_MAX = 256;

type Surroundings = Pick<Io, 'env' | 'home'>;

interface Folder {
  readonly path: string;
  /** What must be there before: nothing is made above it. */
  readonly above: string;
  /** In a folder where everybody may write, one that others could read was not made by us. */
  readonly isShared: boolean;
}

const ownUid = (): number => process.getuid?.() ?? -1;

/** In the order in which they are tried. */
const foldersOf = ({ env, home }: Surroundings): Folder[] => {
  const runtime = env['XDG_RUNTIME_DIR'] ?? '';
  const temporary = env['TMPDIR'] ?? tmpdir();
  return [
    ...(home === '' ? [] : [{ path: join(home, '.tunnel', 'run'), above: home, isShared: false }]),
    ...(runtime === '' ? [] : [{ path: join(runtime, 'tunnel'), above: runtime, isShared: false }]),
    { path: join(temporary, `tunnel-${ownUid()}`), above: temporary, isShared: true },
  ];
};

/** Makes the folder where it is missing. Throws where it cannot be used, or is not ours alone. */
const prepare = ({ path, above, isShared }: Folder): void => {
  // A home that is not there is not made: it is that of an account that has none.
  if (!statSync(above).isDirectory()) throw new Error(`${above} is not a folder`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = ownFolder(path);
  if (uid !== ownUid()) throw new Error(`${path} belongs to another user`);
  if ((mode & 0o077) === 0) return;
  if (isShared) throw new Error(`other users can access ${path}`);
  chmodSync(path, 0o700);
};

/** A link would lead wherever somebody else wants. */
const ownFolder = (path: string): { uid: number; mode: number } => {
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a folder`);
  return found;
};

export interface SocketChoice {
  /** Where a client of this process may listen, best first. */
  readonly paths: readonly string[];
  /** Why the others cannot be used. */
  readonly problems: string[];
}

/** No client is without one because of its pid: the path is judged by its own length. */
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

/** Whether a client of this user listens, or may listen some day, at this path. It is absolute and has no symbolic links. */
export const isAgentSocketPath = (path: string, around: Surroundings): boolean =>
  SOCKET_NAME.test(basename(path)) && foldersOf(around).some((folder) => realFolder(folder.path) === dirname(path));

const realFolder = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

/** Of all three folders. What somebody else could have put there is not looked at. */
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

/** Whether somebody accepts connections there. One that is there and does not answer in words is somebody, too. */
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
 * Nobody listened there. A client that is about to listen lives already, and one in another container shares our folder and not our
 * processes: so it goes only when its pid is dead, and nobody listens still.
 */
export const removeStale = async ({ pid, path }: FoundSocket): Promise<void> => {
  if (isProcessAlive(pid) || (await isListening(path))) return;
  try {
    rmSync(path, { force: true });
  } catch {
    // In a folder that cannot be written, or not a socket at all: it stays, and nobody is told of a client there.
  }
};
