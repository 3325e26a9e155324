// The agent, a hook of every run: a Unix socket accessible only to its owner. The client responds there with its log and status, and
// accepts changes.
import { chmodSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Fault } from '@tunnel/errors';
import { closeLocalServer, createLocalServer } from '@tunnel/runtime';
import { choosePaths, isListening } from '../../agent/socket-folders.ts';
import type { Io } from '../../io/io.ts';
import { CLI_LIMITS } from '../../limits.ts';
import { type AgentRoutes, answerTo } from './agent-routes.ts';
import { LogKeeper } from './log-keeper.ts';
import type { RunHook, RunningClient } from './running-client.ts';

/** Maximum simultaneous connections to the socket of one client. Further connections are closed immediately. */
export const AGENT_CONNECTIONS_MAX = 32;
/** Maximum size of a request body. A tunnel as JSON takes a few KiB. */
export const AGENT_BODY_MAX_BYTES = 256 * 1024;

type CloseAgent = () => Promise<void>;

/** Creates the agent of a run. Returns null on Windows, because Node.js cannot restrict a named pipe to one user. */
export const agentHook = (_plan: unknown, io: Io): RunHook | null => {
  if (process.platform === 'win32') return null;
  const log = new LogKeeper(io.clock);
  let closeAgent: CloseAgent | null = null;
  return {
    output: log,
    onRunning: async (running) => {
      closeAgent = await start(running, log, io);
    },
    close: async () => {
      log.close();
      await closeAgent?.();
    },
  };
};

/** Starts the agent. A failure is only reported, because the tunnels also work without a socket. */
const start = async (running: RunningClient, log: LogKeeper, io: Io): Promise<CloseAgent | null> => {
  const { paths, problems } = choosePaths(io, process.pid);
  try {
    return await startAgent(paths, { running, log, clock: io.clock, logger: io.logger, pid: process.pid });
  } catch (error) {
    const why = [...problems, ...(paths.length === 0 ? [] : [(error as Error).message])].join('; ');
    io.stderr.write(`tunnel: \`tunnel status\` cannot show this client: ${why}\n`);
    return null;
  }
};

/**
 * Starts an HTTP/1.1 server with JSON responses on the first usable path. Resolves with a function that stops the server. Rejects with
 * the error of the last path.
 */
const startAgent = async (paths: readonly string[], routes: AgentRoutes): Promise<CloseAgent> => {
  const server = createLocalServer({
    connectionsMax: AGENT_CONNECTIONS_MAX,
    requestTimeoutMs: CLI_LIMITS.AGENT_REQUEST_TIMEOUT_MS,
    lookEveryMs: CLI_LIMITS.AGENT_LOOK_EVERY_MS,
    respond: (request, response) => respond(request, response, routes),
    onProblem: (reason) => routes.logger.warn({ reason }, 'agent request failed'),
  });
  let problem: unknown = new Error('no usable folder for the socket');
  for (const path of paths) {
    try {
      await listenAt(server, path);
      server.on('error', (error) => routes.logger.warn({ reason: error.message }, 'agent error'));
      return () => closeAt(server, path);
    } catch (error) {
      problem = error;
    }
  }
  throw problem;
};

/**
 * Listens on a path. An existing socket with the pid of this process and without a listener belongs to an earlier process, and is
 * replaced. A socket with a listener belongs to another container that shares the folder.
 */
const listenAt = async (server: Server, path: string): Promise<void> => {
  try {
    await listen(server, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await isListening(path))) throw error;
    rmSync(path, { force: true });
    await listen(server, path);
  }
  // The folder is closed to other users, so the socket was protected even before this change of mode.
  chmodSync(path, 0o600);
};

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });

/** Removes the socket first, then closes the server, so that no command finds a socket without a response. */
const closeAt = async (server: Server, path: string): Promise<void> => {
  rmSync(path, { force: true });
  await closeLocalServer(server);
};

const respond = async (request: IncomingMessage, response: ServerResponse, routes: AgentRoutes): Promise<void> => {
  // A caller of the agent that disconnects is not an error.
  response.on('error', () => {});
  try {
    const body = await readBody(request);
    const { method = '', url = '' } = request;
    const answer = await answerTo({ method, url, body, response }, routes);
    if (answer !== null) sendJson(response, answer.status, answer.json);
  } catch (error) {
    const fault = Fault.from(error);
    if (fault.code === 'INTERNAL') routes.logger.warn({ reason: String(fault.cause) }, 'agent request failed');
    sendJson(response, fault.status, { code: fault.code, error: fault.message, values: fault.values });
  }
};

/**
 * Reads the body of a request. A body over the limit is read to its end and dropped, so that a caller that writes the whole body before
 * reading still gets the response.
 */
const readBody = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    const limit = AGENT_BODY_MAX_BYTES;
    const tooLarge = new Fault('API_BODY_TOO_LARGE', { limit });
    const parts: Buffer[] = [];
    let bytes = 0;
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes <= limit) parts.push(part);
      else reject(tooLarge);
    });
    request.once('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    request.once('close', () => reject(new Fault('API_CALLER_GONE')));
    request.on('error', () => {});
    if (Number(request.headers['content-length'] ?? 0) > limit) reject(tooLarge);
  });

const sendJson = (response: ServerResponse, status: number, json: object): void => {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const text = JSON.stringify(json);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  response.end(text);
};
