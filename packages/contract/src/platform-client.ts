// Typed client of the platform API on top of a given `fetch`. The caller stores the tokens and renews expired tokens.
import type * as z from 'zod';
import { type TunnelPolicy, tunnelPolicy } from './edge-policy.ts';
import {
  type CapturedRequest,
  type CaptureList,
  type CapturePageQuery,
  capturedRequest,
  captureList,
  type EdgeFlows,
  type EdgePeers,
  edgeFlows,
  edgePeers,
  type ReplayEdit,
} from './edge-rest.ts';
import { type HealthEvent, healthEvents, type PlatformPools, platformPools } from './groups.ts';
import {
  type AccessToken,
  type AccountDeletion,
  accessToken,
  type Credentials,
  type EmailChange,
  type LoggedIn,
  loggedIn,
  type MessageBody,
  messageBody,
  type PasswordChange,
  type PasswordChanged,
  type PasswordReset,
  passwordChanged,
  type Registered,
  type Registration,
  registered,
  type SignUpTerms,
  signUpTerms,
  type UserChange,
  type UserPublic,
  type UserSession,
  userPublic,
  userSessions,
} from './platform-auth.ts';
import {
  type BillingStatus,
  type BillingUsage,
  billingStatus,
  billingUsage,
  type InvoiceList,
  invoiceList,
  type PortalOrder,
  type PortalSession,
  portalSession,
  type SetupIntent,
  type SpendCap,
  type StartedSubscription,
  setupIntent,
  spendCap,
  startedSubscription,
} from './platform-billing.ts';
import { type Answered, type PlatformCall, PlatformCaller, type PlatformClientOptions } from './platform-call.ts';
import { type NewDomain, type OwnDomainView, ownDomain, ownDomains } from './platform-domains.ts';
import { type ApiToken, apiTokens, type CreatedKey, createdKey, type NewKey } from './platform-keys.ts';
import {
  type OauthDecided,
  type OauthDecision,
  type OauthGrants,
  type OauthRequest,
  oauthDecided,
  oauthGrants,
  oauthRequest,
} from './platform-oauth.ts';
import { type NewReservation, type Reservation, reservation, reservations } from './platform-reservations.ts';
import {
  type TunnelLogEntry,
  type TunnelLogQuery,
  tunnelLog,
  tunnelLogEntry,
  type UnguardedTunnels,
  type UsageChartPoint,
  type UsageRegion,
  type UsageSummary,
  unguardedTunnels,
  usageChart,
  usageRegions,
  usageSummary,
} from './platform-usage.ts';

/** Response that sets a refresh token. `refreshToken` is null in a browser, which hides the cookie from scripts. */
export interface WithRefreshToken<T> {
  readonly body: T;
  readonly refreshToken: string | null;
}

export interface BillingOrder {
  /** Key that identifies retries of the same order: 1 to 255 printable ASCII characters. */
  readonly idempotencyKey?: string;
}

const COOKIE = /(?:^|,\s*)refresh_token=([^;,\s]+)/;

export class PlatformClient {
  readonly #caller: PlatformCaller;

  constructor(options: PlatformClientOptions) {
    this.#caller = new PlatformCaller(options);
  }

  /** Returns who can sign up, and the email address of an invitation. */
  signUpTerms(invite?: string): Promise<SignUpTerms> {
    const query = invite === undefined ? '' : `?invite=${encodeURIComponent(invite)}`;
    return this.#ask({ method: 'GET', path: `/auth/sign-up${query}`, answer: signUpTerms });
  }

  register(body: Registration): Promise<Registered> {
    return this.#ask({ method: 'POST', path: '/auth/register', body, answer: registered });
  }

  verifyEmail(token: string): Promise<MessageBody> {
    return this.#ask({ method: 'GET', path: `/auth/verify-email/${encodeURIComponent(token)}`, answer: messageBody });
  }

  resendVerification(email: string): Promise<MessageBody> {
    return this.#ask({ method: 'POST', path: '/auth/resend-verification', body: { email }, answer: messageBody });
  }

