// Ownership of names on an edge without a platform: applies the rules of name-ownership to the rows of a file, for the accounts of
// `[[auth.keys]]`. Names that the configuration reserves for a key belong to the key's account.

import { Fault } from '@tunnel/errors';
import {
  crowdedOut,
  FREE_NAME,
  type NameEffect,
  type NameEvent,
  type NameRules,
  nameAt,
  owningLabel,
  refusalOfName,
  transitionName,
  WITHHELD_SUBDOMAINS,
} from '@tunnel/rules/names';
import type { Clock, Logger } from '@tunnel/runtime';
import type { AdmissionRequest, RequestedEndpoint } from './admission-request.ts';
import { refusalOf } from './platform-names.ts';
import {
  isHeldByUse,
  isReservedKind,
  type NameKind,
  type ReservedKind,
  type ReservedNames,
  ReservedNameTable,
} from './reserved-names.ts';
import { type NameRow, StandaloneNamesFile } from './standalone-names-file.ts';

/** Maximum rows in names.json. Above the limit, released names are removed early. */
export const STANDALONE_NAMES_MAX = 20_000;

/** Section `[names]` of server.toml. */
export interface NameTimes {
  readonly hold_days: number;
  readonly assigned_hold_hours: number;
  readonly grace_days: number;
}

export interface StandaloneNamesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Section `[names]` of the configuration. */
  readonly rules: NameTimes;
  readonly keys: readonly {
    readonly account: string;
    readonly reserved: readonly string[];
    readonly domains: readonly string[];
  }[];
  /** Folder of names.json. Undefined if names are kept only while the process runs. */
  readonly dataDir: string | undefined;
}

interface Counted {
  readonly row: Pick<NameRow, 'kind' | 'label'>;
  isOpen: boolean;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export class StandaloneNames {
  readonly #options: StandaloneNamesOptions;
  readonly #file: StandaloneNamesFile | null;
  readonly #rules: Readonly<Record<'names' | 'ports', NameRules>>;
  readonly #rows = new Map<string, NameRow>();
  /** Keys of the names that each account holds by use. Needed to limit the number of held names. */
  readonly #held = new Map<string, Set<string>>();
  readonly #reserved = new ReservedNameTable();
  /** Tunnels counted as users of a name, by tunnel id. */
  readonly #counted = new Map<string, Counted>();

  constructor(options: StandaloneNamesOptions) {
    const { rules, dataDir } = options;
    this.#options = options;
    const graceMs = rules.grace_days * DAY_MS;
    const holdMs = rules.hold_days * DAY_MS;
    // If chosen names are not held after use, assigned names are not held either.
    const assignedHoldMs = holdMs === 0 ? 0 : rules.assigned_hold_hours * HOUR_MS;
    this.#rules = { names: { holdMs, assignedHoldMs, graceMs }, ports: { holdMs: 0, graceMs } };
    this.#file =
      dataDir === undefined ? null : new StandaloneNamesFile({ ...options, dataDir, rows: () => this.#current() });
  }

  get reserved(): ReservedNames {
    return this.#reserved;
  }

  // ---- a tunnel comes and goes ----

  /** Decides about a tunnel. Returns null if admitted; the tunnel is then counted as a user of the name. */
  admit({ tunnelId, owner, endpoint, domain }: AdmissionRequest): Fault | null {
    if (domain !== null) return this.#reserved.domains.refusalFor(domain, owner);
    if (endpoint === null || endpoint.label === null) return null;
    const row = this.#rowOf(endpoint);
    const { groupKeyHash, joinsGroup, choice } = endpoint;
    if (owner.kind === 'operator') {
      const who = { by: null, groupKeyHash };
      const isRefused = !joinsGroup && refusalOfName(row.ownership, who, this.#now(), this.#rulesOf(row)) !== null;
      return isRefused ? refusalOf(endpoint) : null;
    }
    const by = owner.accountId;
    const isAssigned = choice !== 'asked';
    const effects = this.#feed(row, { kind: 'tunnel-opened', by, groupKeyHash, joinsGroup, isAssigned });
    for (const effect of effects) {
      if (effect.kind === 'refused') return effect.reason === 'withheld' ? withheld(endpoint) : refusalOf(endpoint);
    }
    this.#counted.set(tunnelId, { row, isOpen: false });
    if (effects.some(({ kind }) => kind === 'claimed')) this.#boundHeld(by);
    return null;
  }

  opened(tunnelId: string): void {
    const counted = this.#counted.get(tunnelId);
    if (counted !== undefined) counted.isOpen = true;
  }

  /** Removes the count of an admitted tunnel that was not opened. Such a tunnel is never opened later. */
  admissionEnded(tunnelId: string): void {
    if (this.#counted.get(tunnelId)?.isOpen === false) this.#end(tunnelId, true);
  }

  closed(tunnelId: string): void {
    this.#end(tunnelId, false);
  }

  #end(tunnelId: string, abandoned: boolean): void {
    const counted = this.#counted.get(tunnelId);
    if (counted === undefined) return;
    this.#counted.delete(tunnelId);
    this.#feed(this.#rowOf(counted.row), { kind: 'tunnel-ended', abandoned });
  }

  #boundHeld(account: string): void {
    const now = this.#now();
    const held = [...(this.#held.get(account) ?? [])].flatMap((key) => {
      const row = this.#rows.get(key);
      const ownership = row === undefined ? FREE_NAME : nameAt(row.ownership, now, this.#rules.names);
      return row !== undefined && ownership.kind === 'held' ? [{ row, ...ownership }] : [];
    });
    for (const { row } of crowdedOut(held)) this.#feed(row, { kind: 'crowded-out' });
  }

  // ---- rows ----

  #feed(row: NameRow, event: NameEvent, rules = this.#rulesOf(row)): readonly NameEffect[] {
    const [ownership, effects] = transitionName(row.ownership, event, this.#now(), rules);
    if (ownership !== row.ownership) this.#set({ ...row, ownership });
    return effects;
  }

  #set(row: NameRow): void {
    const { kind, label, ownership } = row;
    const key = keyOf(row);
    this.#delete(key);
    if (isReservedKind(kind)) {
      if (ownership.kind === 'reserved') {
        const { ownerId: accountId, groupKeyHash } = ownership;
        this.#reserved.set({ kind, label, accountId, groupKeyHash });
      } else this.#reserved.delete(kind, label);
    }
    if (ownership.kind !== 'free') {
      this.#rows.set(key, row);
      if (ownership.kind === 'held') {
        const held = this.#held.get(ownership.ownerId) ?? new Set();
        this.#held.set(ownership.ownerId, held.add(key));
      }
      this.#boundRows(ownership.ownerId);
    }
    this.#file?.changed();
  }

  #delete(key: string): void {
    const ownership = this.#rows.get(key)?.ownership;
    this.#rows.delete(key);
    if (ownership?.kind === 'held') this.#held.get(ownership.ownerId)?.delete(key);
  }

  /**
   * Removes a released name above the row limit. Released names normally expire. An account that fills the file with names loses its
   * released names before other accounts do.
   */
  #boundRows(account: string): void {
    if (this.#rows.size <= STANDALONE_NAMES_MAX) return;
    let first: string | undefined;
    for (const [key, { ownership }] of this.#rows) {
      if (ownership.kind !== 'released' || ownership.openTunnels > 0) continue;
      first ??= key;
      if (ownership.ownerId !== account) continue;
      first = key;
      break;
    }
    if (first !== undefined) this.#delete(first);
  }

  #rowOf({ kind, label }: { readonly kind: NameKind; readonly label: string | null }): NameRow {
    const owning = kind === 'subdomain' ? owningLabel(label ?? '') : (label ?? '');
    return this.#rows.get(keyOf({ kind, label: owning })) ?? { kind, label: owning, ownership: FREE_NAME };
  }

  #rulesOf({ kind, label }: Pick<NameRow, 'kind' | 'label'>): NameRules {
    if (!isHeldByUse(kind)) return this.#rules.ports;
    return kind === 'subdomain' && WITHHELD_SUBDOMAINS.has(label)
      ? { ...this.#rules.names, isWithheld: true }
      : this.#rules.names;
  }

  #now(): number {
    return this.#options.clock.now();
  }

