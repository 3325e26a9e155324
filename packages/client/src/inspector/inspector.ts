// The inspector: a page on this machine that shows and replays the latest requests, with its access control.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, closeLocalServer, createLocalServer, type Logger, randomToken } from '@tunnel/runtime';
import { INSPECTOR_PORTS } from '../local/target-guard.ts';
import { replay } from '../requests/replay.ts';
import type { RequestReporter } from '../requests/request-reporter.ts';
import { RequestStore } from '../requests/request-store.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';
import { answerTo, json, LiveEvents, type RouteDeps } from './routes.ts';

/** Maximum size of an edited request sent by the page: head and body in JSON. */
const INSPECTOR_EDIT_MAX_BYTES = 64 * 1024;
/** Maximum number of concurrent connections to the inspector. */
const INSPECTOR_CONNECTIONS_MAX = 64;

export interface Inspector {
  readonly url: string;
  close(): Promise<void>;
}

/** A request captured by the edge and never seen by this client. */
export interface RequestAtEdge {
  readonly tunnelId: string;
  readonly requestId: string;
}

export interface InspectorOptions {
  /**
   * Asks the edge to replay a request. Resolves with the id of the new request, or rejects with a Fault. If undefined, the page says that
   * such requests cannot be replayed.
   */
  readonly replayAtEdge?: ((request: RequestAtEdge) => Promise<string>) | undefined;
}

export interface InspectorDeps extends InspectorOptions {
  readonly requests: RequestReporter;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tunnels: () => readonly Tunnel[];
  /** Ports that the inspector tries in order. Default: 4300 to 4399. */
  readonly ports?: readonly number[];
}

const HOST = '127.0.0.1';

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** Starts the inspector. Resolves with null if no port is free. */
export const startInspector = async (deps: InspectorDeps): Promise<Inspector | null> => {
  const { requests, clock, logger } = deps;
  const store = new RequestStore();
  const live = new LiveEvents({ requests, store, clock });
  const routes: RouteDeps = {
    token: randomToken(),
    store,
    tunnels: deps.tunnels,
    replay: (record, edit) => replay(record, edit, { requests, clock }),
    replayAtEdge: deps.replayAtEdge ?? null,
  };
  const server = createLocalServer({
    connectionsMax: INSPECTOR_CONNECTIONS_MAX,
    respond: (request, response) => respond(request, response, { port: portOf(server), routes, live }),
    onProblem: (reason) => logger.warn({ reason }, 'inspector request failed'),
  });
  const port = await listenOnFirstFree(server, deps.ports ?? INSPECTOR_PORTS);
  if (port === null) return null;
  server.on('error', (error) => logger.warn({ reason: error.message }, 'inspector error'));
  requests.keepIn(store);
  return {
    url: `http://${HOST}:${port}/`,
    close: () => closeAll(server, live, () => requests.keepIn(null)),
  };
};

const closeAll = async (server: Server, live: LiveEvents, forget: () => void): Promise<void> => {
  forget();
  live.close();
  await closeLocalServer(server);
};

const listenOnFirstFree = async (server: Server, ports: readonly number[]): Promise<number | null> => {
  for (const port of ports) {
    const isFree = await new Promise<boolean>((resolve) => {
      // Removes both listeners after every attempt, because up to a hundred ports are tried.
      const settle = (isListening: boolean): void => {
        server.off('error', onError);
        server.off('listening', onListening);
        resolve(isListening);
      };
      const onError = (): void => settle(false);
      const onListening = (): void => settle(true);
      server.on('error', onError);
      server.on('listening', onListening);
      server.listen(port, HOST);
    });
    if (isFree) return portOf(server);
  }
  return null;
};

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

interface Inside {
  readonly port: number;
  readonly routes: RouteDeps;
  readonly live: LiveEvents;
}

const respond = async (request: IncomingMessage, response: ServerResponse, inside: Inside): Promise<void> => {
  const { method = '', headers } = request;
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  const { host, origin } = headers;
  const refusal = checkInspectorRequest(
    {
      method,
      host,
      origin,
      fieldNames: Object.keys(headers),
      fetchSite: single(headers['sec-fetch-site']),
      token: single(headers['x-inspector-token']),
    },
    { port: inside.port, token: inside.routes.token },
  );
  const [path = ''] = (request.url ?? '').split('?');
  const answer =
    refusal === null
      ? await answerTo(method, path, inside.routes, () => bodyText(request))
      : json(refusal.status, { error: refusal.reason });
  // Discards the body of a request to the inspector if no route has read it.
  request.resume();
  if (answer.kind === 'events') return inside.live.add(response);
  response.writeHead(answer.status, { 'content-type': answer.type });
  response.end(method === 'HEAD' ? undefined : answer.text);
};

/**
 * Reads the request body. Resolves with null if it is too long; the rest is then read and dropped, because a page that is still sending
 * would not read the response.
 */
const bodyText = async (request: IncomingMessage): Promise<string | null> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes <= INSPECTOR_EDIT_MAX_BYTES) pieces.push(piece);
  }
  return bytes <= INSPECTOR_EDIT_MAX_BYTES ? Buffer.concat(pieces).toString() : null;
};

const single = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

export interface GateRequest {
  readonly method: string;
  /** Names of all header fields of the request to the inspector, in lower case. */
  readonly fieldNames: readonly string[];
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** Sec-Fetch-Site header of browsers: whether the requesting page belongs to the same origin. */
  readonly fetchSite: string | undefined;
  /** Access token of the inspector page that sends the request. */
  readonly token: string | undefined;
}

export interface Refusal {
  readonly status: 403 | 405 | 421;
  readonly reason: string;
}

const READING = new Set(['GET', 'HEAD']);

/** Tells whether a header field comes from a proxy or a tunnel. Local browsers and programs send no such fields. */
const isForwardingField = (name: string): boolean =>
  name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'via' || name === 'x-real-ip';

/**
 * Returns a refusal, or null if the request is allowed. The inspector shows visitors' requests and replays them, so pages of other sites
 * and foreign names that resolve to 127.0.0.1 are rejected.
 */
export const checkInspectorRequest = (
  request: GateRequest,
  own: { readonly port: number; readonly token: string },
): Refusal | null => {
  if (request.fieldNames.some(isForwardingField)) {
    return { status: 403, reason: 'the inspector rejects requests through a proxy or a tunnel' };
  }
  const hosts = [`127.0.0.1:${own.port}`, `localhost:${own.port}`];
  const host = request.host?.toLowerCase();
  if (host === undefined || !hosts.includes(host)) {
    return { status: 421, reason: 'the inspector is available only at 127.0.0.1 and localhost' };
  }
  // Browsers send `none` if a person opens the page directly; older browsers send nothing.
  if (request.fetchSite !== undefined && !['same-origin', 'none'].includes(request.fetchSite)) {
    return { status: 403, reason: 'requests from other sites are rejected' };
  }
  if (READING.has(request.method)) return null;
  if (request.method !== 'POST') return { status: 405, reason: 'only GET and POST' };
  if (request.origin?.toLowerCase() !== `http://${host}`)
    return { status: 403, reason: 'only the inspector page can send this request' };
  if (!isSame(request.token ?? '', own.token)) return { status: 403, reason: 'wrong page token; reload the page' };
  return null;
};

const isSame = (given: string, own: string): boolean => {
  const a = Buffer.from(given);
  const b = Buffer.from(own);
  return a.length === b.length && timingSafeEqual(a, b);
};
