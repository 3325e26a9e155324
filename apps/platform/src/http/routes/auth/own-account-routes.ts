// Routes for owners to change the password or email address of their account, or to delete the account. These routes require the password
// in addition to the access token, because the changes cannot be undone.
import { accountDeletion, emailChange, messageBody, passwordChange, passwordChanged } from '@tunnel/contract';
import type { Context } from 'hono';
import { changeEmail } from '../../../services/accounts/change-email.ts';
import { deleteOwnAccount } from '../../../services/accounts/delete-account.ts';
import { changePassword } from '../../../services/auth/own-password.ts';
import type { AttemptLimits } from '../../auth/attempt-limits.ts';
import type { RefreshCookie } from '../../auth/refresh-cookie.ts';
import type { PlatformApp, PlatformEnv } from '../../shared/platform-env.ts';
import { badBody, busy, EXTENSIONS, json, jsonBody, refused, throttled, userRoutes } from '../../shared/route-parts.ts';
import type { AuthRouteDeps } from './session-routes.ts';

const userRoute = userRoutes('auth', EXTENSIONS);

const refusals = {
  400: badBody,
  401: refused('The password is wrong, or the access token is not accepted.', 'PASSWORD_WRONG'),
  403: refused('The account is suspended, or uses an external sign-in and has no password.', 'ACCOUNT_EXTERNAL', {
    method: 'github',
  }),
  429: throttled,
  503: busy,
};

const passwordRoute = userRoute('post', '/auth/password', {
  summary: 'Change the password and end the other sessions',
  description: 'The session sent as a cookie stays signed in. Earlier access tokens are revoked.',
  request: { body: jsonBody(passwordChange) },
  responses: { 200: json(passwordChanged, 'Changed.'), ...refusals },
});

const emailRoute = userRoute('post', '/auth/email', {
  summary: 'Change the email address (confirmed by a link sent to the new address)',
  request: { body: jsonBody(emailChange) },
  responses: { 200: json(messageBody, 'The response is the same whether or not the address is taken.'), ...refusals },
});

const deleteRoute = userRoute('delete', '/auth/me', {
  summary: 'Delete the account permanently',
  description:
    'Tunnels close within seconds, keys are revoked and the subscription ends. Personal data is deleted; invoices and daily totals are kept without personal data.',
  request: { body: jsonBody(accountDeletion) },
  responses: { 204: { description: 'The account is deleted.' }, ...refusals },
});

interface OwnAccountParts {
  readonly cookie: RefreshCookie;
  readonly limits: AttemptLimits;
}

export const addOwnAccountRoutes = (
  app: PlatformApp,
  deps: AuthRouteDeps,
  { cookie, limits }: OwnAccountParts,
): void => {
  app.use('/auth/password', deps.requireUser);
  app.use('/auth/email', deps.requireUser);
  const count = async (context: Context<PlatformEnv>): Promise<void> => {
    limits.countAddress(context.get('address'));
    limits.countPassword(context.get('actor').userId);
  };
  app.openapi(passwordRoute, async (context) => {
    await count(context);
    const input = { ...context.req.valid('json'), refreshToken: cookie.read(context) };
    return context.json(await changePassword(deps, context.get('actor'), input), 200);
  });
  app.openapi(emailRoute, async (context) => {
    await count(context);
    return context.json(await changeEmail(deps, context.get('actor'), context.req.valid('json')), 200);
  });
  app.openapi(deleteRoute, async (context) => {
    await count(context);
    await deleteOwnAccount(deps, context.get('actor'), context.req.valid('json').password);
    cookie.clear(context);
    return context.body(null, 204);
  });
};
