// Answers ACME http-01 challenges on the plain port, for every host and before all policies. Requests for unknown tokens are passed to the
// service, which may run an ACME client too, and are never redirected to https.
import type { EdgeResponse, RequestHead } from '@tunnel/http1';
import type { EdgeCertificates } from '../../backend/certificates/edge-certificates.ts';
import type { HttpRouter, RouteDecision, VisitorInfo } from '../../routing/http-router.ts';

type Router = Pick<HttpRouter, 'visitorOf' | 'route'>;

export interface ChallengeRouterOptions {
  readonly router: Router;
  /** HTTP router with the same routes, but without redirects to https. */
  readonly unredirected: Pick<HttpRouter, 'route'>;
  readonly certificates: Pick<EdgeCertificates, 'findChallenge'>;
}

const PREFIX = '/.well-known/acme-challenge/';
const TOKEN = /^[\w-]{1,200}$/;

export class ChallengeRouter {
  readonly #options: ChallengeRouterOptions;

  constructor(options: ChallengeRouterOptions) {
    this.#options = options;
  }

  visitorOf(remoteAddress: string, scheme: VisitorInfo['scheme']): VisitorInfo {
    return this.#options.router.visitorOf(remoteAddress, scheme);
  }

  route(connection: VisitorInfo, head: RequestHead): RouteDecision | Promise<RouteDecision> {
    const { router, unredirected } = this.#options;
    if (connection.scheme === 'https' || !head.path.startsWith(PREFIX)) return router.route(connection, head);
    const token = head.path.slice(PREFIX.length);
    const isAsked = (head.method === 'GET' || head.method === 'HEAD') && TOKEN.test(token);
    return isAsked ? this.#answer(token, connection, head) : unredirected.route(connection, head);
  }

  async #answer(token: string, connection: VisitorInfo, head: RequestHead): Promise<RouteDecision> {
    const { unredirected, certificates } = this.#options;
    const answer = await certificates.findChallenge({ token, host: head.host });
    return answer?.type === 'http-01'
      ? { response: textOf(answer.keyAuthorization) }
      : unredirected.route(connection, head);
  }
}

const textOf = (body: string): EdgeResponse => ({
  status: 200,
  headers: [
    ['content-type', 'text/plain'],
    ['cache-control', 'no-store'],
  ],
  body,
});
