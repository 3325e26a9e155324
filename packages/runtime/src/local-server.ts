// A small HTTP server for programs and people of this machine alone: its bounds, and its end. The inspector and the agent are such.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

export interface LocalServerOptions {
  readonly connectionsMax: number;
  /** For the head of a request, and for the whole of it. Left out: as node has it. */
  readonly requestTimeoutMs?: number;
  /** How often slow requests are looked for. */
  readonly lookEveryMs?: number;
  readonly respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** A mistake of ours, or of the system. The request it came with is cut off. */
  readonly onProblem: (reason: string) => void;
}

const HEAD_MAX_BYTES = 16 * 1024;

export const createLocalServer = (options: LocalServerOptions): Server => {
  const { requestTimeoutMs, lookEveryMs, respond, onProblem } = options;
  const server = createServer({
    maxHeaderSize: HEAD_MAX_BYTES,
    // Whoever answers looks at the host, or has no use for it.
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

/** What is open, streams of events too, is cut. */
export const closeLocalServer = async (server: Server): Promise<void> => {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
};
