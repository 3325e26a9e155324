// What a client gives to a peer session, and what it is told: the settings that both roles share, the network, the path with its reason.
import type { MemoryBudget, ReportInternalError } from '@tunnel/mux';
import type { Clock, Secret } from '@tunnel/runtime';
import type { AddressObserver } from './address-observer.ts';
import type { PeerTransport } from './peer-transport.ts';

export type PeerService = 'tcp' | 'udp';

/** Why connections go through the relay; docs/p2p.md has each in words. */
export type RelayReason =
  | 'punching'
  | 'udp-blocked'
  | 'random-ports'
  | 'no-answer'
  | 'went-silent'
  | 'off'
  | 'no-transport';

/** How a try to go direct has ended. */
export type DirectOutcome = 'direct' | 'udp-blocked' | 'random-ports' | 'no-answer' | 'no-transport';

/** Where new connections go. */
export interface PeerPath {
  readonly path: 'direct' | 'relay';
  /** Empty while direct. */
  readonly reason: RelayReason | '';
  /** Of the path in use; null until it is known. */
  readonly rttMs: number | null;
}

export interface PeerNetwork {
  /** Asked at the first try to go direct, never before. null: it cannot be loaded here (`no-transport`). */
  loadTransport(): Promise<PeerTransport | null>;
  /** How the very socket that will be used learns its public addresses. null: the edge has it switched off (`off`). */
  observer(): AddressObserver | null;
  /** Addresses of the machine's interfaces that may be offered. */
  ownAddresses(): readonly string[];
}

export interface PeerSettings {
  readonly name: string;
  readonly secret: Secret;
  readonly service: PeerService;
  /** false: relay alone (`off`). */
  readonly direct: boolean;
  readonly network: PeerNetwork;
  readonly clock: Clock;
  /** The process's; every peer has its own share below it. */
  readonly budget: MemoryBudget;
  readonly report: ReportInternalError;
}

/** What passed between the two programs, both ways, sealed as it was. */
export interface PeerBytes {
  readonly relayBytes: number;
  readonly directBytes: number;
}
