// The edge REST on its own port.
import { getRequestListener } from '@hono/node-server';
import { apiErrorOf } from '@tunnel/contract';
import { HttpListener } from './http-listener.ts';
import type { ListenOn } from './listen-or-fault.ts';
import { createRestApp } from './rest-app.ts';
import type { RestDependencies } from './rest-context.ts';

export class RestServer extends HttpListener {
  readonly #app: ReturnType<typeof createRestApp>;

  constructor(on: Omit<ListenOn, 'key'>, deps: RestDependencies) {
    const app = createRestApp(deps);
    const onRequest = getRequestListener((request, env) => app.fetch(request, env));
    super(
      { ...on, key: '[server] api_port' },
      (request, response) => void onRequest(request, response),
      (fault) => {
        const requestId = deps.newRequestId();
        return {
          headers: { 'content-type': 'application/json', 'x-request-id': requestId },
          body: JSON.stringify(apiErrorOf(fault, requestId)),
        };
      },
    );
    this.#app = app;
  }

  /** The same without a socket. */
  async fetch(request: Request): Promise<Response> {
    return this.#app.fetch(request, {});
  }
}
