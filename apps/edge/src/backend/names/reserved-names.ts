// The names and ports that are reserved, as this edge knows them, and what others ask of that: routing for visitors whose tunnel is away, the leases
// for ports that they must not give out.

import { type ReservedPort, wildcardOver } from '@tunnel/rules/names';
import { type Owner, ownerKey, type Transport } from '@tunnel/rules/tunnels';
import { VerifiedDomains } from './verified-domains.ts';

/** Kinds of names that can be reserved. */
export type ReservedKind = 'subdomain' | Transport;
export const RESERVED_KINDS = ['subdomain', 'tcp', 'udp'] as const satisfies readonly ReservedKind[];

/** Kinds of names that an account can own. It owns a p2p name by use only. */
export type NameKind = ReservedKind | 'p2p';
export const NAME_KINDS = [...RESERVED_KINDS, 'p2p'] as const satisfies readonly NameKind[];

/** Whether a name of this kind stays with its account for a while after use. Ports do not, because there are few: an account keeps a port only by a reservation. */
export const isHeldByUse = (kind: NameKind): kind is 'subdomain' | 'p2p' => kind === 'subdomain' || kind === 'p2p';

export const isReservedKind = (kind: NameKind): kind is ReservedKind => kind !== 'p2p';

export interface ReservedName {
  readonly kind: ReservedKind;
  /** The subdomain, or the port as text. */
  readonly label: string;
  readonly accountId: string;
  /** Of its last group; whoever has that key may open it, too. */
  readonly groupKeyHash: string | null;
}

export interface ReservedNames {
  /** Is there somebody who keeps this subdomain, or the wildcard over it? */
  isReserved(subdomain: string): boolean;
  /** It is reserved, and neither for this owner nor for a group with this key. */
  isOthersPort(transport: Transport, port: number, owner: Owner, groupKeyHash: string | null): boolean;
  /** It is reserved, for whichever account. */
  isReservedPort(transport: Transport, port: number): boolean;
  reservedPorts(transport: Transport): Iterable<ReservedPort>;
  countOf(kind: ReservedKind): number;
  /** Whose own domain this is, to the letter; null: nobody's. Names of the edge are none. */
  accountOfDomain(domain: string): string | null;
}

/** An account alone, or with the key of its last group: most have none, and there may be 100,000 of them. */
type Keeper = string | { readonly accountId: string; readonly groupKeyHash: string };

export class ReservedNameTable implements ReservedNames {
  readonly domains = new VerifiedDomains();
  readonly #keepers: Readonly<Record<ReservedKind, Map<string, Keeper>>> = {
    subdomain: new Map(),
    tcp: new Map(),
    udp: new Map(),
  };

  get size(): number {
    return RESERVED_KINDS.reduce((sum, kind) => sum + this.countOf(kind), 0);
  }

  countOf(kind: ReservedKind): number {
    return this.#keepers[kind].size;
  }

  set({ kind, label, accountId, groupKeyHash }: ReservedName): void {
    this.#keepers[kind].set(label, groupKeyHash === null ? accountId : { accountId, groupKeyHash });
  }

  delete(kind: ReservedKind, label: string): void {
    this.#keepers[kind].delete(label);
  }

  get(kind: ReservedKind, label: string): Pick<ReservedName, 'accountId' | 'groupKeyHash'> | undefined {
    const keeper = this.#keepers[kind].get(label);
    return typeof keeper === 'string' ? { accountId: keeper, groupKeyHash: null } : keeper;
  }

  *values(): IterableIterator<ReservedName> {
    for (const kind of RESERVED_KINDS) {
      for (const label of this.#keepers[kind].keys()) {
        const keeper = this.get(kind, label);
        if (keeper !== undefined) yield { kind, label, ...keeper };
      }
    }
  }

  accountOfDomain(domain: string): string | null {
    return this.domains.accountOf(domain);
  }

  isReserved(subdomain: string): boolean {
    const names = this.#keepers.subdomain;
    if (names.size === 0) return false;
    const wildcard = wildcardOver(subdomain);
    return names.has(subdomain) || (wildcard !== null && names.has(wildcard));
  }

  isReservedPort(transport: Transport, port: number): boolean {
    return this.#keepers[transport].has(String(port));
  }

  *reservedPorts(transport: Transport): Generator<ReservedPort> {
    for (const [label, keeper] of this.#keepers[transport]) {
      const accountId = typeof keeper === 'string' ? keeper : keeper.accountId;
      yield { port: Number(label), account: ownerKey({ kind: 'account', accountId }) };
    }
  }

  isOthersPort(transport: Transport, port: number, owner: Owner, groupKeyHash: string | null): boolean {
    if (this.#keepers[transport].size === 0) return false;
    const keeper = this.get(transport, String(port));
    if (keeper === undefined) return false;
    if (owner.kind === 'account' && keeper.accountId === owner.accountId) return false;
    return groupKeyHash === null || keeper.groupKeyHash !== groupKeyHash;
  }
}
