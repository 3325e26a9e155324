// Routes for sign-up, email verification and password resets. The routes for sessions are in session-routes.ts.
import { createRoute, z } from '@hono/zod-openapi';
import { emailOnly, messageBody, passwordReset, registered, registration, signUpTerms } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import {
  canVerifyEmail,
  FORGOT_ANSWER,
  forgotPassword,
  type ProvenEmail,
  RESEND_ANSWER,
  register,
  resendVerification,
  resetPassword,
  verifyEmail,
} from '../../../services/accounts/accounts.ts';
import { showSignUpTerms } from '../../../services/accounts/invites.ts';
import { refreshBinding } from '../../../services/auth/refresh-tokens.ts';
import { registrationMark, signInVerified } from '../../../services/auth/sessions.ts';
import { type AskedMail, AttemptLimits } from '../../auth/attempt-limits.ts';
import { RefreshCookie } from '../../auth/refresh-cookie.ts';
import { RegistrationCookie } from '../../auth/registration-cookie.ts';
import type { PlatformApp, PlatformEnv } from '../../shared/platform-env.ts';
import { badBody, busy, EXTENSIONS, json, jsonBody, noKey, refused, throttled } from '../../shared/route-parts.ts';
import { forAnyPage } from '../oauth/oauth-metadata-routes.ts';
import { ADDRESS_TAKEN_PAGE, NOT_VERIFIED_PAGE, type Page, verifiedPage, wantsPage } from '../pages/pages.ts';
import { addOwnAccountRoutes } from './own-account-routes.ts';
import { type AuthRouteDeps, addMeRoutes, addSessionRoutes, callerOf, keysRoute } from './session-routes.ts';

const tags = ['auth'];
const extensions = ['auth', EXTENSIONS];

const registerRoute = createRoute({
  method: 'post',
  path: '/auth/register',
  tags,
  summary: 'Sign up: create an account and send a verification email',
  security: noKey,
  request: { body: jsonBody(registration) },
  responses: {
    201: json(
      registered,
      'The account is created. The user verifies the email address with the link in the email, unless an invitation already did.',
    ),
    400: badBody,
    403: refused(
      'Sign-up is closed, or sign-up is by invitation and the invitation is missing, used, expired or for another address.',
      'SIGN_UP_BY_INVITATION',
    ),
    409: refused('The email address is already registered.', 'ACCOUNT_EXISTS'),
    429: throttled,
    503: busy,
  },
});

const signUpRoute = createRoute({
  method: 'get',
  path: '/auth/sign-up',
  tags: extensions,
  summary: 'Get the sign-up mode',
  security: noKey,
  request: {
    query: z.object({
      invite: z.string().meta({ description: 'The token from an invitation link.' }).optional(),
    }),
  },
  responses: {
    200: json(signUpTerms, 'The sign-up mode, and the email address of the invitation.'),
    400: badBody,
    429: throttled,
  },
});

const htmlPage = { 'text/html': { schema: z.string() } };

const verifyRoute = createRoute({
  method: 'get',
  path: '/auth/verify-email/{token}',
  tags,
  summary: 'Verify an email address with the link from the email (valid once, for 24 hours)',
  description:
    'After POST /auth/email, the account switches to the new address. Browsers (Accept: text/html) get a small page; the browser used for sign-up is signed in and redirected to the dashboard.',
  security: noKey,
  request: { params: z.object({ token: z.string().meta({ description: 'The token from the email.' }) }) },
  responses: {
    200: {
      description: 'The address is verified.',
      content: { 'application/json': { schema: messageBody }, ...htmlPage },
    },
    303: { description: 'For the browser used for sign-up: signed in and redirected to the dashboard.' },
    400: {
      description: 'The token is unknown, used or expired.',
      content: { ...refused('', 'MAIL_TOKEN_INVALID').content, ...htmlPage },
    },
    409: {
      description: 'Another account took the new address after the email was sent.',
      content: { ...refused('', 'ACCOUNT_EXISTS').content, ...htmlPage },
    },
  },
});

/** Describes a route that requests a mail. The response never reveals whether an account exists. */
const mailRoute = <P extends string>(path: P, route: { readonly tags: string[]; readonly summary: string }) =>
  createRoute({
    method: 'post',
    path,
    ...route,
    security: noKey,
    request: { body: jsonBody(emailOnly) },
    responses: { 200: json(messageBody, 'The response is the same whether or not the account exists.'), 400: badBody },
  });

const resendRoute = mailRoute('/auth/resend-verification', {
  tags: extensions,
  summary: 'Resend the verification email (the response never reveals whether an account exists)',
});

const forgotRoute = mailRoute('/auth/forgot-password', {
  tags,
  summary: 'Request a password reset link (the response never reveals whether an account exists)',
});

const resetRoute = createRoute({
  method: 'post',
  path: '/auth/reset-password',
  tags,
  summary: 'Reset the password with the token from the email; ends every session',
  security: noKey,
  request: { body: jsonBody(passwordReset) },
  responses: {
    200: json(messageBody, 'The password is changed.'),
    400: refused('The token is not valid or has expired, or the password is not allowed.', 'MAIL_TOKEN_INVALID'),
    429: throttled,
    503: busy,
  },
});

