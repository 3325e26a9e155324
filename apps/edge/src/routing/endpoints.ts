// Ports and names behind a common interface. An endpoint is opened for a new tunnel, and released when the tunnel ends.

import { Fault } from '@tunnel/errors';
import { generateName, PortLeases, type PortRequest, type WantedPort } from '@tunnel/rules/names';
import {
  type HostEndpoint,
  type LeasedEndpoint,
  type Owner,
  ownerKey,
  type PeerEndpoint,
  PORT_RANGE_KEYS,
  type Transport,
} from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import { type P2pOffer, peerEndpointOf } from '@tunnel/tunnel-spec';
import type { ReservedNames } from '../backend/names/reserved-names.ts';
import { NameLeases, type WantedName } from './name-leases.rules.ts';
import { type WantedLease } from './registration.rules.ts';

/** Retry interval for a port used by another program. */
const PORT_TAKEN_RETRY_MS = 10_000;

/** The part of the reserved names that concerns ports, as needed for leasing a port. */
type ReservedPorts = Pick<ReservedNames, 'isOthersPort' | 'isReservedPort' | 'reservedPorts'>;

export interface PortRange {
  readonly from: number;
  readonly to: number;
}

export interface EndpointRegistryOptions {
  /** Listeners per transport. The same port number of tcp and udp are different ports. */
  readonly listeners: Readonly<Record<Transport, PortListeners>>;
  readonly portRanges: Readonly<Record<Transport, PortRange>>;
  /** Share of the ports that an account can use (`[limits] account_share`). */
  readonly accountShare: number;
  readonly names: NameRegistry;
  readonly peerNames: PeerNames;
  /** Reserved ports. Absent if ports cannot be reserved. */
  readonly reserved?: ReservedPorts | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

/** The owner and group for which an endpoint is opened. */
export interface EndpointUser {
  readonly owner: Owner;
  /** Key hash of the group that is created at the endpoint; null for a tunnel without a group. */
  readonly groupKeyHash: string | null;
}

/** Names of p2p tunnels and their holders. Notifies the peers of a name when the name's tunnel ends. */
export interface PeerNames {
  /** Opens a name for a tunnel. Returns null on success, otherwise the reason for the refusal. */
  open(tunnelId: string, offer: P2pOffer, owner: Owner): Fault | null;
  /** Returns true if a tunnel is open at the name at present. */
  isServed(endpoint: PeerEndpoint): boolean;
  hold(endpoint: PeerEndpoint, tunnelId: string, until: number): void;
  reserve(endpoint: PeerEndpoint, owner: string, until: number): boolean;
  reassign(endpoint: PeerEndpoint, owner: string, next: string): void;
  release(endpoint: PeerEndpoint, tunnelId: string): void;
}

export class EndpointRegistry {
  readonly portRanges: Readonly<Record<Transport, PortRange>>;
  readonly names: NameRegistry;
  readonly peerNames: PeerNames;
  readonly #reserved: ReservedPorts | undefined;
  readonly #ports: Readonly<Record<Transport, PortRegistry>>;

  constructor(options: EndpointRegistryOptions) {
    const { listeners, portRanges, accountShare, names, peerNames, reserved, clock, random } = options;
    this.portRanges = portRanges;
    this.names = names;
    this.peerNames = peerNames;
    this.#reserved = reserved;
    const transports = Object.keys(portRanges) as Transport[];
    const registryOf = (of: Transport) =>
      new PortRegistry({
        rangeKey: PORT_RANGE_KEYS[of],
        range: portRanges[of],
        accountShare,
        listeners: listeners[of],
        clock,
        random,
      });
    this.#ports = Object.fromEntries(transports.map((of) => [of, registryOf(of)])) as Record<Transport, PortRegistry>;
  }

