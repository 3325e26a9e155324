// Where the public reaches a tunnel: a port of its own, or a name on the shared one.

export type Place = { readonly kind: 'port'; readonly port: number } | { readonly kind: 'name'; readonly name: string };

export const samePlace = (a: Place, b: Place): boolean => placeKey(a) === placeKey(b);

/** Distinct for distinct places: a key for maps. */
export const placeKey = (place: Place): string => (place.kind === 'port' ? `port ${place.port}` : `name ${place.name}`);
