// The stand-in's port: who may speak, how much, and which part answers.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Fault } from '@tunnel/errors';
import { type Logger, randomId, type Secret } from '@tunnel/runtime';
import { type Answer, answerCall } from './calls.ts';
import { answerControl, type ControlDeps } from './control.ts';
import { checkHost, checkOrigin } from './guard.ts';
import { overviewPage } from './pages/overview-page.ts';
import { code, makePage, POLICY } from './pages/page.ts';
import { portalPage } from './pages/portal-page.ts';
import type { Route } from './route.ts';
import { SimError } from './sim-error.ts';

const BODY_MAX_BYTES = 64 * 1024;
const PORT_KEY = 'platform.billing.simulator_port';

export interface SimServerDeps extends ControlDeps {
  readonly host: string;
  readonly port: number;
  readonly logger: Logger;
  readonly secretKey: Secret;
  readonly routes: readonly Route[];
  /** After each call: events may wait. */
  readonly onAnswered: () => void;
}

export class SimServer {
  readonly #deps: SimServerDeps;
  readonly #server: Server;

  constructor(deps: SimServerDeps) {
    this.#deps = deps;
    this.#server = createServer((request, response) => void this.#attend(request, response));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    const { host, port, logger } = this.#deps;
    this.#server.listen({ host, port });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const { code: reason, message } = error as NodeJS.ErrnoException;
      if (reason === 'EADDRINUSE') throw new Fault('CONFIG_PORT_TAKEN', { host, port, key: PORT_KEY });
      throw new Fault('CONFIG_PORT_DENIED', { host, port, key: PORT_KEY, reason: reason ?? message }, { cause: error });
    }
    // Of a connection that could not be accepted: without a listener it would end the process.
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
    this.#deps.onAnswered();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request;
    const [path = '/', query = ''] = url.split('?', 2);
    checkHost(headers.host);
    const body = await readBody(request);
    if (path.startsWith('/v1/')) {
      sendAnswer(response, this.#call({ method, path, query, body }, headers));
      return;
    }
    checkOrigin(headers.origin, headers.host);
    if (path === '/_sim' || path.startsWith('/_sim/')) {
      const given = controlBody(body, headers['content-type']);
      const result = await answerControl(this.#deps, method, path, given.fields);
      if (given.back === null) sendJson(response, 200, result);
      else response.writeHead(303, { location: given.back }).end();
      return;
    }
    sendPage(response, 200, this.#page(method, path));
  }

  #call(
    call: { method: string; path: string; query: string; body: string },
    { authorization, 'idempotency-key': key }: IncomingMessage['headers'],
  ): Answer {
    const { world, routes, secretKey } = this.#deps;
    const idempotencyKey = typeof key === 'string' ? key : undefined;
    return answerCall(world, routes, secretKey, { ...call, authorization, idempotencyKey });
  }

  #page(method: string, path: string): string {
    const { world } = this.#deps;
    const [, session] = /^\/portal\/(\w+)$/.exec(path) ?? [];
    if (method === 'GET' && path === '/') return overviewPage(world);
    if (method === 'GET' && session !== undefined) return portalPage(world, session);
    throw new SimError(404, {
      type: 'invalid_request_error',
      message: `Unrecognized request URL (${method}: ${path}).`,
    });
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (!(error instanceof SimError)) this.#deps.logger.error({ err: error }, 'the simulator failed at a call');
    const known =
      error instanceof SimError ? error : new SimError(500, { type: 'api_error', message: 'The simulator failed.' });
    const isForm = request.headers['content-type']?.startsWith(FORM) === true && !request.url?.startsWith('/v1/');
    if (isForm) sendPage(response, known.status, refusalPage(known));
    else sendJson(response, known.status, { error: known.body });
  }
}

const FORM = 'application/x-www-form-urlencoded';

const refusalPage = ({ body }: SimError): string =>
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
      throw new SimError(413, { type: 'invalid_request_error', message: `The body is over ${BODY_MAX_BYTES} bytes.` });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

interface ControlBody {
  readonly fields: unknown;
  /** A form of our own pages: where it came from. */
  readonly back: string | null;
}

/** Other content types are read as JSON: an empty body is an empty object. */
const controlBody = (body: string, contentType = ''): ControlBody => {
  if (contentType.startsWith(FORM)) {
    const { back = '/', ...fields } = Object.fromEntries(new URLSearchParams(body));
    return { fields, back: /^\/(portal\/\w+)?$/.test(back) ? back : '/' };
  }
  try {
    return { fields: body.trim() === '' ? {} : (JSON.parse(body) as unknown), back: null };
  } catch {
    throw new SimError(400, { type: 'invalid_request_error', message: 'The body is not JSON.' });
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

const sendPage = (response: ServerResponse, status: number, html: string): void => {
  response
    .writeHead(status, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    .end(html);
};
