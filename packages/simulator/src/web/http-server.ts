// HTTP server of the simulator: access checks, size limits and routing.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Fault } from '@tunnel/errors';
import { isLoopbackHost } from '@tunnel/rules/net';
import { type Logger, randomId, type Secret } from '@tunnel/runtime';
import { type Answer, answerCall } from '../api/api.ts';
import { ApiError, type Route } from '../api/api-route.ts';
import { answerControl, type ControlDeps } from './control.ts';
import { code, makePage, policyFor } from './html.ts';
import { invoicePage, overviewPage, portalPage, portalReturn } from './pages.ts';

const BODY_MAX_BYTES = 64 * 1024;

interface HttpServerDeps extends ControlDeps {
  readonly host: string;
  readonly port: number;
  readonly portKey: string;
  readonly logger: Logger;
  readonly secretKey: Secret;
  readonly routes: readonly Route[];
  /** Called after every HTTP request, because webhook events may wait for delivery. */
  readonly onAnswered: () => void;
}

export class HttpServer {
  readonly #options: HttpServerDeps;
  readonly #server: Server;

  constructor(options: HttpServerDeps) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#attend(request, response));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    const { host, port, portKey: key, logger } = this.#options;
    this.#server.listen({ host, port });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const { code: reason, message } = error as NodeJS.ErrnoException;
      if (reason === 'EADDRINUSE') throw new Fault('CONFIG_PORT_TAKEN', { host, port, key });
      throw new Fault('CONFIG_PORT_DENIED', { host, port, key, reason: reason ?? message }, { cause: error });
    }
    // A connection that could not be accepted. Without a listener the error would end the process.
    this.#server.on('error', (error) => logger.warn({ err: error }, 'a connection could not be accepted'));
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #attend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#answer(request, response);
    } catch (error) {
      this.#refuse(request, response, error);
    }
    this.#options.onAnswered();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request;
    const [path = '/', query = ''] = url.split('?', 2);
    checkHost(headers.host, url);
    const body = await readBody(request);
    if (path.startsWith('/v1/')) {
      sendAnswer(response, this.#call({ method, path, query, body }, headers));
      return;
    }
    checkOrigin(headers.origin, headers.host);
    if (path === '/_sim' || path.startsWith('/_sim/')) {
      const given = controlBody(body, headers['content-type']);
      const result = await answerControl(this.#options, method, path, given.fields);
      if (given.back === null) sendJson(response, 200, result);
      else response.writeHead(303, { location: given.back }).end();
      return;
    }
    const [, returning] = /^\/portal\/(\w+)\/return$/.exec(path) ?? [];
    if (method === 'GET' && returning !== undefined) {
      response.writeHead(303, { location: portalReturn(this.#options.sandbox, returning) }).end();
      return;
    }
    const { html, leadsTo = null } = this.#page(method, path);
    sendPage(response, 200, html, leadsTo);
  }

  #call(
    call: { method: string; path: string; query: string; body: string },
    { authorization, 'idempotency-key': key }: IncomingMessage['headers'],
  ): Answer {
    const { sandbox, routes, secretKey } = this.#options;
    const idempotencyKey = typeof key === 'string' ? key : undefined;
    return answerCall(sandbox, routes, secretKey, { ...call, authorization, idempotencyKey });
  }

  #page(method: string, path: string): Page {
    const { sandbox } = this.#options;
    const [, kind, id = ''] = /^\/(?:(portal|invoice)\/(\w+))?$/.exec(path) ?? [];
    if (method === 'GET' && path === '/') return { html: overviewPage(sandbox) };
    if (method === 'GET' && kind === 'invoice') return { html: invoicePage(sandbox, id) };
    if (method === 'GET' && kind === 'portal') {
      return { html: portalPage(sandbox, id), leadsTo: portalReturn(sandbox, id) };
    }
    throw new ApiError(404, {
      type: 'invalid_request_error',
      message: `Unrecognized request URL (${method}: ${path}).`,
    });
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (!(error instanceof ApiError)) this.#options.logger.error({ err: error }, 'the simulator failed at a call');
    const known =
      error instanceof ApiError ? error : new ApiError(500, { type: 'api_error', message: 'The simulator failed.' });
    const isForm = request.headers['content-type']?.startsWith(FORM) === true && !request.url?.startsWith('/v1/');
    if (isForm) sendPage(response, known.status, refusalPage(known));
    else sendJson(response, known.status, { error: known.body });
  }
}

interface Page {
  readonly html: string;
  /** URL outside the simulator to which the page's forms finally redirect, allowed by the content security policy. */
  readonly leadsTo?: string;
}

const FORM = 'application/x-www-form-urlencoded';

const refusalPage = ({ body }: ApiError): string =>
  makePage(
    'That was refused',
    `<p>${code(body.code ?? body.type)} ${code(body.message)}</p>\n<p><a href="/">Back</a></p>`,
  );

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_MAX_BYTES) {
      throw new ApiError(413, { type: 'invalid_request_error', message: `The body is over ${BODY_MAX_BYTES} bytes.` });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

interface ControlBody {
  readonly fields: unknown;
  /** Page to return to after a form of the simulator. Null for JSON. */
  readonly back: string | null;
}

/** Other content types are parsed as JSON. An empty body is an empty object. */
const controlBody = (body: string, contentType = ''): ControlBody => {
  if (contentType.startsWith(FORM)) {
    const { back = '/', ...fields } = Object.fromEntries(new URLSearchParams(body));
    return { fields, back: /^\/(portal\/\w+(\/return)?)?$/.test(back) ? back : '/' };
  }
  try {
    return { fields: body.trim() === '' ? {} : (JSON.parse(body) as unknown), back: null };
  } catch {
    throw new ApiError(400, { type: 'invalid_request_error', message: 'The body is not JSON.' });
  }
};

const sendAnswer = (response: ServerResponse, { status, body, replayed }: Answer): void => {
  if (replayed) response.setHeader('idempotent-replayed', 'true');
  sendJson(response, status, body);
};

const sendJson = (response: ServerResponse, status: number, body: object): void => {
  response
    .writeHead(status, { 'content-type': 'application/json', 'request-id': randomId('req') })
    .end(JSON.stringify(body, null, 2));
};

const sendPage = (response: ServerResponse, status: number, html: string, leadsTo: string | null = null): void => {
  response
    .writeHead(status, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyFor(leadsTo),
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    .end(html);
};

// Access control: only local programs and the simulator's pages may call. Foreign pages are rejected, under any host name that reaches this
// port.

/** A port can follow a name, an IPv4 address, or an IPv6 address in brackets. */
const PORT = /(?<=^[^:]*|\]):\d{1,5}$/;

const checkHost = (host: string | undefined, target: string): void => {
  // The host of an absolute-form request target overrides the Host header.
  const [, named = host] = /^https?:\/\/([^/?]*)/i.exec(target) ?? [];
  for (const name of [host, named]) {
    if (name === undefined || !isLoopbackHost(name.replace(PORT, ''))) {
      throw new ApiError(421, { type: 'invalid_request_error', message: 'The simulator is for this machine only.' });
    }
  }
};

const checkOrigin = (origin: string | undefined, host: string | undefined): void => {
  if (origin === undefined || origin.toLowerCase() === `http://${host?.toLowerCase()}`) return;
  throw forbidden('The simulator does not take calls of other pages.');
};

const forbidden = (message: string): ApiError => new ApiError(403, { type: 'invalid_request_error', message });
