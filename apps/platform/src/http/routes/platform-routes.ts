// Adds all routes of the platform, with their dependencies beyond the services' context.
import type { Secret } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import type { McpEndpoint } from '../../mcp/mcp-endpoint.ts';
import type { AccessTokens } from '../../services/auth/access-tokens.ts';
import { PasswordHasher } from '../../services/auth/password-hasher.ts';
import type { SigningKeys } from '../../services/auth/signing-keys.ts';
import { UserCache } from '../../services/auth/users.ts';
import type { BillingContext } from '../../services/billing/billing-account.ts';
import type { DomainsContext } from '../../services/domains/own-domains.ts';
import { KnownKeys } from '../../services/keys/verify-key.ts';
import type { ClientDocuments } from '../../services/oauth/client-documents.ts';
import { GrantCache } from '../../services/oauth/grants.ts';
import { SignedMcpTokens } from '../../services/oauth/mcp-tokens.ts';
import { oauthAddresses } from '../../services/oauth/oauth-addresses.ts';
import type { GroupEdges, TunnelEdges } from '../../services/usage/edge-state.ts';
import type { LivingTunnelEdges } from '../../services/usage/living-tunnels.ts';
import type { ApiAdmission } from '../admission/api-admission.ts';
import { AttemptLimits } from '../auth/attempt-limits.ts';
import { requireUser } from '../auth/require-actor.ts';
import type { PlatformApp, RouteContext } from '../shared/platform-env.ts';
import { addAuthRoutes } from './auth/auth-routes.ts';
import { addBillingRoutes } from './billing/billing-routes.ts';
import { addDomainRoutes } from './domains/domain-routes.ts';
import { addDownloadRoutes } from './downloads/download-routes.ts';
import { addChallengeRoutes } from './edges/challenge-routes.ts';
import { addEdgeLinkRoutes, type EdgeLinkDeps } from './edges/edge-link-routes.ts';
import { addKeyRoutes } from './keys/key-routes.ts';
import { addMcpRoutes, type McpRouteDeps } from './mcp/mcp-routes.ts';
import { addReservationRoutes } from './names/reservation-routes.ts';
import { addOauthConsentRoutes } from './oauth/oauth-consent-routes.ts';
import { addOauthMetadataRoutes } from './oauth/oauth-metadata-routes.ts';
import { addOauthTokenRoutes } from './oauth/oauth-token-routes.ts';
import { addHealthRoutes } from './operations/health-routes.ts';
import { addMetricsRoutes } from './operations/metrics-routes.ts';
import { type MetricsContext, PlatformMetrics } from './operations/platform-metrics.ts';
import { addDashboardRoutes } from './pages/dashboard-routes.ts';
import { addDocsRoutes } from './pages/docs-routes.ts';
import { addGuideRoutes } from './pages/guide-routes.ts';
import type { StaticFiles } from './pages/static-files.ts';
import { addLoadBalancingRoutes, addUsageRoutes } from './usage/usage-routes.ts';

export interface PlatformRouteDeps
  extends RouteContext,
    Omit<EdgeLinkDeps, 'strangers'>,
    DomainsContext,
    AccountTokens {
  /** Database connections reserved for calls of edges. */
  readonly linkDb: Db;
  /** Admission of API calls, which limits calls per account and network. */
  readonly admission: ApiAdmission;
  /** Label of the platform's host below the server's domain, which no account can reserve. */
  readonly platformLabel?: string | null;
  /** The configuration value `[limits] account_share`. */
  readonly accountShare: number;
  readonly edges: GroupEdges & TunnelEdges & LivingTunnelEdges;
  readonly billing: BillingContext;
  /** Files of the dashboard. Null if the dashboard has not been built. */
  readonly dashboard: StaticFiles | null;
  /** Files of the viewer for the API documentation. */
  readonly viewer: StaticFiles;
  /** Files of the guide. Empty if the guide has not been built. */
  readonly guide: StaticFiles;
  /** Metadata documents of OAuth clients that ask to be connected. */
  readonly clientDocuments: ClientDocuments;
  /** Wakes the mail sender. Called when a mail has been added to the outbox. */
  readonly wakeMailer: () => void;
  /** Called when the invitation for the first account has been used. */
  readonly firstAccountMade: () => void;
  /** Returns the port that the platform listens on. */
  readonly port: () => number;
  /** The operator's token for reading the metrics. */
  readonly adminToken: Secret;
  readonly ordering: MetricsContext['ordering'];
  readonly backups: MetricsContext['backups'];
  readonly droppedSpans: MetricsContext['droppedSpans'];
}

