// Opens a server on its configured port, or says which key of server.toml to change.
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { Fault } from '@tunnel/errors';

export interface ListenOn {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** As a person finds it in the file: `[server] api_port`. */
  readonly key: string;
}

export const listenOrFault = async (
  server: Server,
  on: ListenOn,
  backlog?: number,
): Promise<{ host: string; port: number }> => {
  server.listen({ host: on.host, port: on.port, ...(backlog === undefined ? {} : { backlog }) });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw toFault(error, on);
  }
  // An accept that fails later (no memory, no file left) costs that connection; unheard, it would cost the process.
  server.on('error', () => {});
  const { address, port } = server.address() as AddressInfo;
  return { host: address, port };
};

const toFault = (error: unknown, { host, port, key }: ListenOn): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return new Fault('CONFIG_PORT_TAKEN', { host, port, key });
  const reason = REASONS[code ?? ''] ?? code ?? message;
  return new Fault('CONFIG_PORT_DENIED', { host, port, key, reason }, { cause: error });
};

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'host not found',
};
