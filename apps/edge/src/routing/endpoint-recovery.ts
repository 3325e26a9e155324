// Endpoints across runs of the edge: writes down who has which, holds them at the next start, and hands them to those who come back.
// The rules are in awaited-endpoints.rules.
import { join } from 'node:path';
import { endpointKey, type LeasedEndpoint, type Owner, sameEndpoint } from '@tunnel/rules/tunnels';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { AwaitedEndpoints, type EndpointClaim, isAwaited } from './awaited-endpoints.rules.ts';
import type { EndpointRegistry } from './endpoints.ts';
import { EndpointsFile } from './endpoints-file.ts';
import { endpointOfLease, type WantedGroup, type WantedLease } from './registration.rules.ts';
import type { Tunnel } from './tunnel.ts';

/** after a start within this time of the last run's end, its endpoints are held for those who had them, for as long again */
export const RETURN_WINDOW_MS = 30_000;
/** how often the file of endpoints says that the edge lives: by it the next run knows when this one ended */
export const ENDPOINTS_FILE_ALIVE_MS = 5000;

export interface EndpointRecoveryOptions {
  readonly dataDir: string;
  readonly endpoints: EndpointRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
}

const FILE = 'edge-endpoints.jsonl';

/** Whose leases are those that wait for a client of the last run: no id of ours has a space. */
const LAST_RUN = 'the last run';

const NOBODY = { claims: [], end: 'crashed' } as const;

export class EndpointRecovery {
  readonly name = 'endpoints of the last run';
  readonly #options: EndpointRecoveryOptions;
  readonly #file: EndpointsFile;
  #awaited = new AwaitedEndpoints(NOBODY, 0);
  /** Handed over and not open yet: written down until they are, so that there is no moment in which nobody has them. */
  readonly #handedOver = new Map<string, readonly EndpointClaim[]>();
  #isFrozen = false;
  #ticking: Timer | undefined;

  constructor(options: EndpointRecoveryOptions) {
    this.#options = options;
    this.#file = new EndpointsFile({ ...options, path: join(options.dataDir, FILE) });
  }

  /** Before anybody can register. Never rejects. */
  async start(): Promise<void> {
    const { clock, logger } = this.#options;
    const lastRun = await this.#file.read();
    if (lastRun !== null && isAwaited(lastRun, clock.now(), RETURN_WINDOW_MS)) {
      const until = clock.monotonic() + RETURN_WINDOW_MS;
      this.#awaited = new AwaitedEndpoints(lastRun, until);
      for (const { endpoint, owner } of this.#awaited.endpoints())
        this.#options.endpoints.reserve(endpoint, LAST_RUN, until, owner);
      // A run that ends within the window leaves them to the next one.
      for (const claim of lastRun.claims) this.#file.opened(claim);
      if (this.#awaited.size > 0) {
        const fields = { endpoints: this.#awaited.size, last_run: lastRun.end };
        logger.info(fields, 'endpoints of the previous run are held for their clients');
      }
    }
    this.#ticking = clock.setInterval(() => this.#tick(), ENDPOINTS_FILE_ALIVE_MS);
    this.#file.alive();
  }

  /** The edge lets go of everybody: what they have now is what they come back to. */
  freeze(): void {
    this.#isFrozen = true;
  }

  async stop(): Promise<void> {
    this.#isFrozen = true;
    this.#ticking?.cancel();
    await this.#file.stopped();
  }

  // ---- what is written down ----

  opened(tunnel: Pick<Tunnel, 'tunnelId' | 'owner' | 'endpoint' | 'group'>, secretHash: string): void {
    if (this.#isFrozen) return;
    const { tunnelId, owner, group } = tunnel;
    const endpoint = endpointOf(tunnel);
    if (endpoint === null) return;
    const before = this.#file.get(tunnelId);
    if (before !== undefined && sameEndpoint(before.endpoint, endpoint)) return;
    const inGroup = group === null ? null : { name: group.name, keyHash: group.keyHash };
    this.#file.opened({ tunnelId, owner, secretHash, endpoint, group: inGroup });
    for (const claim of this.#handedOver.get(endpointKey(endpoint)) ?? []) this.#file.closed(claim.tunnelId);
    this.#handedOver.delete(endpointKey(endpoint));
  }

  /** It has this endpoint no longer. */
  closed(tunnelId: string, endpoint: LeasedEndpoint): void {
    const claim = this.#file.get(tunnelId);
    if (!this.#isFrozen && claim !== undefined && sameEndpoint(claim.endpoint, endpoint)) this.#file.closed(tunnelId);
  }

  // ---- those who come back ----

  /** A new session of this client goes on with its secret. */
  isClaimant(owner: Owner, secretHash: string): boolean {
    return this.#awaited.isClaimant(owner, secretHash, this.#now());
  }

  /** What is awaited of this client is its tunnel's now, held until it is opened. */
  claim(tunnelId: string, lease: WantedLease, owner: Owner, secretHash: string): void {
    const endpoint = endpointOfLease(lease, owner);
    if (endpoint === null) return;
    this.#settle(endpoint, tunnelId, this.#awaited.take(endpoint, owner, secretHash, this.#now()));
  }

  /** The same for a group that begins. Where it begins: on the port that it had, whatever its first member asks for. */
  claimForGroup(groupId: string, { endpoint, name, keyHash }: WantedGroup, owner: Owner): WantedGroup['endpoint'] {
    const now = this.#now();
    if (endpoint.kind !== 'port') {
      this.#settle(endpoint, groupId, this.#awaited.takeForGroup(endpoint, owner, keyHash, now));
      return endpoint;
    }
    const { kind, transport, wanted } = endpoint;
    const asked = wanted.kind === 'any' ? null : ({ kind, transport, port: wanted.port } as const);
    const before = this.#awaited.groupOnPort(transport, name, keyHash, now) ?? asked;
    if (before?.kind !== 'port') return endpoint;
    this.#settle(before, groupId, this.#awaited.takeForGroup(before, owner, keyHash, now));
    return before === asked ? endpoint : { kind, transport, wanted: { kind: 'preferred', port: before.port } };
  }

  #settle(endpoint: LeasedEndpoint, owner: string, claims: readonly EndpointClaim[] | null): void {
    if (claims === null) return;
    this.#options.endpoints.reassign(endpoint, LAST_RUN, owner);
    this.#handedOver.set(endpointKey(endpoint), claims);
  }

  #tick(): void {
    const isOver = this.#now() >= this.#awaited.until;
    const late = isOver ? [...this.#awaited.expire(this.#now()), ...[...this.#handedOver.values()].flat()] : [];
    for (const { tunnelId } of late) this.#file.closed(tunnelId);
    if (isOver) this.#handedOver.clear();
    this.#file.alive();
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}

/** A member has its group's. */
const endpointOf = ({ endpoint, group }: Pick<Tunnel, 'endpoint' | 'group'>): LeasedEndpoint | null => {
  if (endpoint.kind !== 'member') return endpoint;
  return group?.endpoint ?? null;
};