export const addAuthRoutes = (app: PlatformApp, deps: AuthRouteDeps): void => {
  const cookie = new RefreshCookie(deps.settings.public_url, (familyId) => refreshBinding(deps.masterKey(), familyId));
  const limits = new AttemptLimits(deps.settings.limits, () => deps.clock.monotonic());
  addSignUpRoutes(app, deps, { cookie, limits });
  addPasswordRoutes(app, deps, limits);
  addSessionRoutes(app, deps, { cookie, limits });
  addMeRoutes(app, deps, cookie);
  addOwnAccountRoutes(app, deps, { cookie, limits });
  app.use(keysRoute.getRoutingPath(), forAnyPage);
  app.openapi(keysRoute, async (context) => context.json(await deps.signingKeys.published(), 200));
};

const addSignUpRoutes = (
  app: PlatformApp,
  deps: AuthRouteDeps,
  { cookie, limits }: { readonly cookie: RefreshCookie; readonly limits: AttemptLimits },
): void => {
  const browserMark = new RegistrationCookie(deps.settings.public_url, (userId, until) =>
    registrationMark(deps.masterKey(), userId, until),
  );
  app.openapi(signUpRoute, async (context) => {
    limits.countAddress(context.get('address'));
    return context.json(await showSignUpTerms(deps, context.req.valid('query').invite), 200);
  });
  app.openapi(registerRoute, async (context) => {
    const input = context.req.valid('json');
    limits.countAddress(context.get('address'));
    limits.countMail('registration', input.email);
    const { userId, body } = await register(deps, input);
    if (body.email_verified !== true) browserMark.write(context, userId, deps.clock.now());
    return context.json(body, 201);
  });
  app.openapi(verifyRoute, async (context) => {
    const { token } = context.req.valid('param');
    if (context.req.method === 'HEAD') return context.json(await canVerifyEmail(deps, token), 200);
    try {
      const proven = await verifyEmail(deps, token);
      if (!wantsPage(context)) return context.json({ message: proven.message }, 200);
      const isSignedIn = await signInWhereRegistered(deps, context, proven, { cookie, browserMark });
      return isSignedIn ? context.redirect(SIGNED_IN, 303) : showPage(context, verifiedPage(proven), 200);
    } catch (error) {
      if (!wantsPage(context) || !(error instanceof Fault)) throw error;
      if (error.code === 'MAIL_TOKEN_INVALID') return showPage(context, NOT_VERIFIED_PAGE, 400);
      if (error.code === 'ACCOUNT_EXISTS') return showPage(context, ADDRESS_TAKEN_PAGE, 409);
      throw error;
    }
  });
  app.openapi(resendRoute, async (context) => {
    const input = context.req.valid('json');
    if (!(await mayAskForMail(context, limits, ['verification', input.email]))) return context.json(RESEND_ANSWER, 200);
    return context.json(await resendVerification(deps, input), 200);
  });
};

/** Redirect target after signing in. Relative, like the links of the pages, because the platform may be served below a path. */
const SIGNED_IN = '../../app/verify?signed_in=yes';

/**
 * Signs in the browser in which the account was registered. Returns false if the browser was not signed in. A browser with a session
 * keeps the session, so that no user is switched to another account without consent.
 */
const signInWhereRegistered = async (
  deps: AuthRouteDeps,
  context: Context<PlatformEnv>,
  { userId, isChange }: ProvenEmail,
  { cookie, browserMark }: { readonly cookie: RefreshCookie; readonly browserMark: RegistrationCookie },
): Promise<boolean> => {
  if (isChange || !browserMark.isOf(context, userId, deps.clock.now())) return false;
  browserMark.clear(context);
  if (cookie.readAll(context).length > 0) return false;
  const session = await signInVerified(deps, userId, callerOf(context));
  if (session !== null) cookie.write(context, session);
  return session !== null;
};

const addPasswordRoutes = (app: PlatformApp, deps: AuthRouteDeps, limits: AttemptLimits): void => {
  app.openapi(forgotRoute, async (context) => {
    const input = context.req.valid('json');
    if (!(await mayAskForMail(context, limits, ['reset', input.email]))) return context.json(FORGOT_ANSWER, 200);
    return context.json(await forgotPassword(deps, input), 200);
  });
  app.openapi(resetRoute, async (context) => {
    limits.countAddress(context.get('address'));
    return context.json(await resetPassword(deps, context.req.valid('json')), 200);
  });
};

/** Counts a request for a mail. Returns false if the limit is reached. Used by routes with the same response in every case. */
const mayAskForMail = async (
  context: Context<PlatformEnv>,
  limits: AttemptLimits,
  [kind, email]: [AskedMail, string],
): Promise<boolean> => {
  try {
    limits.countAddress(context.get('address'));
    limits.countMail(kind, email);
    return true;
  } catch (error) {
    if (error instanceof Fault && error.code === 'LOGIN_THROTTLED') return false;
    throw error;
  }
};

const showPage = <S extends 200 | 400 | 409>(context: Context<PlatformEnv>, { html, policy }: Page, status: S) => {
  context.header('content-security-policy', policy);
  return context.html(html, status);
};