/** Access tokens, and the keys that sign the tokens. */
export interface AccountTokens {
  readonly signingKeys: SigningKeys;
  readonly accessTokens: AccessTokens;
}

export const addPlatformRoutes = (app: PlatformApp, deps: PlatformRouteDeps): void => {
  const { db, clock, settings, signingKeys, accessTokens, linkDb, admission } = deps;
  const accounts = {
    passwords: new PasswordHasher(),
    accessTokens,
    users: new UserCache({ db, clock }),
  };
  const withUser = { ...deps, requireUser: requireUser(accounts) };
  const oauth = makeOauth(deps, { ...accounts, keys: signingKeys });
  addHealthRoutes(app, deps);
  addAuthRoutes(app, { ...withUser, ...accounts, signingKeys });
  addKeyRoutes(app, withUser);
  addUsageRoutes(app, withUser);
  addReservationRoutes(app, withUser);
  addDomainRoutes(app, withUser);
  addLoadBalancingRoutes(app, withUser);
  addBillingRoutes(app, { ...deps.billing, requireUser: withUser.requireUser });
  addEdgeLinkRoutes(app, { ...deps, db: linkDb, strangers: { db, admission } });
  addChallengeRoutes(app, deps);
  addOauthConsentRoutes(app, { ...withUser, ...oauth });
  addOauthMetadataRoutes(app, { ...oauth, hasMcp: settings.mcp.enabled });
  addOauthTokenRoutes(app, { ...withUser, ...oauth });
  const metrics = new PlatformMetrics({ ...deps, db: linkDb });
  addMetricsRoutes(app, { metrics, adminToken: deps.adminToken });
  if (settings.mcp.enabled) addMcp(app, { ...deps, users: accounts.users, tokens: oauth.mcpTokens, metrics });
  // Before the files of the API reference, which are below /docs too.
  addGuideRoutes(app, deps.guide);
  addDocsRoutes(app, deps);
  addDashboardRoutes(app, deps.dashboard);
  addDownloadRoutes(app, deps);
};

interface McpParts extends PlatformRouteDeps, Pick<McpRouteDeps, 'tokens'> {
  readonly users: UserCache;
  readonly metrics: PlatformMetrics;
}

const addMcp = (app: PlatformApp, parts: McpParts): void => {
  const { settings, port, tokens, admission } = parts;
  let loading: Promise<McpEndpoint> | null = null;
  const endpoint = (): Promise<McpEndpoint> => {
    loading ??= loadEndpoint(parts);
    return loading;
  };
  addMcpRoutes(app, { settings, port, endpoint, tokens, keys: new KnownKeys(parts), admission });
};

/** Loads the MCP endpoint. The MCP library takes several MB of memory, so it is loaded for the first message of an authenticated caller. */
const loadEndpoint = async (parts: McpParts): Promise<McpEndpoint> => {
  const { AccountHost } = await import('../../mcp/account-host.ts');
  const { McpEndpoint: Endpoint } = await import('../../mcp/mcp-endpoint.ts');
  const { clock, logger, version, settings, metrics } = parts;
  return new Endpoint({
    clock,
    logger,
    version,
    callsPerMinute: settings.mcp.calls_per_minute,
    hostFor: (caller) => new AccountHost(parts, caller),
    onCall: (tool, outcome) => metrics.countMcpCall(tool, outcome),
  });
};

/**
 * Creates the parts of the authorization server. Its attempts are counted separately from sign-ins, so that a faulty program cannot block
 * a user's sign-in.
 */
const makeOauth = (
  { db, clock, settings }: PlatformRouteDeps,
  { keys, users }: { readonly keys: SigningKeys; readonly users: UserCache },
) => {
  const addresses = oauthAddresses(settings.public_url);
  const grants = new GrantCache({ db, clock });
  return {
    addresses,
    grants,
    mcpTokens: new SignedMcpTokens({ keys, clock, addresses, users, grants }),
    limits: new AttemptLimits(settings.limits, () => clock.monotonic()),
  };
};
