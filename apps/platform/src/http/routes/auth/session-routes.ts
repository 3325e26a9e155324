// Routes for sessions: signing in and out, the caller's account, and the public keys of access tokens.
import { createRoute, z } from '@hono/zod-openapi';
import { accessToken, credentials, loggedIn, publicKeys, userChange, userPublic, userSessions } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { socketOf } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { MasterKey } from '../../../db/master-key.ts';
import type { AuthContext, Caller } from '../../../services/auth/auth-context.ts';
import { refresh } from '../../../services/auth/refresh-tokens.ts';
import { describeAttempt, endSession, listSessions, logIn, logOut } from '../../../services/auth/sessions.ts';
import type { SigningKeys } from '../../../services/auth/signing-keys.ts';
import { showMe, updateMe } from '../../../services/auth/users.ts';
import { type ApiAdmission, isApiLimit } from '../../admission/api-admission.ts';
import type { AttemptLimits } from '../../auth/attempt-limits.ts';
import { BINDING_COOKIE, createOwnOriginCheck, REFRESH_COOKIE, type RefreshCookie } from '../../auth/refresh-cookie.ts';
import type { PlatformApp, PlatformEnv, UserRoutes } from '../../shared/platform-env.ts';
import {
  badBody,
  busy,
  EXTENSIONS,
  json,
  jsonBody,
  noKey,
  refused,
  throttled,
  userRoutes,
} from '../../shared/route-parts.ts';

const tags = ['auth'];
const extensions = ['auth', EXTENSIONS];
const userRoute = userRoutes(...tags);
const extensionRoute = userRoutes(...extensions);
const setsCookie = z.object({
  'set-cookie': z.string().meta({
    description: 'refresh_token, valid for 30 days. Over https also __Host-refresh-binding, required from browsers.',
    examples: ['refresh_token=…; Max-Age=2592000; Path=/auth; HttpOnly; SameSite=Lax'],
  }),
});
/** Cookie parameter for the API documentation, not validated: an invalid token simply has no session. */
const refreshCookie = [
  {
    name: REFRESH_COOKIE,
    in: 'cookie' as const,
    required: false,
    description: 'Set by sign-in and by every refresh.',
    schema: { type: 'string' as const },
  },
];
const bindingCookie = {
  name: BINDING_COOKIE,
  in: 'cookie' as const,
  required: false,
  description: 'Set together with refresh_token over https. Required for requests with an Origin or Sec-Fetch header.',
  schema: { type: 'string' as const },
};

const loginRoute = createRoute({
  method: 'post',
  path: '/auth/login',
  tags,
  summary: 'Sign in with a password',
  security: noKey,
  request: { body: jsonBody(credentials) },
  responses: {
    200: { ...json(loggedIn, 'Signed in. The refresh_token cookie is set.'), headers: setsCookie },
    400: badBody,
    401: refused('The email address or password is wrong.', 'LOGIN_WRONG'),
    403: refused('The account is suspended, not verified yet, or uses an external sign-in.', 'ACCOUNT_UNVERIFIED'),
    429: throttled,
    503: busy,
  },
});

const logoutRoute = createRoute({
  method: 'post',
  path: '/auth/logout',
  tags,
  summary: 'Sign out: end the session and clear the cookie',
  description: 'A request from another origin gets the same response but has no effect.',
  security: noKey,
  parameters: refreshCookie,
  responses: { 204: { description: 'Signed out, or no session existed.' } },
});

const refreshRoute = createRoute({
  method: 'post',
  path: '/auth/refresh',
  tags,
  summary: 'Get a new access token and a new cookie',
  security: noKey,
  parameters: [...refreshCookie, bindingCookie],
  responses: {
    200: { ...json(accessToken, 'An access token valid for 15 minutes.'), headers: setsCookie },
    401: refused(
      'The cookie is missing or sent twice, the session has ended, or the browser did not send the binding cookie.',
      'REFRESH_INVALID',
    ),
    403: refused('The account is suspended, or the request comes from another site.', 'ORIGIN_REFUSED'),
  },
});

const meRoute = userRoute('get', '/auth/me', {
  summary: 'Get the current account',
  responses: { 200: json(userPublic, 'The caller.') },
});

const updateMeRoute = extensionRoute('patch', '/auth/me', {
  summary: 'Change the display name',
  request: { body: jsonBody(userChange) },
  responses: { 200: json(userPublic, 'The updated account.'), 400: badBody },
});

const sessionsRoute = extensionRoute('get', '/auth/sessions', {
  summary: 'List the sessions of the account',
  responses: { 200: json(userSessions, 'Most recently used first.') },
});

