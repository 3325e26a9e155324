// Where the public reaches a tunnel: a port of its own, a name on the shared one, or as a member the port or name of its group.

export type Place =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'member'; readonly groupId: string };

/** What can be leased: a member has none of its own. */
export type OwnPlace = Exclude<Place, { kind: 'member' }>;

export const samePlace = (a: Place, b: Place): boolean => placeKey(a) === placeKey(b);

/** Distinct for distinct places: a key for maps. */
export const placeKey = (place: Place): string => {
  switch (place.kind) {
    case 'port':
      return `port ${place.port}`;
    case 'name':
      return `name ${place.name}`;
    case 'member':
      return `member ${place.groupId}`;
  }
};