  /** Leases and opens an endpoint. Throws a Fault if the endpoint is not available. */
  async open(holder: string, wanted: WantedLease, { owner, groupKeyHash }: EndpointUser): Promise<LeasedEndpoint> {
    if (wanted.kind === 'name') return { kind: 'name', name: this.names.open(holder, wanted.wanted) };
    if (wanted.kind === 'domain') return this.names.openAt(holder, { kind: 'domain', name: wanted.wanted.name });
    if (wanted.kind === 'peer-name') {
      const refusal = this.peerNames.open(holder, wanted.offer, owner);
      if (refusal !== null) throw refusal;
      return peerEndpointOf(wanted.offer, owner);
    }
    const { kind, transport } = wanted;
    const reservations = this.#reservationsFor(transport, owner, groupKeyHash);
    const port = await this.#ports[transport].open(holder, wanted.wanted, ownerKey(owner), reservations);
    return { kind, transport, port };
  }

  #reservationsFor(transport: Transport, owner: Owner, groupKeyHash: string | null): Omit<PortRequest, 'account'> {
    const reserved = this.#reserved;
    if (reserved === undefined) return {};
    return {
      isOthers: (port) => reserved.isOthersPort(transport, port, owner, groupKeyHash),
      isReserved: (port) => reserved.isReservedPort(transport, port),
      reserved: () => reserved.reservedPorts(transport),
    };
  }

  /**
   * Stops accepting visitors. The lease stays until hold() or release(). Names need no call, because their route is removed from the
   * registry.
   */
  close(endpoint: LeasedEndpoint): void {
    if (endpoint.kind === 'port') this.#ports[endpoint.transport].close(endpoint.port);
  }

  /** Keeps an endpoint for its owner's return. `until` is a time on the monotonic clock. */
  hold(endpoint: LeasedEndpoint, owner: string, until: number): void {
    if (endpoint.kind === 'port') this.#ports[endpoint.transport].hold(endpoint.port, owner, until);
    else if (endpoint.kind === 'peer-name') this.peerNames.hold(endpoint, owner, until);
    else this.names.hold(endpoint, owner, until);
  }

  /**
   * Holds an endpoint that is not open. A port counts for the account `countsFor`, or for no account if absent. Returns false if the
   * endpoint does not exist or belongs to a different owner.
   */
  reserve(endpoint: LeasedEndpoint, owner: string, until: number, countsFor?: Owner): boolean {
    if (endpoint.kind === 'port') {
      const account = countsFor === undefined ? OPERATOR : ownerKey(countsFor);
      return this.#ports[endpoint.transport].reserve(endpoint.port, owner, until, account);
    }
    if (endpoint.kind === 'peer-name') return this.peerNames.reserve(endpoint, owner, until);
    return this.names.reserve(endpoint, owner, until);
  }

  /** Excludes a port used by the edge from the ports for tunnels. */
  withhold(transport: Transport, port: number): boolean {
    return this.#ports[transport].withhold(port);
  }

  /** Transfers an endpoint to a different owner. */
  reassign(endpoint: LeasedEndpoint, owner: string, next: string): void {
    if (endpoint.kind === 'port') this.#ports[endpoint.transport].reassign(endpoint.port, owner, next);
    else if (endpoint.kind === 'peer-name') this.peerNames.reassign(endpoint, owner, next);
    else this.names.reassign(endpoint, owner, next);
  }

  release(endpoint: LeasedEndpoint, owner: string): void {
    if (endpoint.kind === 'port') this.#ports[endpoint.transport].release(endpoint.port, owner);
    else if (endpoint.kind === 'peer-name') this.peerNames.release(endpoint, owner);
    else this.names.release(endpoint, owner);
  }
}

export interface PortListeners {
  /** Opens a port. `account` is charged for the file descriptor. */
  listen(port: number, account: string): Promise<'listening' | 'taken'>;
  /** Stops accepting visitors. Resolves when the port is free, unless the port is kept for the owner's return. */
  close(port: number): Promise<void>;
  /** Closes the listener of a port that was kept for an owner, once the owner is no longer expected to return. */
  free?(port: number): void;
}