const endSessionRoute = extensionRoute('delete', '/auth/sessions/{id}', {
  summary: 'End a session (its access token expires within 15 minutes)',
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the session.' }) }) },
  responses: {
    204: { description: 'The session is ended.' },
    404: refused('The session does not exist or belongs to another account.', 'LOGIN_SESSION_UNKNOWN'),
  },
});

export const keysRoute = createRoute({
  method: 'get',
  path: '/.well-known/jwks.json',
  tags: extensions,
  summary: 'Get the public keys for access tokens',
  security: noKey,
  responses: { 200: json(publicKeys, 'A JSON Web Key Set.') },
});

export interface AuthRouteDeps extends AuthContext, UserRoutes {
  readonly signingKeys: SigningKeys;
  readonly masterKey: () => MasterKey;
  /** Admission of API calls. Absent if every call begins at once. */
  readonly admission?: Pick<ApiAdmission, 'inTurn' | 'networkOf'> | undefined;
  /** Returns the port that the platform listens on. */
  readonly port: () => number;
}

interface SessionParts {
  readonly cookie: RefreshCookie;
  readonly limits: AttemptLimits;
}

export const addSessionRoutes = (app: PlatformApp, deps: AuthRouteDeps, { cookie, limits }: SessionParts): void => {
  const isOurs = createOwnOriginCheck(deps.settings, deps.port);
  app.openapi(loginRoute, async (context) => {
    const input = context.req.valid('json');
    const caller = callerOf(context);
    limits.countAddress(caller.address);
    const attempt = await describeAttempt(deps, input, caller, cookie.read(context));
    limits.beginLogin(attempt);
    const login = await logIn(deps, input, caller);
    limits.loginSucceeded(attempt);
    cookie.write(context, login);
    return context.json(login.body, 200);
  });
  app.openapi(refreshRoute, async (context) => {
    if (!isOurs(context.req.header('origin'))) throw new Fault('ORIGIN_REFUSED');
    const refreshToken = cookie.read(context);
    if (refreshToken === null) throw new Fault('REFRESH_INVALID');
    const address = context.get('address');
    const mayUse = cookie.familyCheck(context);
    const refreshed = await refresh(deps, { refreshToken, address, mayUse });
    cookie.write(context, refreshed);
    return context.json(refreshed.body, 200);
  });
  app.openapi(logoutRoute, async (context) => {
    // A request from another site gets the usual response, to hide that the request had no effect.
    if (!isOurs(context.req.header('origin'))) return context.body(null, 204);
    await endShownSessions(deps, context, cookie.readAll(context));
    cookie.clear(context);
    return context.body(null, 204);
  });
};

/**
 * Ends the sessions of the given tokens. Signing out is never refused, but the lookups take turns, separate from the network's other
 * calls, so that other calls do not delay a sign-out.
 */
const endShownSessions = async (
  deps: AuthRouteDeps,
  context: Context<PlatformEnv>,
  shown: readonly string[],
): Promise<void> => {
  const { admission } = deps;
  if (shown.length === 0) return;
  const endAll = async (): Promise<void> => {
    for (const token of shown) await logOut(deps, token);
  };
  if (admission === undefined) return endAll();
  const { kind, id } = admission.networkOf(context.get('address'));
  try {
    await admission.inTurn(socketOf(context).outgoing, { kind, id: `${id} logout` }, endAll);
  } catch (error) {
    // If the turn does not come in time, the cookie is still cleared, and the session expires when unused.
    if (!isApiLimit(error)) throw error;
  }
};

export const addMeRoutes = (app: PlatformApp, deps: AuthRouteDeps, cookie: RefreshCookie): void => {
  app.use('/auth/me', deps.requireUser);
  app.use('/auth/sessions/*', deps.requireUser);
  app.openapi(meRoute, async (context) => context.json(await showMe(deps, context.get('actor')), 200));
  app.openapi(updateMeRoute, async (context) =>
    context.json(await updateMe(deps, context.get('actor'), context.req.valid('json')), 200),
  );
  app.openapi(sessionsRoute, async (context) =>
    context.json(await listSessions(deps, context.get('actor'), cookie.read(context)), 200),
  );
  app.openapi(endSessionRoute, async (context) => {
    await endSession(deps, context.get('actor'), context.req.valid('param').id);
    return context.body(null, 204);
  });
};

export const callerOf = (context: Context<PlatformEnv>): Caller => ({
  address: context.get('address'),
  userAgent: context.req.header('user-agent') ?? '',
});
