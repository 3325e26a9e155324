// The local address of a published MCP server: a Unix socket that only its owner can open. On Windows, a port on loopback, where the
// bearer token keeps other users out.
import { chmodSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LocalSpec } from '@tunnel/client';
import { closeLocalServer, createLocalServer, sha256Hex } from '@tunnel/runtime';
import { choosePaths, isListening } from '../../agent/socket-folders.ts';
import type { Io } from '../../io/io.ts';
import { misuse } from '../../io/problem-report.ts';
import { withSingleInstanceLock } from '../../io/single-instance-lock.ts';

/**
 * Maximum connections to the socket of a published server. All connections come through the tunnel: one per call, and waiting or idle
 * connections.
 */
const MCP_PUBLISH_CONNECTIONS_MAX = 128;
/**
 * Time limit of a whole request to a published server. Long enough for a message of 1 MiB over the slowest line, and short enough that
 * callers that send very slowly cannot keep other callers out.
 */
const MCP_PUBLISH_REQUEST_MS = 30_000;
/** Maximum simultaneous publications of the same command by one user. */
const MCP_PUBLISH_SOCKETS_MAX = 8;

export interface PrivateListener {
  /** Local target for the spec of the tunnel. */
  readonly local: LocalSpec;
  close(): Promise<void>;
}

export interface ListenerOptions {
  /** Time limit of a request in milliseconds. Default: MCP_PUBLISH_REQUEST_MS. */
  readonly requestMs?: number;
  /** Identifies the publication. The same publication gets the same socket path, which identifies a client that returns after a kill. */
  readonly key: string;
  readonly respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly onProblem: (reason: string) => void;
}

/** Starts a listener reachable only for this user. Rejects with a Fault. */
export const listenPrivately = async (
  { key, requestMs = MCP_PUBLISH_REQUEST_MS, ...deps }: ListenerOptions,
  io: Io,
): Promise<PrivateListener> => {
  const server = createLocalServer({
    connectionsMax: MCP_PUBLISH_CONNECTIONS_MAX,
    requestTimeoutMs: requestMs,
    lookEveryMs: requestMs / 4,
    ...deps,
  });
  // Idle connections are never closed, because the edge keeps them for the next request. Closing a connection while a request arrives
  // would lose the call, and a call must not be sent twice.
  server.keepAliveTimeout = 0;
  if (process.platform === 'win32') return listenOnLoopback(server);
  const { paths, problems } = choosePaths(io, `mcp-${sha256Hex(key).slice(0, 16)}`);
  for (const path of paths) {
    try {
      // The lock keeps two simultaneous starts from both finding a free path, where the later process would replace the socket of the
      // earlier process.
      const taken = await withSingleInstanceLock(path, io, () => takeFirstFree(server, slots(path)));
      if (taken !== null) return listenerAt(server, taken);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  throw misuse(`cannot create a socket for the MCP server: ${problems.join('; ')}.`);
};

const listenerAt = (server: Server, path: string): PrivateListener => ({
  local: { local_socket: path },
  close: async () => {
    rmSync(path, { force: true });
    await closeLocalServer(server);
  },
});

const listenOnLoopback = async (server: Server): Promise<PrivateListener> => {
  await listen(server, { host: '127.0.0.1', port: 0 });
  const { port } = server.address() as AddressInfo;
  return { local: { local_host: '127.0.0.1', local_port: port }, close: () => closeLocalServer(server) };
};

/** Returns a socket path for each simultaneous run of the same command. */
const slots = (path: string): string[] =>
  Array.from({ length: MCP_PUBLISH_SOCKETS_MAX }, (_, index) => path.replace(/\.sock$/, `-${index}.sock`));

/** Listens on the first free path. Returns null if other runs listen on all paths. */
const takeFirstFree = async (server: Server, paths: readonly string[]): Promise<string | null> => {
  for (const path of paths) if (await takeSocket(server, path)) return path;
  return null;
};

/** Listens on a path. Returns false if another run listens there. */
const takeSocket = async (server: Server, path: string): Promise<boolean> => {
  if (await isListening(path)) return false;
  // A socket without a listener belongs to a killed run.
  rmSync(path, { force: true });
  await listen(server, { path });
  // The folder is closed to other users, so the socket was protected even before this change of mode.
  chmodSync(path, 0o600);
  return true;
};

const listen = (server: Server, where: { path: string } | { host: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve();
    });
  });
