// Opens a server on its configured port. On failure, the Fault names the key of server.toml to change.
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { Fault } from '@tunnel/errors';

/**
 * Length of the queue for connections that the kernel has accepted and the process has not. With the default of Node.js, 511, a flood
 * costs legitimate callers seconds of repeated SYNs.
 */
const BACKLOG = 4096;

export interface ListenOn {
  readonly host: string;
  /** Port number to listen on. 0 selects any free port. */
  readonly port: number;
  /** Name of the config key for error messages, as written in the file: `[server] api_port`. */
  readonly key: string;
}

interface ListenOptions {
  readonly backlog?: number;
  /** Called when accepting a connection fails, for example because no file descriptors are left. */
  readonly onAcceptError?: (error: Error) => void;
  /** Descriptions of errors when opening a port, by error code. An unlisted code is shown as is. */
  readonly reasons?: Readonly<Record<string, string>>;
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'host not found',
};

export const listenOrFault = async (
  server: Server,
  on: ListenOn,
  { backlog = BACKLOG, onAcceptError = () => {}, reasons = REASONS }: ListenOptions = {},
): Promise<{ host: string; port: number }> => {
  server.listen({ host: on.host, port: on.port, backlog });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw portFault(error, on, reasons);
  }
  // A later error costs a single connection. Without a listener, the error would end the process.
  server.on('error', onAcceptError);
  const { address, port } = server.address() as AddressInfo;
  return { host: address, port };
};

const portFault = (error: unknown, { host, port, key }: ListenOn, reasons: Readonly<Record<string, string>>): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return new Fault('CONFIG_PORT_TAKEN', { host, port, key });
  const reason = reasons[code ?? ''] ?? code ?? message;
  return new Fault('CONFIG_PORT_DENIED', { host, port, key, reason }, { cause: error });
};
