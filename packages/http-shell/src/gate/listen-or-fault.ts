// Opens a server on its configured port, or says which key of server.toml to change.
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { Fault } from '@tunnel/errors';

/** Connections the system accepts on our behalf while we are busy: with node's 511 a flood costs an honest caller seconds of repeated SYNs. */
const BACKLOG = 4096;

export interface ListenOn {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** As a person finds it in the file: `[server] api_port`. */
  readonly key: string;
}

interface ListenOptions {
  readonly backlog?: number;
  /** An accept that failed later on, as when no descriptors are left. */
  readonly onAcceptError?: (error: Error) => void;
  /** Why a port was denied, by error code; a code without words stands for itself. */
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
  // It costs that connection; unheard, it would cost the process.
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
