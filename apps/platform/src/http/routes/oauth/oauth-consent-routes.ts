// Routes for connecting a program (OAuth): the authorization request brought by a browser, and the user's view and decision.
import { createRoute, z } from '@hono/zod-openapi';
import { apiErrorHeaders, oauthDecided, oauthDecision, oauthRequest } from '@tunnel/contract';
import { type ErrorCode, Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import { type AuthorizeContext, authorize } from '../../../services/oauth/authorize.ts';
import type { ClientDocuments } from '../../../services/oauth/client-documents.ts';
import { decideOauthRequest, showOauthRequest } from '../../../services/oauth/decide-request.ts';
import type { AttemptLimits } from '../../auth/attempt-limits.ts';
import type { PlatformApp, PlatformEnv, UserRouteContext } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, jsonBody, noKey, refused, userRoutes, writesPerDay } from '../../shared/route-parts.ts';
import { notConnectedPage } from '../pages/pages.ts';

const tags = ['oauth', EXTENSIONS];
const userRoute = userRoutes(...tags);

const page = (description: string) => ({ description, content: { 'text/html': { schema: z.string() } } });

const authorizeRoute = createRoute({
  method: 'get',
  path: '/oauth/authorize',
  tags,
  summary: 'Ask the user to connect an app (OAuth 2.1, authorization code with PKCE)',
  description:
    'For browsers. A client id is the https URL of a client ID metadata document, or the id of a client registered by the operator. Every redirect has the `iss` parameter.',
  security: noKey,
  request: {
    query: z.object({
      response_type: z.string().meta({ description: '`code`.', examples: ['code'] }),
      client_id: z.string().meta({ examples: ['https://app.example.com/oauth/client.json'] }),
      redirect_uri: z.string().meta({
        description:
          'A redirect URI of the client, character for character: https, or http on localhost, 127.0.0.1 or [::1] with any port.',
        examples: ['http://127.0.0.1:33418/callback'],
      }),
      code_challenge: z.string().meta({ examples: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'] }),
      code_challenge_method: z.string().meta({ description: '`S256`.', examples: ['S256'] }),
      resource: z.string().meta({ description: '`<public_url>/mcp`.', examples: ['https://platform.example.com/mcp'] }),
      scope: z
        .string()
        .meta({
          description: 'The requested scopes, separated by spaces (default: `tunnels:read`).',
          examples: ['tunnels:read'],
        })
        .optional(),
      state: z
        .string()
        .meta({ examples: ['af0ifjsldkj'] })
        .optional(),
    }),
  },
  responses: {
    303: {
      description: "Redirect to the consent page or, with `error`, `state` and `iss`, to the client's redirect URI.",
    },
    400: page('The client or the redirect URI is not valid. A page explains the reason; no redirect happens.'),
    429: page('Too many attempts; see Retry-After.'),
    503: page('Too many clients are being looked up, or the database is not available; see Retry-After.'),
  },
});

const requestId = z.object({
  id: z.string().meta({ description: 'The request id from the consent page.', examples: ['ask_4fK2mQ9xVbT7RsLpZ0aE'] }),
});
const unknownRequest = refused(
  'The request is unknown, already answered, or older than 10 minutes.',
  'OAUTH_REQUEST_UNKNOWN',
);

const showRoute = userRoute('get', '/oauth/requests/{id}', {
  summary: 'Get a connection request',
  request: { params: requestId },
  responses: { 200: json(oauthRequest, 'The pending request.'), 404: unknownRequest },
});

const decideRoute = userRoute('post', '/oauth/requests/{id}/decision', {
  summary: 'Allow or deny a connection request',
  request: { params: requestId, body: jsonBody(oauthDecision) },
  responses: {
    200: json(oauthDecided, 'The URL to send the browser to.'),
    400: refused(
      'The list of scopes is empty, or includes a scope that was not requested. The request stays open.',
      'API_BAD_REQUEST',
      {
        reason: 'scopes: must not be empty',
      },
    ),
    404: unknownRequest,
    429: writesPerDay,
  },
});

export interface OauthConsentDeps extends UserRouteContext, Pick<AuthorizeContext, 'addresses'> {
  readonly clientDocuments: Pick<ClientDocuments, 'find'>;
  readonly limits: Pick<AttemptLimits, 'countAddress'>;
}

export const addOauthConsentRoutes = (app: PlatformApp, deps: OauthConsentDeps): void => {
  // The query is not validated by a schema, because errors in the query must be reported to the client, at its redirect URI.
  app.openAPIRegistry.registerPath(authorizeRoute);
  app.get('/oauth/authorize', (context) => answerAuthorize(context, deps));
  app.use('/oauth/requests/*', deps.requireUser);
  app.openapi(showRoute, async (context) =>
    context.json(await showOauthRequest(deps, context.req.valid('param').id), 200),
  );
  app.openapi(decideRoute, async (context) => {
    const asked = { id: context.req.valid('param').id, decision: context.req.valid('json') };
    return context.json(await decideOauthRequest(deps, context.get('actor'), asked), 200);
  });
};

/** Errors of an authorization request shown to the user as a page, without a redirect. */
const ON_A_PAGE: ReadonlySet<ErrorCode> = new Set([
  'OAUTH_CLIENT_REFUSED',
  'OAUTH_CLIENTS_BUSY',
  'LOGIN_THROTTLED',
] as const);

const answerAuthorize = async (context: Context<PlatformEnv>, deps: OauthConsentDeps): Promise<Response> => {
  const { db, clock, addresses, clientDocuments: documents } = deps;
  const address = context.get('address');
  try {
    deps.limits.countAddress(address);
    const values = (name: string): readonly string[] => context.req.queries(name) ?? [];
    return context.redirect(await authorize({ db, clock, addresses, documents }, values, address), 303);
  } catch (error) {
    if (!(error instanceof Fault) || !ON_A_PAGE.has(error.code)) throw error;
    return showFault(context, error);
  }
};

const showFault = (context: Context<PlatformEnv>, fault: Fault): Response => {
  const { html, policy } = notConnectedPage(fault);
  context.header('content-security-policy', policy);
  for (const [name, value] of Object.entries(apiErrorHeaders(fault))) context.header(name, value);
  return context.html(html, fault.status as 400);
};
