// The owner of a session and its tunnels.

export type Owner = { readonly kind: 'operator' } | { readonly kind: 'account'; readonly accountId: string };

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.kind === 'operator' ? b.kind === 'operator' : b.kind === 'account' && a.accountId === b.accountId;

/** The operator sees everything, an account its tunnels, regardless of the API key used. */
export const maySee = (viewer: Owner, owner: Owner): boolean => viewer.kind === 'operator' || sameOwner(viewer, owner);

/** Unique string key of a session's owner, for maps. */
export const ownerKey = (owner: Owner): string =>
  owner.kind === 'operator' ? 'operator' : `account ${owner.accountId}`;

const OF_OPERATOR = 'operator ';

/**
 * Key under which work for a route's visitors is counted: the account, or for the operator each route, because the operator's routes serve
 * many people.
 */
export const tenantKey = (owner: Owner, routeKey: string): string =>
  owner.kind === 'operator' ? OF_OPERATOR + routeKey : ownerKey(owner);

/** Returns true for a key of the operator, who may use any capacity that accounts leave. */
export const isOperatorsTenant = (tenant: string): boolean => tenant.startsWith(OF_OPERATOR);
