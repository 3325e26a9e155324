// All routes of the platform, and what each of them needs besides the services' context.
import { AccessTokens, SigningKeys } from '../services/auth/access-tokens.ts';
import { PasswordHasher } from '../services/auth/password-hasher.ts';
import { KnownUsers } from '../services/auth/users.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import type { GroupEdges, TunnelEdges } from '../services/usage/ask-edges.ts';
import type { DashboardFiles } from './dashboard/dashboard-files.ts';
import { addDashboardRoutes } from './dashboard/dashboard-routes.ts';
import type { PlatformApp, RouteContext } from './platform-env.ts';
import { requireUser } from './require-actor.ts';
import { addAuthRoutes } from './routes/auth-routes.ts';
import { addBillingRoutes } from './routes/billing-routes.ts';
import { addDocsRoutes } from './routes/docs-routes.ts';
import { addEdgeLinkRoutes, type EdgeLinkNeeds } from './routes/edge-link-routes.ts';
import { addHealthRoutes } from './routes/health-routes.ts';
import { addKeyRoutes } from './routes/key-routes.ts';
import { addLoadBalancingRoutes, addUsageRoutes } from './routes/usage-routes.ts';

export interface PlatformRouteNeeds extends RouteContext, EdgeLinkNeeds {
  readonly edges: GroupEdges & TunnelEdges;
  readonly billing: BillingContext;
  readonly dashboard: DashboardFiles;
  /** A mail waits in the outbox. */
  readonly mailWaits: () => void;
  /** The one that is listened on. */
  readonly port: () => number;
}

export const addPlatformRoutes = (app: PlatformApp, needs: PlatformRouteNeeds): void => {
  const { db, clock, settings } = needs;
  const signingKeys = new SigningKeys({ db, clock });
  const accounts = {
    passwords: new PasswordHasher(),
    accessTokens: new AccessTokens({ keys: signingKeys, clock, issuer: settings.public_url }),
    users: new KnownUsers({ db, clock }),
  };
  const withUser = { ...needs, requireUser: requireUser(accounts) };
  addHealthRoutes(app, needs);
  addAuthRoutes(app, { ...withUser, ...accounts, signingKeys });
  addKeyRoutes(app, withUser);
  addUsageRoutes(app, withUser);
  addLoadBalancingRoutes(app, withUser);
  addBillingRoutes(app, { ...needs.billing, requireUser: withUser.requireUser });
  addEdgeLinkRoutes(app, needs);
  addDocsRoutes(app, needs);
  addDashboardRoutes(app, needs.dashboard);
};
