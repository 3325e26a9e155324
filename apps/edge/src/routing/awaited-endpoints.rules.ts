// Public endpoints of the edge's previous run, which are held for a while after a start, and the rules for their return. After a crash,
// an endpoint belongs to its client, which proves its identity with the resume secret; the endpoint of a group belongs to every client
// with the group's key. After a regular stop, an endpoint belongs to its account: a client that was stopped meanwhile has lost its
// secret, and must not be blocked by its own endpoint.

import {
  endpointKey,
  type LeasedEndpoint,
  type Owner,
  ownerKey,
  sameOwner,
  type Transport,
} from '@tunnel/rules/tunnels';

/** A tunnel of the previous run with its endpoint. Members of a group have the same endpoint. */
export interface EndpointClaim {
  readonly tunnelId: string;
  readonly owner: Owner;
  /** SHA-256 of the session's resume secret, in hex. */
  readonly secretHash: string;
  readonly endpoint: LeasedEndpoint;
  /** Group of the tunnel, or null for a tunnel without a group. */
  readonly group: { readonly name: string; readonly keyHash: string } | null;
}

export interface LastRun {
  readonly claims: readonly EndpointClaim[];
  /** Time of the last record of the run, in milliseconds since the epoch. */
  readonly lastAliveAt: number;
  readonly end: 'crashed' | 'stopped';
}

/**
 * Returns true if clients of the previous run may still return. After too long a downtime the clients have given up; a clock that was
 * changed meanwhile also rules out a return.
 */
export const isAwaited = ({ lastAliveAt }: LastRun, now: number, windowMs: number): boolean =>
  Math.abs(now - lastAliveAt) < windowMs;

export class AwaitedEndpoints {
  readonly #end: LastRun['end'];
  /** Time until which endpoints are held, on the monotonic clock like every `now` of this class. */
  readonly until: number;
  readonly #claims = new Map<string, EndpointClaim[]>();
  readonly #claimants = new Set<string>();
  /** Endpoints of groups on ports, by name and key. The members of such a group need not know the port. */
  readonly #portsOfGroups = new Map<string, LeasedEndpoint>();

  constructor({ claims, end }: Pick<LastRun, 'claims' | 'end'>, until: number) {
    this.#end = end;
    this.until = until;
    for (const claim of claims) {
      const key = endpointKey(claim.endpoint);
      const others = this.#claims.get(key);
      if (others === undefined) this.#claims.set(key, [claim]);
      else others.push(claim);
      this.#claimants.add(claimantKey(claim.owner, claim.secretHash));
      const { endpoint, group } = claim;
      if (endpoint.kind === 'port' && group !== null) {
        this.#portsOfGroups.set(groupKey(endpoint.transport, group.name, group.keyHash), endpoint);
      }
    }
  }

  get size(): number {
    return this.#claims.size;
  }

  /** Yields every endpoint once, with the owner charged for it: for a group, the owner of its first member. */
  *endpoints(): IterableIterator<Pick<EndpointClaim, 'endpoint' | 'owner'>> {
    for (const [first] of this.#claims.values()) if (first !== undefined) yield first;
  }

  /**
   * Returns true if a client with this secret had an endpoint. Its new session keeps the secret, so that the client can return after a
   * second crash as well.
   */
  isClaimant(owner: Owner, secretHash: string, now: number): boolean {
    return now < this.until && this.#claimants.has(claimantKey(owner, secretHash));
  }

  /** Returns the port of the group with this name and key, or null if no such group is expected. */
  groupOnPort(transport: Transport, name: string, keyHash: string, now: number): LeasedEndpoint | null {
    const endpoint = this.#portsOfGroups.get(groupKey(transport, name, keyHash));
    return endpoint !== undefined && now < this.until && this.#claims.has(endpointKey(endpoint)) ? endpoint : null;
  }

  /**
   * Takes an endpoint for a tunnel without a group. Returns the claims fulfilled thereby, or null if the endpoint is not held, or not for
   * this client.
   */
  take(endpoint: LeasedEndpoint, owner: Owner, secretHash: string, now: number): readonly EndpointClaim[] | null {
    const isTheirs = (claim: EndpointClaim): boolean =>
      sameOwner(claim.owner, owner) &&
      (this.#end === 'stopped' || (claim.group === null && claim.secretHash === secretHash));
    return this.#takeIf(endpoint, isTheirs, now);
  }

  /**
   * Takes an endpoint for the first member of a group. Every client with the group's key is entitled, because it could have joined the
   * group.
   */
  takeForGroup(endpoint: LeasedEndpoint, owner: Owner, keyHash: string, now: number): readonly EndpointClaim[] | null {
    const isTheirs = (claim: EndpointClaim): boolean =>
      claim.group?.keyHash === keyHash || (this.#end === 'stopped' && sameOwner(claim.owner, owner));
    return this.#takeIf(endpoint, isTheirs, now);
  }

  /** Removes and returns the remaining claims if the time for returning has expired, otherwise returns no claims. */
  expire(now: number): readonly EndpointClaim[] {
    if (now < this.until) return [];
    const late = [...this.#claims.values()].flat();
    this.#claims.clear();
    return late;
  }

  #takeIf(
    endpoint: LeasedEndpoint,
    isTheirs: (claim: EndpointClaim) => boolean,
    now: number,
  ): readonly EndpointClaim[] | null {
    const key = endpointKey(endpoint);
    const claims = this.#claims.get(key);
    if (claims === undefined || now >= this.until || !claims.some(isTheirs)) return null;
    this.#claims.delete(key);
    return claims;
  }
}

const claimantKey = (owner: Owner, secretHash: string): string => `${ownerKey(owner)} ${secretHash}`;

const groupKey = (transport: Transport, name: string, keyHash: string): string => `${transport} ${keyHash} ${name}`;