export interface PortRegistryOptions {
  /** Key of the port range in `[limits]`, named in refusals. */
  readonly rangeKey: string;
  readonly range: PortRange;
  /** Share of the ports that an account can use (`[limits] account_share`). */
  readonly accountShare: number;
  readonly listeners: PortListeners;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Owner key of the operator, who has no limit on ports. */
const OPERATOR = ownerKey({ kind: 'operator' });

const boundedBy = (account: string): string | null => (account === OPERATOR ? null : account);

/** Owner of ports excluded from tunnels. Ids contain no spaces, so no id equals this key. */
const EDGE_ITSELF = 'the edge itself';

/**
 * Ports of a transport with their listeners. A lease is returned after its listener has opened, and released after its listener has
 * closed.
 */
export class PortRegistry {
  readonly range: PortRange;
  readonly #rangeKey: string;
  readonly #leases: PortLeases;
  readonly #listeners: PortListeners;
  readonly #clock: Clock;
  readonly #closing = new Map<number, Promise<void>>();

  constructor({ rangeKey, range, accountShare, listeners, clock, random }: PortRegistryOptions) {
    this.range = range;
    this.#rangeKey = rangeKey;
    this.#leases = new PortLeases({ ...range, accountShare }, random);
    this.#listeners = listeners;
    this.#clock = clock;
  }

  /**
   * Leases and opens a port. Skips ports used by other programs or reserved for a different account. Throws a Fault if no port is available.
   */
  async open(
    owner: string,
    wanted: WantedPort,
    account: string,
    reservations: Omit<PortRequest, 'account'> = {},
  ): Promise<number> {
    // Wait for a port that is being closed: its release must happen before a new lease, not afterwards.
    if (wanted.kind !== 'any') await this.#closing.get(wanted.port);
    let next = wanted;
    for (;;) {
      const port = this.#lease(owner, next, { ...reservations, account: boundedBy(account) });
      if (await this.#listen(port, owner, account)) return port;
      this.#leases.markOutside(port, owner, this.#clock.monotonic() + PORT_TAKEN_RETRY_MS);
      if (next.kind === 'exact') throw new Fault('TUNNEL_PORT_IN_USE', { port });
      next = { kind: 'any' };
    }
  }

  /** Stops accepting visitors. The lease stays until hold() or release(). */
  close(port: number): void {
    const closed = this.#listeners.close(port).finally(() => {
      if (this.#closing.get(port) === closed) this.#closing.delete(port);
    });
    this.#closing.set(port, closed);
  }

  /** Keeps a port for its owner's return. `until` is a time on the monotonic clock. */
  hold(port: number, owner: string, until: number): void {
    this.#leases.hold(port, owner, until);
  }

  /** Holds a port that is not open, even beyond the account's share, because the account had the port before. */
  reserve(port: number, owner: string, until: number, account: string): boolean {
    const request = { account: boundedBy(account), isReserved: () => true };
    const answer = this.#leases.lease(owner, { kind: 'exact', port }, this.#clock.monotonic(), request);
    return answer.kind === 'leased' && this.#leases.hold(port, owner, until);
  }

  /** Excludes a port from the ports for tunnels until the edge stops. Returns false if the port is outside of the range or in use. */
  withhold(port: number): boolean {
    const answer = this.#leases.lease(EDGE_ITSELF, { kind: 'exact', port }, this.#clock.monotonic());
    return answer.kind === 'leased';
  }

  reassign(port: number, owner: string, next: string): void {
    this.#leases.reassign(port, owner, next);
  }

  release(port: number, owner: string): void {
    const closing = this.#closing.get(port);
    const release = (): void => {
      this.#leases.release(port, owner);
      // If the hold has expired, the port may belong to a different owner by now.
      if (this.#leases.useOf(port, this.#clock.monotonic()) === undefined) this.#listeners.free?.(port);
    };
    if (closing === undefined) release();
    else closing.then(release, release);
  }

  #lease(owner: string, wanted: WantedPort, request: PortRequest): number {
    const answer = this.#leases.lease(owner, wanted, this.#clock.monotonic(), request);
    switch (answer.kind) {
      case 'leased':
        return answer.port;
      case 'in-use':
        throw new Fault('TUNNEL_PORT_IN_USE', { port: answer.port });
      case 'out-of-range':
        throw new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port: answer.port, ...this.range });
      case 'exhausted':
        throw new Fault('TUNNEL_PORTS_EXHAUSTED', { range: this.#rangeKey, ...this.range });
      case 'share': {
        const reason = `this account has ${answer.held} ports of [limits] ${this.#rangeKey}, and the remaining free ports are kept for other accounts`;
        throw new Fault('TUNNEL_PORT_LIMIT', { reason });
      }
    }
  }

