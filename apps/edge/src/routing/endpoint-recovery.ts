// Restores endpoints after a restart of the edge: stores the owner of every endpoint, holds the endpoints at the next start, and gives
// them back to returning clients. The rules are in awaited-endpoints.rules.
import { join } from 'node:path';
import { endpointKey, type LeasedEndpoint, type Owner, sameEndpoint } from '@tunnel/rules/tunnels';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { AwaitedEndpoints, type EndpointClaim, isAwaited } from './awaited-endpoints.rules.ts';
import type { EndpointRegistry } from './endpoints.ts';
import { EndpointsFile } from './endpoints-file.ts';
import { endpointOfLease, type WantedGroup, type WantedLease } from './registration.rules.ts';
import type { Tunnel } from './tunnel.ts';

/**
 * Maximum downtime after which endpoints of the previous run are held for their owners; also how long the endpoints are held after the
 * start.
 */
export const RETURN_WINDOW_MS = 30_000;
/** Interval of the "alive" records in the endpoint file, from which the next run learns when this run ended. */
export const ENDPOINTS_FILE_ALIVE_MS = 5000;

export interface EndpointRecoveryOptions {
  readonly dataDir: string;
  readonly endpoints: EndpointRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
}

const FILE = 'edge-endpoints.jsonl';

/** Owner of endpoints that wait for a client of the previous run. Ids contain no spaces, so no id equals this key. */
const LAST_RUN = 'the last run';

const NOBODY = { claims: [], end: 'crashed' } as const;

export class EndpointRecovery {
  readonly name = 'endpoints of the last run';
  readonly #options: EndpointRecoveryOptions;
  readonly #file: EndpointsFile;
  #awaited = new AwaitedEndpoints(NOBODY, 0);
  /**
   * Claims of endpoints that were given to a returning owner but are not open yet. They stay in the file until the endpoint opens, so
   * that an endpoint is never without an owner.
   */
  readonly #handedOver = new Map<string, readonly EndpointClaim[]>();
  #isFrozen = false;
  #ticking: Timer | undefined;

  constructor(options: EndpointRecoveryOptions) {
    this.#options = options;
    this.#file = new EndpointsFile({ ...options, path: join(options.dataDir, FILE) });
  }

  /** Reads the file and holds the endpoints of the previous run. Must complete before clients can register. Never rejects. */
  async start(): Promise<void> {
    const { clock, logger } = this.#options;
    const lastRun = await this.#file.read();
    if (lastRun !== null && isAwaited(lastRun, clock.now(), RETURN_WINDOW_MS)) {
      const until = clock.monotonic() + RETURN_WINDOW_MS;
      this.#awaited = new AwaitedEndpoints(lastRun, until);
      for (const { endpoint, owner } of this.#awaited.endpoints())
        this.#options.endpoints.reserve(endpoint, LAST_RUN, until, owner);
      // Copy the claims to the new file, in case this run ends within the window as well.
      for (const claim of lastRun.claims) this.#file.opened(claim);
      if (this.#awaited.size > 0) {
        const fields = { endpoints: this.#awaited.size, last_run: lastRun.end };
        logger.info(fields, 'endpoints of the previous run are held for their clients');
      }
    }
    this.#ticking = clock.setInterval(() => this.#tick(), ENDPOINTS_FILE_ALIVE_MS);
    this.#file.alive();
  }

  /** Stops recording. Called before the edge disconnects its clients, so that the file keeps the endpoints of returning clients. */
  freeze(): void {
    this.#isFrozen = true;
  }

  async stop(): Promise<void> {
    this.#isFrozen = true;
    this.#ticking?.cancel();
    await this.#file.stopped();
  }

  // ---- recording endpoints ----

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

  /** Records that the tunnel has lost the endpoint. */
  closed(tunnelId: string, endpoint: LeasedEndpoint): void {
    const claim = this.#file.get(tunnelId);
    if (!this.#isFrozen && claim !== undefined && sameEndpoint(claim.endpoint, endpoint)) this.#file.closed(tunnelId);
  }

  // ---- returning clients ----

  /** Returns true if the client had an endpoint in the previous run. Its new session then keeps the secret. */
  isClaimant(owner: Owner, secretHash: string): boolean {
    return this.#awaited.isClaimant(owner, secretHash, this.#now());
  }

  /** Transfers the endpoint held for a client to the client's new tunnel. The endpoint stays held until the tunnel opens it. */
  claim(tunnelId: string, lease: WantedLease, owner: Owner, secretHash: string): void {
    const endpoint = endpointOfLease(lease, owner);
    if (endpoint === null) return;
    this.#settle(endpoint, tunnelId, this.#awaited.take(endpoint, owner, secretHash, this.#now()));
  }

  /**
   * Transfers the endpoint held for a group to the new group. Returns the endpoint to open: for a group on a port the group's previous
   * port, whatever port the first member requests.
   */
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

/** Returns the endpoint of a tunnel, or for a member the endpoint of its group. */
const endpointOf = ({ endpoint, group }: Pick<Tunnel, 'endpoint' | 'group'>): LeasedEndpoint | null => {
  if (endpoint.kind !== 'member') return endpoint;
  return group?.endpoint ?? null;
};