  /** Yields the rows for names.json, and removes expired rows. */
  *#current(): Generator<NameRow> {
    const now = this.#now();
    for (const row of [...this.#rows.values()]) {
      const ownership = nameAt(row.ownership, now, this.#rulesOf(row));
      if (ownership.kind === 'free') this.#delete(keyOf(row));
      else yield { ...row, ownership };
    }
  }

  // ---- life ----

  async start(): Promise<void> {
    for (const row of (await this.#file?.read(this.#now())) ?? []) this.#set(row);
    const configured = this.#options.keys.flatMap(({ account, reserved }) =>
      reserved.map((entry) => ({ account, ...reservationOf(entry) })),
    );
    const keys = new Set(configured.map(keyOf));
    // Releases names that an earlier configuration reserved and the current configuration does not.
    for (const row of [...this.#rows.values()]) {
      const { ownership } = row;
      if (ownership.kind === 'reserved' && !keys.has(keyOf(row))) {
        this.#feed(row, { kind: 'release', by: ownership.ownerId });
      }
    }
    for (const { account, kind, label } of configured) this.#reserve(account, kind, label);
    for (const { account, domains } of this.#options.keys) {
      for (const domain of domains) this.#reserved.domains.set(domain, account);
    }
  }

  #reserve(account: string, kind: ReservedKind, label: string): void {
    if (label.startsWith('*.')) {
      // A wildcard gets no row. The name after `*.` belongs to the same account and owns all names nested below.
      this.#reserved.set({ kind, label, accountId: account, groupKeyHash: null });
      return;
    }
    const event = { kind: 'reserve', by: account, servedByOther: false } as const;
    // The operator can give an account a name that accounts cannot claim themselves, such as wpad.
    const rules = kind === 'subdomain' ? this.#rules.names : this.#rules.ports;
    const effects = this.#feed(this.#rowOf({ kind, label }), event, rules);
    if (!effects.some(({ kind: effect }) => effect === 'refused')) return;
    // Another account holds the name by use. The operator's configuration has priority.
    this.#set({ kind, label, ownership: FREE_NAME });
    this.#feed({ kind, label, ownership: FREE_NAME }, event, rules);
  }

  async stop(): Promise<void> {
    await this.#file?.close();
  }
}

const keyOf = ({ kind, label }: Pick<NameRow, 'kind' | 'label'>): string => `${kind} ${label}`;

/** Parses a reservation of the configuration: `shop`, `*.shop`, `tcp/20042`. */
const reservationOf = (entry: string): { readonly kind: ReservedKind; readonly label: string } => {
  const [transport, port] = entry.split('/');
  return port === undefined ? { kind: 'subdomain', label: entry } : { kind: transport as ReservedKind, label: port };
};

const withheld = ({ label }: RequestedEndpoint): Fault =>
  new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: label ?? '', reason: 'it is reserved' });
