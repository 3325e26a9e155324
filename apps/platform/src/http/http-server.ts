// The HTTP server of the platform: its port, its time limits, and what it says to requests that never reach the app.
import { maxHeaderSize } from 'node:http';
import { getRequestListener, RequestError } from '@hono/node-server';
import { type ConnectionGate, type ErrorMapper, HttpListener, refusedAsJson } from '@tunnel/http-shell';
import type { Clock, Logger } from '@tunnel/runtime';
import { LIMITS } from '../limits.ts';
import { newRequestId, noAddress, platformErrorMapper } from './platform-app.ts';
import type { PlatformApp } from './platform-env.ts';

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly app: PlatformApp;
  readonly gate: ConnectionGate;
  /** Nothing but this path and those below it is there; absent: everything is. */
  readonly onlyBelow?: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class HttpServer extends HttpListener {
  constructor({ host, port, app, gate, onlyBelow = '', clock, logger }: HttpServerOptions) {
    const answerOf = platformErrorMapper(logger);
    const onRequest = getRequestListener((request, env) => app.fetch(request, env), {
      errorHandler: (error) => answerUnread(error, answerOf),
      hostname: NO_HOST,
    });
    super({
      on: { host, port, key: '[platform] port' },
      onRequest: (request, response) => {
        if (request.url?.startsWith(onlyBelow) === true) void onRequest(request, response);
        else response.writeHead(404).end();
      },
      ...{ gate, kind: 'platform' },
      bounds: { headTimeoutMs: LIMITS.HEAD_TIMEOUT_MS, requestTimeoutMs: LIMITS.REQUEST_TIMEOUT_MS },
      takesOddRequests: true,
      refused: refusedAsJson(newRequestId),
      unreadableReasons: { HPE_HEADER_OVERFLOW: `the headers of the request are over ${maxHeaderSize} bytes` },
      grace: { clock, ms: LIMITS.HTTP_STOP_GRACE_MS },
      portReasons: {},
    });
  }
}

/** In the URL of a request without one: balancers probe by HTTP/1.0. Whether it needs one is the app's business. */
const NO_HOST = 'no-host.invalid';

/** Their target or host makes no URL. */
const answerUnread = (error: unknown, answerOf: ErrorMapper): Response => {
  const known = error instanceof RequestError ? noAddress(error) : error;
  const requestId = newRequestId();
  const { status, headers, body } = answerOf(known, requestId);
  return Response.json(body, { status, headers: { ...headers, 'x-request-id': requestId } });
};