  async #listen(port: number, owner: string, account: string): Promise<boolean> {
    try {
      return (await this.#listeners.listen(port, account)) === 'listening';
    } catch (error) {
      this.#leases.release(port, owner);
      this.#listeners.free?.(port);
      throw error;
    }
  }
}

/** Leases of hosts of one kind: subdomains or custom domains. */
class HostLeases {
  readonly #leases = new NameLeases();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Leases a host. Returns false if the host belongs to a different owner. */
  lease(name: string, owner: string): boolean {
    return this.#leases.lease(name, owner, this.#clock.monotonic());
  }

  isServed(name: string): boolean {
    return this.#leases.useOf(name, this.#clock.monotonic()) === 'leased';
  }

  isHeld(name: string): boolean {
    return this.#leases.useOf(name, this.#clock.monotonic()) === 'held';
  }

  isHeldForTls(name: string): boolean {
    return this.#leases.isHeldForTls(name, this.#clock.monotonic());
  }

  hold(name: string, owner: string, until: number, passesTls: boolean): void {
    this.#leases.hold(name, owner, until, this.#clock.monotonic(), passesTls);
  }

  reassign(name: string, owner: string, next: string): void {
    this.#leases.reassign(name, owner, next, this.#clock.monotonic());
  }

  release(name: string, owner: string): void {
    this.#leases.release(name, owner);
  }
}

/** Hosts and their owners: subdomains of the edge, and custom domains. Generated names are readable and cannot be guessed. */
export class NameRegistry {
  readonly #leases: Readonly<Record<HostEndpoint['kind'], HostLeases>>;
  readonly #random: () => number;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.#leases = { name: new HostLeases(clock), domain: new HostLeases(clock) };
    this.#random = random;
  }

  /** Generates a random name. Availability is not checked: collisions are practically impossible, and registrations retry with a new name. */
  propose(): string {
    return generateName(this.#random);
  }

  /** Leases a requested or generated subdomain. Throws a Fault if the name belongs to a different owner. */
  open(owner: string, wanted: WantedName): string {
    const name = wanted.kind === 'any' ? this.propose() : wanted.name;
    this.openAt(owner, { kind: 'name', name });
    return name;
  }

  /** Leases a given subdomain or custom domain. Throws a Fault if the host belongs to a different owner. */
  openAt<E extends HostEndpoint>(owner: string, endpoint: E): E {
    const { kind, name } = endpoint;
    if (this.#leases[kind].lease(name, owner)) return endpoint;
    throw kind === 'name'
      ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: name })
      : new Fault('TUNNEL_DOMAIN_IN_USE', { domain: name });
  }

  /** Returns true if a tunnel or group serves the host at present. */
  isServed({ kind, name }: HostEndpoint): boolean {
    return this.#leases[kind].isServed(name);
  }

  /** Returns true if the host is kept for a client that is offline and can still return. */
  isHeld({ kind, name }: HostEndpoint): boolean {
    return this.#leases[kind].isHeld(name);
  }

  /** Returns true if the host is kept for a tls tunnel with an offline client. Only the tunnel's service may end TLS for the host. */
  isHeldForTls({ kind, name }: HostEndpoint): boolean {
    return this.#leases[kind].isHeldForTls(name);
  }

  hold({ kind, name, passesTls }: HostEndpoint, owner: string, until: number): void {
    this.#leases[kind].hold(name, owner, until, passesTls === true);
  }

  reserve(endpoint: HostEndpoint, owner: string, until: number): boolean {
    if (!this.#leases[endpoint.kind].lease(endpoint.name, owner)) return false;
    this.hold(endpoint, owner, until);
    return true;
  }

  reassign({ kind, name }: HostEndpoint, owner: string, next: string): void {
    this.#leases[kind].reassign(name, owner, next);
  }

  release({ kind, name }: HostEndpoint, owner: string): void {
    this.#leases[kind].release(name, owner);
  }
}
