// The local target of a tunnel as typed by the user: `3000`, `localhost:3000`, `http://localhost:3000`, `unix:/run/app.sock`.
import { pathFrom } from '@tunnel/config/layers';
import { InvalidArgumentError } from 'commander';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';

export interface TypedTarget {
  readonly port?: number;
  /** Typed host. If absent, the host of --local-host is used. */
  readonly host?: string;
  /** Path of a Unix socket, as typed. */
  readonly socket?: string;
  /** Scheme of a typed URL. */
  readonly scheme?: 'http' | 'https';
}

const UNIX = 'unix:';
const HOST_AND_PORT = /^(?:(?<host>\[[0-9a-f:.%]+\]|[^\s:/?#@[\]]+):)?(?<port>\d{1,5})$/i;
const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** Reads the argument of `tunnel http`: a port, host:port, URL or socket. */
export const typedUrl = (text: string): TypedTarget => {
  const scheme = /^(https?):\/\//i.exec(text)?.[1]?.toLowerCase() as keyof typeof DEFAULT_PORTS | undefined;
  if (scheme === undefined) return targetOf(text, 'Use 1-65535, host:port or a URL.', true);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.port === '0') throw new InvalidArgumentError('Use 1-65535, host:port or a URL.');
  const { hostname, host, port } = url;
  const alone = `${scheme}://${host}`;
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError(`Leave out user and password: ${alone}`);
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError(`Leave out the path and query: ${alone}`);
  }
  return { scheme, host: bare(hostname), port: port === '' ? DEFAULT_PORTS[scheme] : Number(port) };
};

/** Reads the argument of `tunnel tcp` and `tunnel tls`. */
export const typedAddressOrSocket = (text: string): TypedTarget =>
  targetOf(text, 'Use 1-65535, host:port or unix:PATH.', true);

/** Reads the argument of commands that do not accept a Unix socket. */
export const typedAddress = (text: string): TypedTarget => targetOf(text, 'Use 1-65535 or host:port.', false);

const targetOf = (text: string, usage: string, isSocketTaken: boolean): TypedTarget => {
  if (isSocketTaken && text.length > UNIX.length && text.startsWith(UNIX)) return { socket: text.slice(UNIX.length) };
  const { host, port } = HOST_AND_PORT.exec(text)?.groups ?? {};
  if (port === undefined || Number(port) < 1 || Number(port) > 65_535) throw new InvalidArgumentError(usage);
  return { port: Number(port), ...(host === undefined ? {} : { host: bare(host) }) };
};

const bare = (host: string): string => host.replace(/^\[|\]$/g, '');

/** Returns the config keys for a local target. `hostFlag` is the value of --local-host. Throws a Fault if the target has another host. */
export const targetEntry = (
  { port, host, socket }: TypedTarget,
  hostFlag: string | undefined,
  io: Pick<Io, 'cwd' | 'home'>,
): { readonly local_port?: number; readonly local_host?: string; readonly local_socket?: string } => {
  if (host !== undefined && hostFlag !== undefined && host !== hostFlag) {
    throw misuse(`two local hosts given, ${host} and ${hostFlag}. Leave out --local-host.`);
  }
  return {
    ...(port === undefined ? {} : { local_port: port }),
    ...(socket === undefined ? {} : { local_socket: pathFrom(io.cwd, socket, io.home) }),
    ...(host === undefined ? {} : { local_host: host }),
  };
};
