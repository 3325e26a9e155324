// Ports and names behind one interface: whoever registers a tunnel asks for an endpoint, whoever ends it gives the endpoint back.

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

/** a port of the range that another program holds is not tried again before this */
const PORT_TAKEN_RETRY_MS = 10_000;

/** What the leases of ports have to know about reservations. */
type ReservedPorts = Pick<ReservedNames, 'isOthersPort' | 'isReservedPort' | 'reservedPorts'>;

export interface PortRange {
  readonly from: number;
  readonly to: number;
}

export interface EndpointRegistryOptions {
  /** Who opens the ports of each transport: the same number of another transport is another port. */
  readonly listeners: Readonly<Record<Transport, PortListeners>>;
  readonly portRanges: Readonly<Record<Transport, PortRange>>;
  /** `[limits] account_share`. */
  readonly accountShare: number;
  readonly names: NameRegistry;
  readonly peerNames: PeerNames;
  /** Absent: nothing is. */
  readonly reserved?: ReservedPorts | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Whom an endpoint is opened for. */
export interface EndpointUser {
  readonly owner: Owner;
  /** Of the group that begins there; null: a tunnel that stands alone. */
  readonly groupKeyHash: string | null;
}

/** The names of p2p tunnels, and who has them. Whoever joined by one is told of its end. */
export interface PeerNames {
  /** null: it is this tunnel's. */
  open(tunnelId: string, offer: P2pOffer, owner: Owner): Fault | null;
  /** A tunnel has it right now. */
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

  /** Throws a fault when there is no such endpoint. */
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

  /** No visitor comes in any more; the lease stays until hold or release. A name of either kind stops with its entry in the table. */
  close(endpoint: LeasedEndpoint): void {
    if (endpoint.kind === 'port') this.#ports[endpoint.transport].close(endpoint.port);
  }

  /** `until` on the monotonic clock. */
  hold(endpoint: LeasedEndpoint, owner: string, until: number): void {
    if (endpoint.kind === 'port') this.#ports[endpoint.transport].hold(endpoint.port, owner, until);
    else if (endpoint.kind === 'peer-name') this.peerNames.hold(endpoint, owner, until);
    else this.names.hold(endpoint, owner, until);
  }

  /** Held without having been open, as one that `countsFor` has; absent: it counts for no account. false: there is no such endpoint, or it is somebody's. */
  reserve(endpoint: LeasedEndpoint, owner: string, until: number, countsFor?: Owner): boolean {
    if (endpoint.kind === 'port') {
      const account = countsFor === undefined ? OPERATOR : ownerKey(countsFor);
      return this.#ports[endpoint.transport].reserve(endpoint.port, owner, until, account);
    }
    if (endpoint.kind === 'peer-name') return this.peerNames.reserve(endpoint, owner, until);
    return this.names.reserve(endpoint, owner, until);
  }

  /** Ports that the edge itself has are no tunnel's. */
  withhold(transport: Transport, port: number): boolean {
    return this.#ports[transport].withhold(port);
  }

  /** What one owner holds is held for another from now on. */
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
  /** `account`: whom its descriptor counts for. */
  listen(port: number, account: string): Promise<'listening' | 'taken'>;
  /** No visitor comes in any more. The port is free when this settles, unless it is kept for its owner's return. */
  close(port: number): Promise<void>;
  /** Its owner does not come back: what was kept of the port is not needed any more. */
  free?(port: number): void;
}

export interface PortRegistryOptions {
  /** Its key in `[limits]`: what a refusal names. */
  readonly rangeKey: string;
  readonly range: PortRange;
  /** `[limits] account_share`. */
  readonly accountShare: number;
  readonly listeners: PortListeners;
  readonly clock: Clock;
  readonly random: () => number;
}

/** The operator is bound by no share. */
const OPERATOR = ownerKey({ kind: 'operator' });

const boundedBy = (account: string): string | null => (account === OPERATOR ? null : account);

/** Whose leases are those of ports that no tunnel gets: no id of ours has a space. */
const EDGE_ITSELF = 'the edge itself';

/** The ports of one transport with their listeners: a lease is given out once its listener is open, and goes back after its listener has closed. */
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

  /** Leases a port and opens it. Throws a fault when there is none; a port of another program is skipped, and so is one that is reserved for another account. */
  async open(
    owner: string,
    wanted: WantedPort,
    account: string,
    reservations: Omit<PortRequest, 'account'> = {},
  ): Promise<number> {
    // A port on its way back is waited for: its release must come before a new lease, not after it.
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

  /** No visitor comes in any more; the lease stays until hold or release. */
  close(port: number): void {
    const closed = this.#listeners.close(port).finally(() => {
      if (this.#closing.get(port) === closed) this.#closing.delete(port);
    });
    this.#closing.set(port, closed);
  }

  /** `until` on the monotonic clock. */
  hold(port: number, owner: string, until: number): void {
    this.#leases.hold(port, owner, until);
  }

  /** Also beyond the account's share: the account had the port before. */
  reserve(port: number, owner: string, until: number, account: string): boolean {
    const request = { account: boundedBy(account), isReserved: () => true };
    const answer = this.#leases.lease(owner, { kind: 'exact', port }, this.#clock.monotonic(), request);
    return answer.kind === 'leased' && this.#leases.hold(port, owner, until);
  }

  /** No tunnel gets this port, as long as the edge runs. false: it is outside of the range, or somebody's. */
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
      // A hold that ran out before may have made it another's.
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

/** Who has which host of one kind. */
class HostLeases {
  readonly #leases = new NameLeases();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** false: it is another's. */
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

/** What visitors name as a host, and who has it: subdomains of the edge, and own domains. Names that the edge chooses are readable and cannot be guessed. */
export class NameRegistry {
  readonly #leases: Readonly<Record<HostEndpoint['kind'], HostLeases>>;
  readonly #random: () => number;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.#leases = { name: new HostLeases(clock), domain: new HostLeases(clock) };
    this.#random = random;
  }

  /** One that nobody has at this edge. Two of the generator are never the same by chance. */
  propose(): string {
    return generateName(this.#random);
  }

  /** Throws a fault when the name is another's. */
  open(owner: string, wanted: WantedName): string {
    const name = wanted.kind === 'any' ? this.propose() : wanted.name;
    this.openAt(owner, { kind: 'name', name });
    return name;
  }

  /** The same for one that is known. */
  openAt<E extends HostEndpoint>(owner: string, endpoint: E): E {
    const { kind, name } = endpoint;
    if (this.#leases[kind].lease(name, owner)) return endpoint;
    throw kind === 'name'
      ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: name })
      : new Fault('TUNNEL_DOMAIN_IN_USE', { domain: name });
  }

  /** A tunnel or group serves it right now. */
  isServed({ kind, name }: HostEndpoint): boolean {
    return this.#leases[kind].isServed(name);
  }

  /** Its client is away, and has a while to come back. */
  isHeld({ kind, name }: HostEndpoint): boolean {
    return this.#leases[kind].isHeld(name);
  }

  /** The same, and its TLS is nobody's to end but its service's. */
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
