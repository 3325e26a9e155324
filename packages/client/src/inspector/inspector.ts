// The inspector: a page on this machine alone that shows the last requests and sends them again.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, type Logger, randomToken } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import { replay } from '../requests/replay.ts';
import type { RequestFeed } from '../requests/request-feed.ts';
import { RequestLog } from '../requests/request-log.ts';
import type { Tunnel } from '../tunnel.ts';
import { refusalOf } from './gate.ts';
import { LiveEvents } from './live-events.ts';
import { answerTo, json, type RouteDeps } from './routes.ts';

export interface Inspector {
  readonly url: string;
  close(): Promise<void>;
}

export interface InspectorDeps {
  readonly feed: RequestFeed;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tunnels: () => readonly Tunnel[];
  /** Tried in their order; 4300 to 4399 when left out. */
  readonly ports?: readonly number[];
}

const HOST = '127.0.0.1';
const PORTS = Array.from({ length: 100 }, (_, index) => 4300 + index);

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
  const { feed, clock, logger } = deps;
  const log = new RequestLog();
  const live = new LiveEvents({ feed, log, clock });
  const routes: RouteDeps = {
    token: randomToken(),
    log,
    tunnels: deps.tunnels,
    replay: (record) => replay(record, { feed, clock }),
  };
  const server = createServer({ maxHeaderSize: 16 * 1024 });
  server.maxConnections = CLIENT_LIMITS.INSPECTOR_CONNECTIONS_MAX;
  const port = await listenOnFirstFree(server, deps.ports ?? PORTS);
  if (port === null) return null;
  server.on('request', (request, response) => {
    respond(request, response, { port, routes, live }).catch((error: unknown) => {
      logger.warn({ reason: String(error) }, 'the inspector could not answer');
      response.destroy();
    });
  });
  server.on('error', (error) => logger.warn({ reason: error.message }, 'the inspector has a problem'));
  feed.keepIn(log);
  return {
    url: `http://${HOST}:${port}/`,
    close: () => closeAll(server, live, () => feed.keepIn(null)),
  };
};

const closeAll = async (server: Server, live: LiveEvents, forget: () => void): Promise<void> => {
  forget();
  live.close();
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
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
    if (isFree) return (server.address() as AddressInfo).port;
  }
  return null;
};

interface Inside {
  readonly port: number;
  readonly routes: RouteDeps;
  readonly live: LiveEvents;
}

const respond = async (request: IncomingMessage, response: ServerResponse, inside: Inside): Promise<void> => {
  const { method = '', headers } = request;
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  const { host, origin } = headers;
  const refusal = refusalOf(
    { method, host, origin, fetchSite: single(headers['sec-fetch-site']), token: single(headers['x-inspector-token']) },
    { port: inside.port, token: inside.routes.token },
  );
  // A body is never asked for.
  request.resume();
  const [path = ''] = (request.url ?? '').split('?');
  const answer =
    refusal === null ? await answerTo(method, path, inside.routes) : json(refusal.status, { error: refusal.reason });
  if (answer.kind === 'events') return inside.live.add(response);
  response.writeHead(answer.status, { 'content-type': answer.type });
  response.end(method === 'HEAD' ? undefined : answer.text);
};

const single = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);
