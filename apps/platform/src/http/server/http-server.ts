// The HTTP server of the platform: its port, its time limits, and its responses to requests that never reach the app.
import { type IncomingMessage, maxHeaderSize, type RequestListener, type ServerResponse } from 'node:http';
import { getRequestListener, RequestError } from '@hono/node-server';
import { BILLING_WEBHOOK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import {
  type ConnectionGate,
  type ErrorMapper,
  HttpListener,
  type ListenerDoor,
  refusedAsJson,
} from '@tunnel/http-shell';
import { isLoopbackHost, plainAddress } from '@tunnel/rules/net';
import type { Clock, Logger } from '@tunnel/runtime';
import { LIMITS } from '../../limits.ts';
import type { ApiAdmission } from '../admission/api-admission.ts';
import { newRequestId } from '../shared/every-answer.ts';
import { CHALLENGE_PATH } from '../shared/paths.ts';
import type { PlatformApp } from '../shared/platform-env.ts';
import { noAddress, platformErrorMapper } from './platform-app.ts';
import type { RequestSpans } from './request-spans.ts';

/** Time limit for receiving the head of a request, so that an idle caller cannot hold a connection. */
const HEAD_TIMEOUT_MS = 15_000;
/** Time limit for receiving a whole request, including the body. */
const REQUEST_TIMEOUT_MS = 30_000;

export interface HttpServerOptions {
  readonly host: string;
  /** Port to listen on. 0 means any free port. */
  readonly port: number;
  readonly app: PlatformApp;
  readonly gate: ConnectionGate;
  /** Admission of API calls. Absent if every request is served at once. */
  readonly admission?: Pick<ApiAdmission, 'pass'> | undefined;
  /** Path prefix. Requests for paths without the prefix get a 404. Absent without such a restriction. */
  readonly onlyBelow?: string;
  /** Serves TLS; `renew` sets the certificate. Absent for unencrypted HTTP. */
  readonly tls?: Pick<ListenerDoor, 'challengeFor'>;
  /** Spans of requests. Null without telemetry. */
  readonly spans?: Pick<RequestSpans, 'begin'> | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

const refused = refusedAsJson(newRequestId);

export class HttpServer extends HttpListener {
  constructor(options: HttpServerOptions) {
    const { host, port, app, gate, admission, onlyBelow = '', tls, spans = null, clock, logger } = options;
    const answerOf = platformErrorMapper(logger);
    const serve = getRequestListener((request, env) => app.fetch(request, env), {
      errorHandler: (error) => answerUnread(error, answerOf),
      hostname: NO_HOST,
    });
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      if (spans !== null) spans.begin(request, response);
      if (admission === undefined) void serve(request, response);
      else admission.pass(request, response, () => serve(request, response));
    };
    const onClearRequest: RequestListener = (request, response) => {
      if (isForClear(request)) return onRequest(request, response);
      const { headers, body } = refused(new Fault('API_HTTPS_ONLY'));
      response.writeHead(400, { ...headers, connection: 'close' }).end(body);
    };
    super({
      on: { host, port, key: '[platform] port' },
      onRequest: (request, response) => {
        if (request.url?.startsWith(onlyBelow) === true) onRequest(request, response);
        else response.writeHead(404).end();
      },
      gate,
      kind: 'platform',
      bounds: { headTimeoutMs: HEAD_TIMEOUT_MS, requestTimeoutMs: REQUEST_TIMEOUT_MS },
      takesOddRequests: true,
      refused,
      ...(tls === undefined ? {} : { tls: true, door: { clock, onClearRequest, challengeFor: tls.challengeFor } }),
      unreadableReasons: { HPE_HEADER_OVERFLOW: `the request headers are larger than ${maxHeaderSize} bytes` },
      grace: { clock, ms: LIMITS.HTTP_STOP_GRACE_MS },
      portReasons: {},
    });
  }
}

/**
 * Returns true if a TLS port accepts the request unencrypted: certificate authorities validate a name over http, and the payment
 * simulator on this machine signs its webhooks. All other requests carry secrets.
 */
const isForClear = ({ url = '', socket }: IncomingMessage): boolean =>
  url.startsWith(CHALLENGE_PATH) ||
  (url === BILLING_WEBHOOK_PATH && isLoopbackHost(plainAddress(socket.remoteAddress ?? '')));

/**
 * Host in the URL of a request without a Host header, such as a load balancer's probe over HTTP/1.0. The app decides whether a request
 * needs a host.
 */
const NO_HOST = 'no-host.invalid';

/** Answers requests with a target or host that forms no valid URL. */
const answerUnread = (error: unknown, answerOf: ErrorMapper): Response => {
  const known = error instanceof RequestError ? noAddress(error) : error;
  const requestId = newRequestId();
  const { status, headers, body } = answerOf(known, requestId);
  return Response.json(body, { status, headers: { ...headers, 'x-request-id': requestId } });
};
