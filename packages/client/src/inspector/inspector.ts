// The inspector: a page on this machine alone that shows the last requests and sends them again; and who may talk to it.
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

/** what its page sends to have a request edited before it is replayed: a head, a body, and JSON around them */
const INSPECTOR_EDIT_MAX_BYTES = 64 * 1024;
/** connections to the inspector page at once */
const INSPECTOR_CONNECTIONS_MAX = 64;

export interface Inspector {
  readonly url: string;
  close(): Promise<void>;
}

/** A request that the edge keeps and this client never saw. */
export interface RequestAtEdge {
  readonly tunnelId: string;
  readonly requestId: string;
}

export interface InspectorOptions {
  /** Has the edge send a request again. Settles with the id of the new request; rejects with a Fault. Left out: the page says that it cannot. */
  readonly replayAtEdge?: ((request: RequestAtEdge) => Promise<string>) | undefined;
}

export interface InspectorDeps extends InspectorOptions {
  readonly requests: RequestReporter;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tunnels: () => readonly Tunnel[];
  /** Tried in their order; 4300 to 4399 when left out. */
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

/** null: none of the ports is free. */
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
      // Neither listener may outlive its try: there may be a hundred of them.
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
  // Whatever nobody asked for.
  request.resume();
  if (answer.kind === 'events') return inside.live.add(response);
  response.writeHead(answer.status, { 'content-type': answer.type });
  response.end(method === 'HEAD' ? undefined : answer.text);
};

/** null: it is too long. The rest is read and dropped: a page that still sends would not read its answer. */
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
  /** The names of all header fields, in lower case. */
  readonly fieldNames: readonly string[];
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** As browsers send it: who made this request. */
  readonly fetchSite: string | undefined;
  /** Of the page that asks. */
  readonly token: string | undefined;
}

export interface Refusal {
  readonly status: 403 | 405 | 421;
  readonly reason: string;
}

const READING = new Set(['GET', 'HEAD']);

/** Fields that a proxy or a tunnel adds to a request that it passes on. Browsers and programs on this machine send none of them. */
const isForwardingField = (name: string): boolean =>
  name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'via' || name === 'x-real-ip';

/**
 * Who may talk to the inspector. It shows what visitors sent, and can send it again: neither is for another site's page,
 * nor for a name of somebody else's that was made to point at 127.0.0.1. null: it may go on.
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
  // Top-level visits and older browsers send `none` or nothing.
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
