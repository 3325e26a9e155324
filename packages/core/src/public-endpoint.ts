// Where the public reaches a tunnel: a port of its own, a name on the shared one, or as a member the port or name of its group.

export type PublicEndpoint =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'member'; readonly groupId: string };

/** What can be leased: a member has none of its own. */
export type LeasedEndpoint = Exclude<PublicEndpoint, { kind: 'member' }>;

export const sameEndpoint = (a: PublicEndpoint, b: PublicEndpoint): boolean => endpointKey(a) === endpointKey(b);

/** Distinct for distinct endpoints: a key for maps. */
export const endpointKey = (endpoint: PublicEndpoint): string => {
  switch (endpoint.kind) {
    case 'port':
      return `port ${endpoint.port}`;
    case 'name':
      return `name ${endpoint.name}`;
    case 'member':
      return `member ${endpoint.groupId}`;
  }
};
