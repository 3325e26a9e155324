// The edge REST on its own port.
import { getRequestListener } from '@hono/node-server';
import { HttpListener, type HttpListenerOptions, type ListenOn, unreadableAsJson } from '@tunnel/http-shell';
import { EDGE_LIMITS } from '../limits.ts';
import { createRestApp } from './rest-app.ts';
import type { RestDependencies } from './rest-context.ts';

/** Of the REST and of the metrics. Their requests last milliseconds, and the edge has drained before: a stop waits for none. */
export const API_BOUNDS: HttpListenerOptions['bounds'] = {
  headTimeoutMs: EDGE_LIMITS.API_HEAD_TIMEOUT_MS,
  requestTimeoutMs: EDGE_LIMITS.API_REQUEST_TIMEOUT_MS,
  connectionsMax: EDGE_LIMITS.API_CONNECTIONS_MAX,
};

export class RestServer extends HttpListener {
  readonly #app: ReturnType<typeof createRestApp>;

  constructor(on: Omit<ListenOn, 'key'>, deps: RestDependencies) {
    const app = createRestApp(deps);
    const onRequest = getRequestListener((request, env) => app.fetch(request, env));
    super({
      on: { ...on, key: '[server] api_port' },
      onRequest: (request, response) => void onRequest(request, response),
      bounds: API_BOUNDS,
      unreadable: unreadableAsJson(deps.newRequestId),
    });
    this.#app = app;
  }

  /** The same without a socket. */
  async fetch(request: Request): Promise<Response> {
    return this.#app.fetch(request, {});
  }
}
