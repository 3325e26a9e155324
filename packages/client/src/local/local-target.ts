// Local target of a tunnel: an address, a Unix socket, or a folder served by the client.
import { basename } from 'node:path';
import { Fault } from '@tunnel/errors';
import type { OptionValue } from '@tunnel/tunnel-spec';
import { refuseControlSocket } from './control-sockets.ts';
import { type FilesSpec, ServedFolder } from './files/served-folder.ts';

/** Maximum path length of a Unix socket address. The system truncates longer paths. */
const LOCAL_SOCKET_PATH_MAX_BYTES = 107;
/** Maximum length of a socket or folder name within a default tunnel name. */
const LOCAL_LABEL_MAX_CHARS = 40;

type LocalKey = 'local_host' | 'local_port' | 'local_socket' | 'allow_control_socket' | 'files';

/** Options for the local target: exactly one of `local_port`, `local_socket` and `files`. */
export type LocalSpec = { readonly [K in LocalKey]?: OptionValue<K> | undefined };

/** TLS settings of the local service. Null without TLS. */
export type LocalTls = { readonly verify: boolean } | null;

/** A local target that visitors' streams can be connected to, and that can be probed. */
export type DialTarget =
  | { readonly kind: 'address'; readonly host: string; readonly port: number; readonly tls: LocalTls }
  | { readonly kind: 'socket'; readonly path: string; readonly tls: LocalTls };

export type LocalTarget = DialTarget | { readonly kind: 'files'; readonly folder: ServedFolder };

const DEFAULT_HOST = '127.0.0.1';
/** Maximum length of a local service's DNS name. */
const HOST_MAX_CHARS = 253;

/** Returns the target of a checked spec. A folder's real path is resolved here once, so a later replacement of the folder is not served. */
export const localTargetOf = (
  { local_host, local_port, local_socket, files }: LocalSpec,
  tls: LocalTls,
): LocalTarget => {
  if (files !== undefined) return { kind: 'files', folder: new ServedFolder(files) };
  if (local_socket !== undefined) return { kind: 'socket', path: local_socket, tls };
  return { kind: 'address', host: local_host ?? DEFAULT_HOST, port: local_port ?? 0, tls };
};

/** Returns a local target for display: `127.0.0.1:3000`, `unix:/run/app.sock`, `files:./dist`. */
export const localText = ({ local_host = DEFAULT_HOST, local_port, local_socket, files }: LocalSpec): string => {
  if (files !== undefined) return `files:${files.dir}`;
  return local_socket === undefined ? `${inBrackets(local_host)}:${local_port}` : `unix:${local_socket}`;
};

/** Returns the target as in a Host header. A Unix socket or folder is called `localhost`, as in curl. */
export const localAuthority = (spec: LocalSpec, defaultPort: number | null): string => {
  const { local_host = DEFAULT_HOST, local_port } = spec;
  if (local_port === undefined) return 'localhost';
  return local_port === defaultPort ? inBrackets(local_host) : localText(spec);
};

const inBrackets = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Returns the second part of a tunnel's default name, after the protocol: port, socket or folder. */
export const localLabel = ({ local_port, local_socket, files }: LocalSpec): string => {
  if (local_port !== undefined) return String(local_port);
  const last = basename(files?.dir ?? local_socket ?? '', '.sock');
  return last.replace(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, LOCAL_LABEL_MAX_CHARS) || 'files';
};

/** Throws a Fault for an invalid target. Types are checked too, because library users may lack a type checker. */
export const checkLocalSpec = (spec: LocalSpec): void => {
  const { local_host, local_port, local_socket, files, allow_control_socket = false } = spec;
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  const given = [local_port, local_socket, files].filter((target) => target !== undefined);
  if (given.length > 1)
    throw refuse('a tunnel needs exactly one of a local port, a local socket and a folder of files');
  if (local_host !== undefined && local_port === undefined && given.length > 0) {
    throw refuse('a local host needs a local port');
  }
  if (local_socket !== undefined) {
    checkSocketPath(local_socket);
    if (!allow_control_socket) refuseControlSocket(local_socket);
    return;
  }
  if (files !== undefined) return checkFiles(files);
  if (!isPort(local_port)) throw refuse('the local port must be a whole number from 1 to 65535');
  const host = local_host ?? DEFAULT_HOST;
  if (typeof host !== 'string' || host === '' || host.length > HOST_MAX_CHARS) {
    throw refuse(`the local host must be a string of 1 to ${HOST_MAX_CHARS} characters`);
  }
};

export const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535;

/** Rejects long paths, which the system would truncate to the path of another socket. */
const checkSocketPath = (path: unknown): void => {
  const most = LOCAL_SOCKET_PATH_MAX_BYTES;
  if (typeof path === 'string' && path !== '' && !path.includes('\0') && Buffer.byteLength(path) <= most) return;
  throw new Fault('CLIENT_USAGE', { reason: `the path of the local socket must be a string of 1 to ${most} bytes` });
};

const checkFiles = (files: FilesSpec): void => {
  const { dir, spa = false, listing = false } = files;
  if (typeof dir !== 'string' || dir === '' || dir.includes('\0')) {
    throw new Fault('CLIENT_USAGE', { reason: 'the folder of files must be a path' });
  }
  if (typeof spa === 'boolean' && typeof listing === 'boolean') return;
  throw new Fault('CLIENT_USAGE', { reason: '`spa` and `listing` of a folder are true or false' });
};