  async logIn(body: Credentials): Promise<WithRefreshToken<LoggedIn>> {
    return withCookie(await this.#caller.call({ method: 'POST', path: '/auth/login', body, answer: loggedIn }));
  }

  /**
   * Exchanges a refresh token for an access token. Without an argument, the browser's cookie is used. The caller must store the returned
   * refresh token, which replaces the old token.
   */
  async refresh(refreshToken?: string): Promise<WithRefreshToken<AccessToken>> {
    return withCookie(
      await this.#caller.call({ method: 'POST', path: '/auth/refresh', refreshToken, answer: accessToken }),
    );
  }

  logOut(refreshToken?: string): Promise<void> {
    return this.#ask<never>({ method: 'POST', path: '/auth/logout', refreshToken, answer: null });
  }

  forgotPassword(email: string): Promise<MessageBody> {
    return this.#ask({ method: 'POST', path: '/auth/forgot-password', body: { email }, answer: messageBody });
  }

  resetPassword(body: PasswordReset): Promise<MessageBody> {
    return this.#ask({ method: 'POST', path: '/auth/reset-password', body, answer: messageBody });
  }

  me(): Promise<UserPublic> {
    return this.#get('/auth/me', userPublic);
  }

  updateMe(body: UserChange): Promise<UserPublic> {
    return this.#ask({ method: 'PATCH', path: '/auth/me', body, bearer: true, answer: userPublic });
  }

  /**
   * Changes the password and ends all other sessions. In a browser, the cookie identifies the current session; elsewhere, pass the
   * session's refresh token.
   */
  changePassword(body: PasswordChange, refreshToken?: string): Promise<PasswordChanged> {
    return this.#ask({
      method: 'POST',
      path: '/auth/password',
      body,
      bearer: true,
      refreshToken,
      answer: passwordChanged,
    });
  }

  /** Requests a change of the email address. The change takes effect when the user opens the link sent to the new address. */
  changeEmail(body: EmailChange): Promise<MessageBody> {
    return this.#ask({ method: 'POST', path: '/auth/email', body, bearer: true, answer: messageBody });
  }

  /** Deletes the account. The deletion cannot be undone. */
  deleteAccount(body: AccountDeletion): Promise<void> {
    return this.#ask<never>({ method: 'DELETE', path: '/auth/me', body, bearer: true, answer: null });
  }

  sessions(): Promise<UserSession[]> {
    return this.#get('/auth/sessions', userSessions);
  }

  endSession(id: string): Promise<void> {
    return this.#delete(`/auth/sessions/${encodeURIComponent(id)}`);
  }

  keys(): Promise<ApiToken[]> {
    return this.#get('/keys', apiTokens);
  }

  createKey(body: NewKey): Promise<CreatedKey> {
    return this.#ask({ method: 'POST', path: '/keys', body, bearer: true, answer: createdKey });
  }

  revokeKey(id: string): Promise<void> {
    return this.#delete(`/keys/${encodeURIComponent(id)}`);
  }

  usage(): Promise<UsageSummary> {
    return this.#get('/usage', usageSummary);
  }

  usageChart(query: { readonly days?: number } = {}): Promise<UsageChartPoint[]> {
    return this.#get(`/usage/chart${queryText(query)}`, usageChart);
  }

  tunnels(query: TunnelLogQuery = {}): Promise<TunnelLogEntry[]> {
    return this.#get(`/usage/tunnels${queryText(query)}`, tunnelLog);
  }

  regions(): Promise<UsageRegion[]> {
    return this.#get('/usage/regions', usageRegions);
  }

  tunnel(id: string): Promise<TunnelLogEntry> {
    return this.#get(tunnelPath(id), tunnelLogEntry);
  }

  /** Closes a live tunnel of the account, on any computer. The client does not reopen the tunnel. */
  closeTunnel(id: string): Promise<void> {
    return this.#delete(`/tunnels/${encodeURIComponent(id)}`);
  }

  requests(id: string, query: Partial<CapturePageQuery> & { readonly answered?: boolean } = {}): Promise<CaptureList> {
    return this.#get(`${tunnelPath(id)}/requests${queryText(query)}`, captureList);
  }

  replay(id: string, requestId: string, edit?: ReplayEdit): Promise<CapturedRequest> {
    const path = `${tunnelPath(id)}/requests/${encodeURIComponent(requestId)}/replay`;
    const body = edit === undefined ? {} : { body: edit };
    return this.#ask({ method: 'POST', path, ...body, bearer: true, answer: capturedRequest });
  }

  healthEvents(id: string): Promise<HealthEvent[]> {
    return this.#get(`${tunnelPath(id)}/health-events`, healthEvents);
  }

  flows(id: string): Promise<EdgeFlows> {
    return this.#get(`${tunnelPath(id)}/flows`, edgeFlows);
  }

  /** Returns the policy of a tunnel. Fails with 404 if the tunnel has no policy or has ended. */
  policy(id: string): Promise<TunnelPolicy> {
    return this.#get(`${tunnelPath(id)}/policy`, tunnelPolicy);
  }

  /** Returns the live tunnels that are open to any visitor with the address. */
  unguardedTunnels(): Promise<UnguardedTunnels> {
    return this.#get('/usage/unguarded', unguardedTunnels);
  }

  peers(id: string): Promise<EdgePeers> {
    return this.#get(`${tunnelPath(id)}/peers`, edgePeers);
  }

  dismissPeer(id: string, peerId: string): Promise<void> {
    return this.#delete(`${tunnelPath(id)}/peers/${encodeURIComponent(peerId)}`);
  }

  reservations(): Promise<Reservation[]> {
    return this.#get('/reservations', reservations);
  }

  /** Reserves a name or port. A name that the account already holds becomes reserved; an existing reservation stays unchanged. */
  reserve(body: NewReservation): Promise<Reservation> {
    return this.#ask({ method: 'POST', path: '/reservations', body, bearer: true, answer: reservation });
  }

  release(id: string): Promise<void> {
    return this.#delete(`/reservations/${encodeURIComponent(id)}`);
  }

  domains(): Promise<OwnDomainView[]> {
    return this.#get('/domains', ownDomains);
  }

  domain(id: string): Promise<OwnDomainView> {
    return this.#get(`/domains/${encodeURIComponent(id)}`, ownDomain);
  }

  /** Adds a custom domain. A domain that the account already has is returned unchanged. */
  addDomain(body: NewDomain): Promise<OwnDomainView> {
    return this.#ask({ method: 'POST', path: '/domains', body, bearer: true, answer: ownDomain });
  }

  checkDomain(id: string): Promise<OwnDomainView> {
    const path = `/domains/${encodeURIComponent(id)}/check`;
    return this.#ask({ method: 'POST', path, body: {}, bearer: true, answer: ownDomain });
  }

  removeDomain(id: string): Promise<void> {
    return this.#delete(`/domains/${encodeURIComponent(id)}`);
  }

  pools(): Promise<PlatformPools> {
    return this.#get('/load-balancing/groups', platformPools);
  }

  billing(): Promise<BillingStatus> {
    return this.#get('/billing', billingStatus);
  }

  billingUsage(): Promise<BillingUsage> {
    return this.#get('/billing/usage', billingUsage);
  }

  /** Starts a subscription. A retry must use the same idempotency key, so that the order is placed only once. */
  subscribe(order: BillingOrder = {}): Promise<StartedSubscription> {
    return this.#ask({
      method: 'POST',
      path: '/billing/subscribe',
      ...order,
      bearer: true,
      answer: startedSubscription,
    });
  }

  createSetupIntent(order: BillingOrder = {}): Promise<SetupIntent> {
    return this.#ask({ method: 'POST', path: '/billing/setup-intent', ...order, bearer: true, answer: setupIntent });
  }

  openPortal(body: PortalOrder, order: BillingOrder = {}): Promise<PortalSession> {
    return this.#ask({ method: 'POST', path: '/billing/portal', body, ...order, bearer: true, answer: portalSession });
  }

  invoices(): Promise<InvoiceList> {
    return this.#get('/billing/invoices', invoiceList);
  }

  setSpendCap(body: SpendCap): Promise<SpendCap> {
    return this.#ask({ method: 'PATCH', path: '/billing/spend-cap', body, bearer: true, answer: spendCap });
  }

  /** Returns the pending request of an app that wants to connect to the account. */
  oauthRequest(id: string): Promise<OauthRequest> {
    return this.#get(`/oauth/requests/${encodeURIComponent(id)}`, oauthRequest);
  }

  /** Approves or denies an app's request. A request can be decided only once. */
  decideOauthRequest(id: string, body: OauthDecision): Promise<OauthDecided> {
    const path = `/oauth/requests/${encodeURIComponent(id)}/decision`;
    return this.#ask({ method: 'POST', path, body, bearer: true, answer: oauthDecided });
  }

  /** Returns the apps connected to the account. */
  oauthGrants(): Promise<OauthGrants> {
    return this.#get('/oauth/grants', oauthGrants);
  }

  revokeOauthGrant(id: string): Promise<void> {
    return this.#delete(`/oauth/grants/${encodeURIComponent(id)}`);
  }

  #get<T>(path: string, answer: z.ZodType<T, T>): Promise<T> {
    return this.#ask({ method: 'GET', path, bearer: true, answer });
  }

  #delete(path: string): Promise<void> {
    return this.#ask<never>({ method: 'DELETE', path, bearer: true, answer: null });
  }

  async #ask<T>(call: PlatformCall<T>): Promise<T> {
    return (await this.#caller.call(call)).body;
  }
}

const tunnelPath = (id: string): string => `/usage/tunnels/${encodeURIComponent(id)}`;

const queryText = (query: object): string => {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`],
  );
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
};

const withCookie = <T>({ body, headers }: Answered<T>): WithRefreshToken<T> => ({
  body,
  refreshToken: COOKIE.exec(headers.get('set-cookie') ?? '')?.[1] ?? null,
});
