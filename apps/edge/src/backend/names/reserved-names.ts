// Reserved names and ports known to the edge. Routing uses the names for visitors of a disconnected tunnel; port assignment skips
// reserved ports.

import { type ReservedPort, wildcardOver } from '@tunnel/rules/names';
import { type Owner, ownerKey, type Transport } from '@tunnel/rules/tunnels';
import { VerifiedDomains } from './verified-domains.ts';

/** Kinds of names that can be reserved. */
export type ReservedKind = 'subdomain' | Transport;
export const RESERVED_KINDS = ['subdomain', 'tcp', 'udp'] as const satisfies readonly ReservedKind[];

/** Kinds of names that an account can own. A p2p name can be owned only by use, not by reservation. */
export type NameKind = ReservedKind | 'p2p';
export const NAME_KINDS = [...RESERVED_KINDS, 'p2p'] as const satisfies readonly NameKind[];

/**
 * Whether a name of this kind stays with its account for a while after use. Ports do not stay, because ports are scarce: an account keeps
 * a port only by a reservation.
 */
export const isHeldByUse = (kind: NameKind): kind is 'subdomain' | 'p2p' => kind === 'subdomain' || kind === 'p2p';

export const isReservedKind = (kind: NameKind): kind is ReservedKind => kind !== 'p2p';

export interface ReservedName {
  readonly kind: ReservedKind;
  /** Subdomain, or port as text. */
  readonly label: string;
  readonly accountId: string;
  /** Key hash of the last group with the name. A tunnel with the same group key can also open the name. */
  readonly groupKeyHash: string | null;
}

export interface ReservedNames {
  /** Whether the subdomain, or a wildcard that covers the subdomain, is reserved. */
  isReserved(subdomain: string): boolean;
  /** Whether the port is reserved, but neither for the owner nor for a group with the key. */
  isOthersPort(transport: Transport, port: number, owner: Owner, groupKeyHash: string | null): boolean;
  /** Whether the port is reserved for any account. */
  isReservedPort(transport: Transport, port: number): boolean;
  reservedPorts(transport: Transport): Iterable<ReservedPort>;
  countOf(kind: ReservedKind): number;
  /** Returns the account that owns a custom domain, by exact name. Returns null without an owner, and for names below the edge's domain. */
  accountOfDomain(domain: string): string | null;
}

/**
 * Owner of a reserved name: an account id, or an account id with the key hash of its last group. Most names have no group, and a plain
 * string saves memory with 100,000 names.
 */
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
