// A small HTTP server for local programs and people, with limits and a clean shutdown. Used by the inspector and the agent.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

export interface LocalServerOptions {
  readonly connectionsMax: number;
  /** Timeout for receiving a request: for its head, and for the whole. Undefined: Node's default. */
  readonly requestTimeoutMs?: number;
  /** Interval at which the server checks for slow requests. */
  readonly lookEveryMs?: number;
  readonly respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Called for internal and system errors of the server. The affected request is aborted. */
  readonly onProblem: (reason: string) => void;
}

const HEAD_MAX_BYTES = 16 * 1024;

export const createLocalServer = (options: LocalServerOptions): Server => {
  const { requestTimeoutMs, lookEveryMs, respond, onProblem } = options;
  const server = createServer({
    maxHeaderSize: HEAD_MAX_BYTES,
    // The Host header is not required, because the handler checks Host, or does not need it.
    requireHostHeader: false,
    ...(requestTimeoutMs === undefined ? {} : { headersTimeout: requestTimeoutMs, requestTimeout: requestTimeoutMs }),
    ...(lookEveryMs === undefined ? {} : { connectionsCheckingInterval: lookEveryMs }),
  });
  server.maxConnections = options.connectionsMax;
  server.on('request', (request, response) => {
    respond(request, response).catch((error: unknown) => {
      onProblem(String(error));
      response.destroy();
    });
  });
  return server;
};

/** Closes a local HTTP server and all its open connections, including event streams. */
export const closeLocalServer = async (server: Server): Promise<void> => {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
};
