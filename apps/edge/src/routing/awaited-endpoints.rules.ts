// The public endpoints of an edge's last run: whose each one is for a while after the next start, and who may take it up again.
// After a crash an endpoint is its client's, which proves itself by its resume secret; a group's is everybody's who has the group's key.
// After a stop on purpose it is its account's: a client that was stopped meanwhile has no secret left, and must not wait for itself.

import {
  endpointKey,
  type LeasedEndpoint,
  type Owner,
  ownerKey,
  sameOwner,
  type Transport,
} from '@tunnel/rules/tunnels';

/** One tunnel of the last run; members of a group have its endpoint in common. */
export interface EndpointClaim {
  readonly tunnelId: string;
  readonly owner: Owner;
  /** SHA-256 of the resume secret, in hex. */
  readonly secretHash: string;
  readonly endpoint: LeasedEndpoint;
  /** null: it stood alone. */
  readonly group: { readonly name: string; readonly keyHash: string } | null;
}

export interface LastRun {
  readonly claims: readonly EndpointClaim[];
  /** Its last sign of life, in milliseconds since the epoch. */
  readonly lastAliveAt: number;
  readonly end: 'crashed' | 'stopped';
}

/** Too long ago, its clients have given up; and a clock that was set tells nothing. */
export const isAwaited = ({ lastAliveAt }: LastRun, now: number, windowMs: number): boolean =>
  Math.abs(now - lastAliveAt) < windowMs;

export class AwaitedEndpoints {
  readonly #end: LastRun['end'];
  /** On the monotonic clock, as every `now` here. */
  readonly until: number;
  readonly #claims = new Map<string, EndpointClaim[]>();
  readonly #claimants = new Set<string>();
  /** Of groups on ports, whose members need not know the port. */
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

  /** Each endpoint once, with the owner that it counts for: of a group, the member that came first. */
  *endpoints(): IterableIterator<Pick<EndpointClaim, 'endpoint' | 'owner'>> {
    for (const [first] of this.#claims.values()) if (first !== undefined) yield first;
  }

  /** Somebody with this secret had something here: the next session goes on with it, so that a second crash finds it, too. */
  isClaimant(owner: Owner, secretHash: string, now: number): boolean {
    return now < this.until && this.#claimants.has(claimantKey(owner, secretHash));
  }

  /** Where the group with this name and key was; null: it is not awaited. */
  groupOnPort(transport: Transport, name: string, keyHash: string, now: number): LeasedEndpoint | null {
    const endpoint = this.#portsOfGroups.get(groupKey(transport, name, keyHash));
    return endpoint !== undefined && now < this.until && this.#claims.has(endpointKey(endpoint)) ? endpoint : null;
  }

  /** For a tunnel that stands alone. The claims it settles; null: this endpoint is not awaited, or not by this client. */
  take(endpoint: LeasedEndpoint, owner: Owner, secretHash: string, now: number): readonly EndpointClaim[] | null {
    const isTheirs = (claim: EndpointClaim): boolean =>
      sameOwner(claim.owner, owner) &&
      (this.#end === 'stopped' || (claim.group === null && claim.secretHash === secretHash));
    return this.#takeIf(endpoint, isTheirs, now);
  }

  /** For the first member of a group: whoever has its key might have joined it, too. */
  takeForGroup(endpoint: LeasedEndpoint, owner: Owner, keyHash: string, now: number): readonly EndpointClaim[] | null {
    const isTheirs = (claim: EndpointClaim): boolean =>
      claim.group?.keyHash === keyHash || (this.#end === 'stopped' && sameOwner(claim.owner, owner));
    return this.#takeIf(endpoint, isTheirs, now);
  }

  /** Those whose time is over; each is given once. */
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
