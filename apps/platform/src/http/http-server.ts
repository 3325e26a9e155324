// The HTTP server of the platform: its port, its time limits, and what it says to requests that never reach the app.
import { type IncomingMessage, maxHeaderSize, type RequestListener } from 'node:http';
import { getRequestListener, RequestError } from '@hono/node-server';
import { BILLING_WEBHOOK_PATH } from '@tunnel/contract';
import { isLoopbackHost, plainAddress } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import {
  type ConnectionGate,
  type ErrorMapper,
  HttpListener,
  type ListenerDoor,
  refusedAsJson,
} from '@tunnel/http-shell';
import type { Clock, Logger } from '@tunnel/runtime';
import { LIMITS } from '../limits.ts';
import { newRequestId, noAddress, platformErrorMapper } from './platform-app.ts';
import type { PlatformApp } from './platform-env.ts';
import { CHALLENGE_PATH } from './routes/challenge-routes.ts';

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly app: PlatformApp;
  readonly gate: ConnectionGate;
  /** Nothing but this path and those below it is there; absent: everything is. */
  readonly onlyBelow?: string;
  /** It speaks TLS; its certificate comes with `renew`. Absent: in clear. */
  readonly tls?: Pick<ListenerDoor, 'challengeFor'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const refused = refusedAsJson(newRequestId);

export class HttpServer extends HttpListener {
  constructor({ host, port, app, gate, onlyBelow = '', tls, clock, logger }: HttpServerOptions) {
    const answerOf = platformErrorMapper(logger);
    const onRequest = getRequestListener((request, env) => app.fetch(request, env), {
      errorHandler: (error) => answerUnread(error, answerOf),
      hostname: NO_HOST,
    });
    const onClearRequest: RequestListener = (request, response) => {
      if (isForClear(request)) return void onRequest(request, response);
      const { headers, body } = refused(new Fault('API_HTTPS_ONLY'));
      response.writeHead(400, { ...headers, connection: 'close' }).end(body);
    };
    super({
      on: { host, port, key: '[platform] port' },
      onRequest: (request, response) => {
        if (request.url?.startsWith(onlyBelow) === true) void onRequest(request, response);
        else response.writeHead(404).end();
      },
      ...{ gate, kind: 'platform' },
      bounds: { headTimeoutMs: LIMITS.HEAD_TIMEOUT_MS, requestTimeoutMs: LIMITS.REQUEST_TIMEOUT_MS },
      takesOddRequests: true,
      refused,
      ...(tls === undefined ? {} : { tls: true, door: { clock, onClearRequest, challengeFor: tls.challengeFor } }),
      unreadableReasons: { HPE_HEADER_OVERFLOW: `the headers of the request are over ${maxHeaderSize} bytes` },
      grace: { clock, ms: LIMITS.HTTP_STOP_GRACE_MS },
      portReasons: {},
    });
  }
}

/**
 * What a port with TLS takes in clear: authorities validate a name so, and the payment processor's stand-in on this machine signs what it sends. All else
 * has secrets.
 */
const isForClear = ({ url = '', socket }: IncomingMessage): boolean =>
  url.startsWith(CHALLENGE_PATH) ||
  (url === BILLING_WEBHOOK_PATH && isLoopbackHost(plainAddress(socket.remoteAddress ?? '')));

/** In the URL of a request without one: balancers probe by HTTP/1.0. Whether it needs one is the app's business. */
const NO_HOST = 'no-host.invalid';

/** Their target or host makes no URL. */
const answerUnread = (error: unknown, answerOf: ErrorMapper): Response => {
  const known = error instanceof RequestError ? noAddress(error) : error;
  const requestId = newRequestId();
  const { status, headers, body } = answerOf(known, requestId);
  return Response.json(body, { status, headers: { ...headers, 'x-request-id': requestId } });
};
