// What a tunnel leads to on this machine: an address, a Unix socket, or a folder that the client serves itself.
import { basename } from 'node:path';
import { Fault } from '@tunnel/errors';
import { CLIENT_LIMITS } from '../limits.ts';
import { refuseControlSocket } from './control-sockets.ts';
import { type FilesSpec, ServedFolder } from './files/served-folder.ts';

/** Exactly one of `localPort`, `localSocket` and `files`. */
export interface LocalSpec {
  /** With `localPort`; 127.0.0.1 when left out. */
  readonly localHost?: string;
  readonly localPort?: number;
  /** http, https, tcp: the path of a Unix socket. */
  readonly localSocket?: string;
  /** true: the socket may be a control socket of the system, such as that of docker. */
  readonly allowControlSocket?: boolean;
  /** http: a folder, served by the client. */
  readonly files?: FilesSpec;
}

/** null: the service does not speak TLS. */
export type LocalTls = { readonly verify: boolean } | null;

/** What is dialled for a visitor, or probed. */
export type DialTarget =
  | { readonly kind: 'address'; readonly host: string; readonly port: number; readonly tls: LocalTls }
  | { readonly kind: 'socket'; readonly path: string; readonly tls: LocalTls };

export type LocalTarget = DialTarget | { readonly kind: 'files'; readonly folder: ServedFolder };

const DEFAULT_HOST = '127.0.0.1';
/** The longest name of DNS. */
const HOST_MAX_CHARS = 253;

/** Of a spec that was checked. A folder is looked up here, and once: what it is replaced by later is not served. */
export const localTargetOf = ({ localHost, localPort, localSocket, files }: LocalSpec, tls: LocalTls): LocalTarget => {
  if (files !== undefined) return { kind: 'files', folder: new ServedFolder(files) };
  if (localSocket !== undefined) return { kind: 'socket', path: localSocket, tls };
  return { kind: 'address', host: localHost ?? DEFAULT_HOST, port: localPort ?? 0, tls };
};

/** As people read it: `127.0.0.1:3000`, `unix:/run/app.sock`, `files:./dist`. */
export const localText = ({ localHost = DEFAULT_HOST, localPort, localSocket, files }: LocalSpec): string => {
  if (files !== undefined) return `files:${files.dir}`;
  return localSocket === undefined ? `${inBrackets(localHost)}:${localPort}` : `unix:${localSocket}`;
};

/** As a Host header names it. What has no address is this machine, as for whoever asks a Unix socket with curl. */
export const localAuthority = (spec: LocalSpec, defaultPort: number | null): string => {
  const { localHost = DEFAULT_HOST, localPort } = spec;
  if (localPort === undefined) return 'localhost';
  return localPort === defaultPort ? inBrackets(localHost) : localText(spec);
};

const inBrackets = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** What a tunnel without a name is called, after its protocol. */
export const localLabel = ({ localPort, localSocket, files }: LocalSpec): string => {
  if (localPort !== undefined) return String(localPort);
  const last = basename(files?.dir ?? localSocket ?? '', '.sock');
  return last.replace(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, CLIENT_LIMITS.LOCAL_LABEL_MAX_CHARS) || 'files';
};

/** Throws a Fault. Callers of the library may come without a type checker. */
export const checkLocalSpec = (spec: LocalSpec): void => {
  const { localHost, localPort, localSocket, files, allowControlSocket = false } = spec;
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  const given = [localPort, localSocket, files].filter((target) => target !== undefined);
  if (given.length > 1) throw refuse('a tunnel leads to one of a local port, a local socket and a folder of files');
  if (localHost !== undefined && localPort === undefined && given.length > 0) {
    throw refuse('the local host goes with a local port');
  }
  if (localSocket !== undefined) {
    checkSocketPath(localSocket);
    if (!allowControlSocket) refuseControlSocket(localSocket);
    return;
  }
  if (files !== undefined) return checkFiles(files);
  if (!isPort(localPort)) throw refuse('the local port must be a whole number from 1 to 65535');
  const host = localHost ?? DEFAULT_HOST;
  if (typeof host !== 'string' || host === '' || host.length > HOST_MAX_CHARS) {
    throw refuse(`the local host must be a text of 1 to ${HOST_MAX_CHARS} characters`);
  }
};

export const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535;

/** A longer one would be cut off by the system, and another socket be meant. */
const checkSocketPath = (path: unknown): void => {
  const most = CLIENT_LIMITS.LOCAL_SOCKET_PATH_MAX_BYTES;
  if (typeof path === 'string' && path !== '' && !path.includes('\0') && Buffer.byteLength(path) <= most) return;
  throw new Fault('CLIENT_USAGE', { reason: `the path of the local socket must be a text of 1 to ${most} bytes` });
};

const checkFiles = (files: FilesSpec): void => {
  const { dir, spa = false, listing = false } = files;
  if (typeof dir !== 'string' || dir === '' || dir.includes('\0')) {
    throw new Fault('CLIENT_USAGE', { reason: 'the folder of files must be a path' });
  }
  if (typeof spa === 'boolean' && typeof listing === 'boolean') return;
  throw new Fault('CLIENT_USAGE', { reason: '`spa` and `listing` of a folder are true or false' });
};
