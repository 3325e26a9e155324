// Whose names are at an edge that runs alone: the rules of name-ownership over the rows of one file, for the accounts of `[[auth.keys]]`. What a key reserves in the
// configuration is its account's by the operator's word.

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

/** rows of names.json; with more the released ones go before their time */
export const STANDALONE_NAMES_MAX = 20_000;

/** `[names]` of server.toml. */
export interface NameTimes {
  readonly hold_days: number;
  readonly assigned_hold_hours: number;
  readonly grace_days: number;
}

export interface StandaloneNamesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** `[names]`. */
  readonly rules: NameTimes;
  readonly keys: readonly {
    readonly account: string;
    readonly reserved: readonly string[];
    readonly domains: readonly string[];
  }[];
  /** Holds names.json; absent: names last as long as the process. */
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
  /** Names that each account has by use, to bound them. */
  readonly #held = new Map<string, Set<string>>();
  readonly #reserved = new ReservedNameTable();
  /** Tunnels that are counted in a row. */
  readonly #counted = new Map<string, Counted>();

  constructor(options: StandaloneNamesOptions) {
    const { rules, dataDir } = options;
    this.#options = options;
    const graceMs = rules.grace_days * DAY_MS;
    const holdMs = rules.hold_days * DAY_MS;
    // Where names are not held by use, those that the edge chose are not either.
    const assignedHoldMs = holdMs === 0 ? 0 : rules.assigned_hold_hours * HOUR_MS;
    this.#rules = { names: { holdMs, assignedHoldMs, graceMs }, ports: { holdMs: 0, graceMs } };
    this.#file =
      dataDir === undefined ? null : new StandaloneNamesFile({ ...options, dataDir, rows: () => this.#current() });
  }

  get reserved(): ReservedNames {
    return this.#reserved;
  }

  // ---- a tunnel comes and goes ----

  /** null: it may be had, and is counted from now on. */
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

  /** One that was not opened by now never will be. */
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

  /** Released ones end with their time; who opens names without end fills the file with them, and loses its own before those of others. */
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

  /** What time has ended is not written down again. */
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
    // Reserved by a configuration of before.
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
      // The name below belongs to the same account, which owns all that is nested.
      this.#reserved.set({ kind, label, accountId: account, groupKeyHash: null });
      return;
    }
    const event = { kind: 'reserve', by: account, servedByOther: false } as const;
    // The operator may give an account a name that accounts cannot claim themselves, such as wpad.
    const rules = kind === 'subdomain' ? this.#rules.names : this.#rules.ports;
    const effects = this.#feed(this.#rowOf({ kind, label }), event, rules);
    if (!effects.some(({ kind: effect }) => effect === 'refused')) return;
    // It was another's by use. The operator decides otherwise.
    this.#set({ kind, label, ownership: FREE_NAME });
    this.#feed({ kind, label, ownership: FREE_NAME }, event, rules);
  }

  async stop(): Promise<void> {
    await this.#file?.close();
  }
}

const keyOf = ({ kind, label }: Pick<NameRow, 'kind' | 'label'>): string => `${kind} ${label}`;

/** `shop`, `*.shop`, `tcp/20042`. */
const reservationOf = (entry: string): { readonly kind: ReservedKind; readonly label: string } => {
  const [transport, port] = entry.split('/');
  return port === undefined ? { kind: 'subdomain', label: entry } : { kind: transport as ReservedKind, label: port };
};

const withheld = ({ label }: RequestedEndpoint): Fault =>
  new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: label ?? '', reason: 'it is reserved' });
