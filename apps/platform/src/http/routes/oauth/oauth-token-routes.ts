// Routes for OAuth tokens and grants. Programs send forms and get responses as defined in RFC 6749; users list and revoke their connected
// apps.
import { createRoute, z } from '@hono/zod-openapi';
import {
  type OauthError,
  oauthError,
  oauthGrants,
  oauthRevokeForm,
  oauthTokenForm,
  oauthTokens,
} from '@tunnel/contract';
import { listGrants, revokeGrant } from '../../../services/oauth/grants.ts';
import {
  redeemCode,
  refreshGrant,
  revokeToken,
  type TokenAnswer,
  type TokenContext,
} from '../../../services/oauth/tokens.ts';
import type { AttemptLimits } from '../../auth/attempt-limits.ts';
import type { PlatformApp, RouteContext, UserRoutes } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, noKey, refused, throttled, userRoutes } from '../../shared/route-parts.ts';
import { type FormFields, readForm } from './read-form.ts';

const tags = ['oauth', EXTENSIONS];
const userRoute = userRoutes(...tags);

const formBody = <T extends z.ZodType>(schema: T) => ({
  required: true,
  content: { 'application/x-www-form-urlencoded': { schema } },
});

/**
 * Route registered only for the API documentation, like the next route. Errors in a form are reported as defined in RFC 6749, unlike in
 * the rest of the API.
 */
const tokenRoute = createRoute({
  method: 'post',
  path: '/oauth/token',
  tags,
  summary: 'Exchange a code or a refresh token for tokens',
  description: 'The refresh token is replaced by a new one. Reusing a code or an old refresh token ends the grant.',
  security: noKey,
  request: { body: formBody(oauthTokenForm) },
  responses: {
    200: json(oauthTokens, 'The tokens. The access token is valid only for /mcp.'),
    400: {
      description: 'An error as defined in RFC 6749.',
      content: {
        'application/json': {
          schema: oauthError,
          example: { error: 'invalid_grant', error_description: 'the code is unknown' } satisfies OauthError,
        },
      },
    },
    429: throttled,
  },
});

const revokeRoute = createRoute({
  method: 'post',
  path: '/oauth/revoke',
  tags,
  summary: 'Revoke the whole grant of a token (RFC 7009)',
  security: noKey,
  request: { body: { ...formBody(oauthRevokeForm), required: false } },
  responses: { 200: { description: 'The grant is ended, or did not exist.' } },
});

const grantsRoute = userRoute('get', '/oauth/grants', {
  summary: 'List connected apps',
  responses: { 200: json(oauthGrants, 'Most recently used first.') },
});

const endGrantRoute = userRoute('delete', '/oauth/grants/{id}', {
  summary: 'Disconnect an app; its tokens are rejected within 2 seconds',
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the grant.' }) }) },
  responses: {
    204: { description: 'The app is disconnected.' },
    404: refused('The grant does not exist or belongs to another account.', 'OAUTH_GRANT_UNKNOWN'),
  },
});

export interface OauthTokenRouteDeps extends TokenContext, UserRoutes, Pick<RouteContext, 'settings'> {
  readonly limits: Pick<AttemptLimits, 'countAddress'>;
}

export const addOauthTokenRoutes = (app: PlatformApp, deps: OauthTokenRouteDeps): void => {
  app.openAPIRegistry.registerPath(tokenRoute);
  app.post(tokenRoute.path, async (context) => {
    deps.limits.countAddress(context.get('address'));
    const { problem, fields } = await readForm(context);
    const answer = problem === null ? await answerForm(deps, fields) : refuse('invalid_request', problem);
    if (answer.kind === 'tokens') return context.json(answer.body, 200);
    return context.json({ error: answer.error, error_description: answer.reason } satisfies OauthError, 400);
  });
  app.openAPIRegistry.registerPath(revokeRoute);
  app.post(revokeRoute.path, async (context) => {
    const { fields } = await readForm(context);
    const token = fields.get('token');
    if (token !== undefined) await revokeToken(deps, { token, clientId: fields.get('client_id') ?? null });
    return context.body(null, 200);
  });
  app.use('/oauth/grants/*', deps.requireUser);
  app.openapi(grantsRoute, async (context) =>
    context.json(
      {
        grants: await listGrants(deps, context.get('actor')),
        ...(deps.settings.mcp.enabled ? {} : { mcp: false as const }),
      },
      200,
    ),
  );
  app.openapi(endGrantRoute, async (context) => {
    await revokeGrant(deps, context.get('actor'), context.req.valid('param').id);
    return context.body(null, 204);
  });
};

interface FormRefusal {
  readonly kind: 'refuse';
  /** Error code defined in RFC 6749. */
  readonly error: 'invalid_request' | 'unsupported_grant_type';
  readonly reason: string;
}

const refuse = (error: FormRefusal['error'], reason: string): FormRefusal => ({ kind: 'refuse', error, reason });

const answerForm = async (context: TokenContext, fields: FormFields): Promise<TokenAnswer | FormRefusal> => {
  const grantType = fields.get('grant_type');
  const needed = grantType === undefined ? ['grant_type'] : NEEDED.get(grantType);
  if (needed === undefined) {
    return refuse('unsupported_grant_type', 'grant_type: must be authorization_code or refresh_token');
  }
  const missing = needed.find((name) => !fields.has(name));
  if (missing !== undefined) return refuse('invalid_request', `${missing}: is missing`);
  const field = (name: string): string => fields.get(name) ?? '';
  const shared = { clientId: field('client_id'), resource: fields.get('resource') ?? null };
  if (grantType === 'authorization_code') {
    const code = field('code');
    const redirectUri = field('redirect_uri');
    const verifier = field('code_verifier');
    return redeemCode(context, { ...shared, code, redirectUri, verifier });
  }
  const words = field('scope').split(' ').filter(Boolean);
  const scopes = words.length === 0 ? null : words;
  return refreshGrant(context, { ...shared, refreshToken: field('refresh_token'), scopes });
};

/** Required form fields by grant type. Scopes are not required: a code has fixed scopes, and a refresh token can only reduce the scopes. */
const NEEDED: ReadonlyMap<string, readonly string[]> = new Map([
  ['authorization_code', ['client_id', 'code', 'redirect_uri', 'code_verifier']],
  ['refresh_token', ['client_id', 'refresh_token']],
]);
