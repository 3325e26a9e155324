// Where a published MCP server is reached within this machine: a Unix socket that its owner alone can open. On Windows a port of loopback, where
// the bearer is what keeps others out.
import { chmodSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LocalSpec } from '@tunnel/client';
import { closeLocalServer, createLocalServer, sha256Hex } from '@tunnel/runtime';
import { choosePaths, isListening } from '../../agent/socket-folders.ts';
import type { Io } from '../../io/io.ts';
import { misuse } from '../../io/problem-report.ts';
import { withSingleInstanceLock } from '../../io/single-instance-lock.ts';

/** connections to the socket of one, which all come through the tunnel: a call each, and those that wait or are idle */
const MCP_PUBLISH_CONNECTIONS_MAX = 128;
/** for the whole of a request to it: with a message of 1 MiB, time for the slowest line, and callers that drip do not keep the others out */
const MCP_PUBLISH_REQUEST_MS = 30_000;
/** the same command that is published at the same time, by one user */
const MCP_PUBLISH_SOCKETS_MAX = 8;

export interface PrivateListener {
  /** For the spec of the tunnel that leads there. */
  readonly local: LocalSpec;
  close(): Promise<void>;
}

export interface ListenerOptions {
  /** Left out: as the limit has it. */
  readonly requestMs?: number;
  /** The same publication has the same socket: a client that comes back after a kill is known by it. */
  readonly key: string;
  readonly respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly onProblem: (reason: string) => void;
}

/** Rejects with a Fault. */
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
  // The edge keeps connections for the next request. One that we close at that moment would cost a call, which nobody may send twice.
  server.keepAliveTimeout = 0;
  if (process.platform === 'win32') return listenOnLoopback(server);
  const { paths, problems } = choosePaths(io, `mcp-${sha256Hex(key).slice(0, 16)}`);
  for (const path of paths) {
    try {
      // Two that start at once would both find nobody there, and the later one take the place of the other.
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

/** The same command may run more than once. */
const slots = (path: string): string[] =>
  Array.from({ length: MCP_PUBLISH_SOCKETS_MAX }, (_, index) => path.replace(/\.sock$/, `-${index}.sock`));

/** null: other runs listen on all of them. */
const takeFirstFree = async (server: Server, paths: readonly string[]): Promise<string | null> => {
  for (const path of paths) if (await takeSocket(server, path)) return path;
  return null;
};

/** false: another run listens there. */
const takeSocket = async (server: Server, path: string): Promise<boolean> => {
  if (await isListening(path)) return false;
  // Of one that was killed.
  rmSync(path, { force: true });
  await listen(server, { path });
  // Nobody else can enter the folder before that.
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
