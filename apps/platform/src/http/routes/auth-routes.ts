// Accounts over HTTP.
import { Fault } from '@tunnel/errors';
import type { Context, MiddlewareHandler } from 'hono';
import type { SigningKeys } from '../../services/auth/access-tokens.ts';
import {
  canVerifyEmail,
  FORGOT_ANSWER,
  forgotPassword,
  RESEND_ANSWER,
  register,
  resendVerification,
  resetPassword,
  verifyEmail,
} from '../../services/auth/accounts.ts';
import type { AuthContext, Caller } from '../../services/auth/auth-context.ts';
import { refresh } from '../../services/auth/refresh-tokens.ts';
import { logIn, logOut } from '../../services/auth/sessions.ts';
import { type AttemptKind, AttemptLimits } from '../auth/attempt-limits.ts';
import { ownOriginOf, RefreshCookie } from '../auth/refresh-cookie.ts';
import { NOT_VERIFIED_PAGE, type Page, VERIFIED_PAGE, wantsPage } from '../pages.ts';
import type { PlatformApp, PlatformEnv } from '../platform-env.ts';
import {
  forgotRoute,
  keysRoute,
  loginRoute,
  logoutRoute,
  refreshRoute,
  registerRoute,
  resendRoute,
  resetRoute,
  verifyRoute,
} from './auth-route-list.ts';
import { addMeRoutes } from './me-routes.ts';

export interface AuthRouteNeeds extends AuthContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly signingKeys: SigningKeys;
  /** The one that is listened on. */
  readonly port: () => number;
}

export const addAuthRoutes = (app: PlatformApp, needs: AuthRouteNeeds): void => {
  const cookie = new RefreshCookie(needs.settings.public_url);
  const limits = new AttemptLimits(needs.settings.limits);
  addSignUpRoutes(app, needs, limits);
  addPasswordRoutes(app, needs, limits);
  addSessionRoutes(app, needs, { cookie, limits });
  addMeRoutes(app, needs, cookie);
  app.openapi(keysRoute, async (context) => context.json(await needs.signingKeys.published(), 200));
};

const addSignUpRoutes = (app: PlatformApp, needs: AuthRouteNeeds, limits: AttemptLimits): void => {
  app.openapi(registerRoute, async (context) => {
    const input = context.req.valid('json');
    await limits.countAddress(context.get('address'));
    await limits.countAccount('mail', input.email);
    return context.json(await register(needs, input), 201);
  });
  app.openapi(verifyRoute, async (context) => {
    const { token } = context.req.valid('param');
    const asked = context.req.method === 'HEAD' ? canVerifyEmail(needs, token) : verifyEmail(needs, token);
    if (!wantsPage(context)) return context.json(await asked, 200);
    try {
      await asked;
    } catch (error) {
      if (error instanceof Fault && error.code === 'MAIL_TOKEN_INVALID')
        return showPage(context, NOT_VERIFIED_PAGE, 400);
      throw error;
    }
    return showPage(context, VERIFIED_PAGE, 200);
  });
  app.openapi(resendRoute, async (context) => {
    const input = context.req.valid('json');
    if (!(await mayTry(context, limits, 'mail', input.email))) return context.json(RESEND_ANSWER, 200);
    return context.json(await resendVerification(needs, input), 200);
  });
};

const addPasswordRoutes = (app: PlatformApp, needs: AuthRouteNeeds, limits: AttemptLimits): void => {
  app.openapi(forgotRoute, async (context) => {
    const input = context.req.valid('json');
    if (!(await mayTry(context, limits, 'mail', input.email))) return context.json(FORGOT_ANSWER, 200);
    return context.json(await forgotPassword(needs, input), 200);
  });
  app.openapi(resetRoute, async (context) => {
    await limits.countAddress(context.get('address'));
    return context.json(await resetPassword(needs, context.req.valid('json')), 200);
  });
};

interface SessionParts {
  readonly cookie: RefreshCookie;
  readonly limits: AttemptLimits;
}

const addSessionRoutes = (app: PlatformApp, needs: AuthRouteNeeds, { cookie, limits }: SessionParts): void => {
  const isOurs = ownOriginOf(needs.settings, needs.port);
  app.openapi(loginRoute, async (context) => {
    const input = context.req.valid('json');
    await limits.countAddress(context.get('address'));
    await limits.countAccount('login', input.email);
    const { body, refreshToken } = await logIn(needs, input, callerOf(context));
    cookie.write(context, refreshToken);
    return context.json(body, 200);
  });
  app.openapi(refreshRoute, async (context) => {
    if (!isOurs(context.req.header('origin'))) throw new Fault('ORIGIN_REFUSED');
    const shown = cookie.read(context);
    if (shown === null) throw new Fault('REFRESH_INVALID');
    const { body, refreshToken } = await refresh(needs, shown, context.get('address'));
    cookie.write(context, refreshToken);
    return context.json(body, 200);
  });
  app.openapi(logoutRoute, async (context) => {
    // Another site gets no sign of what it did not do.
    if (!isOurs(context.req.header('origin'))) return context.body(null, 204);
    const shown = cookie.read(context);
    if (shown !== null) await logOut(needs, shown);
    cookie.clear(context);
    return context.body(null, 204);
  });
};

/** For what answers the same in any case. */
const mayTry = async (
  context: Context<PlatformEnv>,
  limits: AttemptLimits,
  kind: AttemptKind,
  email: string,
): Promise<boolean> => {
  try {
    await limits.countAddress(context.get('address'));
    await limits.countAccount(kind, email);
    return true;
  } catch (error) {
    if (error instanceof Fault && error.code === 'LOGIN_THROTTLED') return false;
    throw error;
  }
};

const callerOf = (context: Context<PlatformEnv>): Caller => ({
  address: context.get('address'),
  userAgent: context.req.header('user-agent') ?? '',
});

const showPage = <S extends 200 | 400>(context: Context<PlatformEnv>, { html, policy }: Page, status: S) => {
  context.header('content-security-policy', policy);
  return context.html(html, status);
};
