// The routes of accounts as the OpenAPI document tells them. What they do is in auth-routes.ts.
import { createRoute, z } from '@hono/zod-openapi';
import {
  accessToken,
  credentials,
  emailOnly,
  loggedIn,
  messageBody,
  passwordReset,
  publicKeys,
  registration,
  userChange,
  userPublic,
  userSessions,
} from '@tunnel/contract';
import { EXTENSIONS, json, jsonBody, refused, userRefusals, withUser } from '../route-parts.ts';

const tags = ['auth'];
const extensions = ['auth', EXTENSIONS];
const noKey: never[] = [];

const badBody = refused('A field is missing, of the wrong type, or breaks a rule.', 'API_BAD_REQUEST', {
  reason: 'email: must be an e-mail address',
});
const throttled = refused('Too many attempts; see Retry-After.', 'LOGIN_THROTTLED', { seconds: 42 });
const busy = refused('Too many passwords are being checked, or the database is away; see Retry-After.', 'LOGIN_BUSY');
const setsCookie = z.object({
  'set-cookie': z.string().meta({
    description: 'refresh_token, for 30 days.',
    examples: ['refresh_token=…; Max-Age=2592000; Path=/auth; HttpOnly; SameSite=Lax'],
  }),
});
/** Told, and not checked: whatever is no token of ours has no session. */
const refreshCookie = [
  {
    name: 'refresh_token',
    in: 'cookie' as const,
    required: false,
    description: 'Set by login and by the refresh before.',
    schema: { type: 'string' as const },
  },
];

export const registerRoute = createRoute({
  method: 'post',
  path: '/auth/register',
  tags,
  summary: 'Make an account; a mail with a link proves its address',
  security: noKey,
  request: { body: jsonBody(registration) },
  responses: {
    201: json(messageBody, 'It is made; open the link in the mail.'),
    400: badBody,
    409: refused('The address is registered already.', 'ACCOUNT_EXISTS'),
    429: throttled,
    503: busy,
  },
});

const htmlPage = { 'text/html': { schema: z.string() } };

export const verifyRoute = createRoute({
  method: 'get',
  path: '/auth/verify-email/{token}',
  tags,
  summary: 'Prove an address: the link of the mail. Works once, for 24 hours',
  description: 'Browsers, which ask for text/html, get a small page.',
  security: noKey,
  request: { params: z.object({ token: z.string().meta({ description: 'From the mail.' }) }) },
  responses: {
    200: {
      description: 'The address is verified.',
      content: { 'application/json': { schema: messageBody }, ...htmlPage },
    },
    400: {
      description: 'The token is unknown, was used before, or has run out.',
      content: { ...refused('', 'MAIL_TOKEN_INVALID').content, ...htmlPage },
    },
  },
});

export const loginRoute = createRoute({
  method: 'post',
  path: '/auth/login',
  tags,
  summary: 'Log in with a password',
  security: noKey,
  request: { body: jsonBody(credentials) },
  responses: {
    200: { ...json(loggedIn, 'Logged in; the cookie refresh_token is set.'), headers: setsCookie },
    400: badBody,
    401: refused('The address or the password is wrong.', 'LOGIN_WRONG'),
    403: refused('Suspended, not verified yet, or an account of an external sign-in.', 'ACCOUNT_UNVERIFIED'),
    429: throttled,
    503: busy,
  },
});

export const logoutRoute = createRoute({
  method: 'post',
  path: '/auth/logout',
  tags,
  summary: 'Log out here: ends the session and clears the cookie',
  description: 'A request whose Origin is not ours gets the same answer, and changes nothing.',
  security: noKey,
  parameters: refreshCookie,
  responses: { 204: { description: 'Logged out, or there was no session.' } },
});

export const refreshRoute = createRoute({
  method: 'post',
  path: '/auth/refresh',
  tags,
  summary: 'A new access token for the cookie, which is replaced',
  security: noKey,
  parameters: refreshCookie,
  responses: {
    200: { ...json(accessToken, 'For another 15 minutes.'), headers: setsCookie },
    401: refused('No cookie, or its session has ended.', 'REFRESH_INVALID'),
    403: refused('The account is suspended, or the request comes from another site.', 'ORIGIN_REFUSED'),
  },
});

export const meRoute = createRoute({
  method: 'get',
  path: '/auth/me',
  tags,
  summary: 'Who am I?',
  security: withUser,
  responses: { 200: json(userPublic, 'The caller.'), ...userRefusals },
});

export const updateMeRoute = createRoute({
  method: 'patch',
  path: '/auth/me',
  tags: extensions,
  summary: 'Change the name that is shown',
  security: withUser,
  request: { body: jsonBody(userChange) },
  responses: { 200: json(userPublic, 'The caller, changed.'), 400: badBody, ...userRefusals },
});

export const forgotRoute = createRoute({
  method: 'post',
  path: '/auth/forgot-password',
  tags,
  summary: 'Ask for a link to choose a new password; the answer is always the same',
  security: noKey,
  request: { body: jsonBody(emailOnly) },
  responses: { 200: json(messageBody, 'Whether or not there is such an account.'), 400: badBody },
});

export const resetRoute = createRoute({
  method: 'post',
  path: '/auth/reset-password',
  tags,
  summary: 'Choose a new password with the token of a mail; ends all sessions',
  security: noKey,
  request: { body: jsonBody(passwordReset) },
  responses: {
    200: json(messageBody, 'The password is changed.'),
    400: refused('The token is not valid (any more), or the password breaks a rule.', 'MAIL_TOKEN_INVALID'),
    429: throttled,
    503: busy,
  },
});

export const resendRoute = createRoute({
  method: 'post',
  path: '/auth/resend-verification',
  tags: extensions,
  summary: 'Ask for the verification mail again; the answer is always the same',
  security: noKey,
  request: { body: jsonBody(emailOnly) },
  responses: { 200: json(messageBody, 'Whether or not there is such an account.'), 400: badBody },
});

export const sessionsRoute = createRoute({
  method: 'get',
  path: '/auth/sessions',
  tags: extensions,
  summary: 'Where am I logged in?',
  security: withUser,
  responses: { 200: json(userSessions, 'The one used last first.'), ...userRefusals },
});

export const endSessionRoute = createRoute({
  method: 'delete',
  path: '/auth/sessions/{id}',
  tags: extensions,
  summary: 'Log out somewhere else; an access token it holds runs out within 15 minutes',
  security: withUser,
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the session.' }) }) },
  responses: {
    204: { description: 'It is ended.' },
    ...userRefusals,
    404: refused('No such session, or not yours.', 'LOGIN_SESSION_UNKNOWN'),
  },
});

export const keysRoute = createRoute({
  method: 'get',
  path: '/.well-known/jwks.json',
  tags: extensions,
  summary: 'The public keys of access tokens',
  security: noKey,
  responses: { 200: json(publicKeys, 'A JSON Web Key Set.') },
});
