// Who a session, and so each of its tunnels, belongs to.

export type Owner = { readonly kind: 'operator' } | { readonly kind: 'account'; readonly accountId: string };

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.kind === 'operator' ? b.kind === 'operator' : b.kind === 'account' && a.accountId === b.accountId;

/** The operator sees everything, an account its own, whichever of its keys asks. */
export const maySee = (viewer: Owner, owner: Owner): boolean => viewer.kind === 'operator' || sameOwner(viewer, owner);

/** Distinct for distinct owners: a key for maps. */
export const ownerKey = (owner: Owner): string =>
  owner.kind === 'operator' ? 'operator' : `account ${owner.accountId}`;

const OF_OPERATOR = 'operator ';

/** Whom the work for visitors of a route is counted for: an account with all its routes. Those of the operator count each by itself: they are of many people. */
export const tenantKey = (owner: Owner, routeKey: string): string =>
  owner.kind === 'operator' ? OF_OPERATOR + routeKey : ownerKey(owner);

/** Of `tenantKey`: it is nobody's guest, and may take what others leave. */
export const isOperatorsTenant = (tenant: string): boolean => tenant.startsWith(OF_OPERATOR);
