// Reserved names and verified domains from the platform: a snapshot, then each change. Kept on disk, so that the edge knows the names
// even if the edge starts while the platform is unreachable.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EdgeChange, LapsedDomain, ReservedName as ReservedRow, VerifiedDomain } from '@tunnel/contract';
import type { ReservedPort } from '@tunnel/rules/names';
import type { Owner, Transport } from '@tunnel/rules/tunnels';
import { type Clock, LineLog, type Logger, lineOf, SingleFlight } from '@tunnel/runtime';
import { LinkFailure, type PlatformLink } from '../platform-link.ts';
import { linesIn } from '../stream-lines.ts';
import { NAMES_ROWS_PER_TURN } from './limits.ts';
import { NAME_FILE_BOUNDS, nameLines, rowsIn } from './name-lines.ts';
import {
  RESERVED_KINDS,
  type ReservedKind,
  type ReservedName,
  type ReservedNames,
  ReservedNameTable,
} from './reserved-names.ts';
import type { DomainKeepers, VerifiedDomains } from './verified-domains.ts';

/** Maximum reserved names and ports on an edge. A larger snapshot is rejected. */
const RESERVED_NAMES_MAX = 1_000_000;
/** Maximum size of a line in the snapshot of names. */
const NAMES_LINE_MAX_BYTES = 4 * 1024;
/** Timeout for loading the snapshot of reserved names. 100,000 names take a second. */
const NAMES_SNAPSHOT_MS = 60_000;

export interface PlatformReservedNamesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'names'>;
  readonly path: string;
  /** Called when custom domains have a new owner, or no owner anymore. */
  readonly onDomains: (keepers: DomainKeepers) => void;
}

/** Change of a name or domain. `account_id` null: the name is no longer reserved, or the domain is no longer verified. */
type NameChange = Extract<EdgeChange, { kind: 'name-changed' | 'domain-changed' }>;
type NameRow = Extract<NameChange, { kind: 'name-changed' }>['name'];
type DomainChange = Extract<NameChange, { kind: 'domain-changed' }>;
type DomainRow = Pick<DomainChange, 'domain' | 'account_id'>;
type ChangedRow = NameRow | DomainRow | LapsedDomain;

export class PlatformReservedNames implements ReservedNames {
  readonly #options: PlatformReservedNamesOptions;
  readonly #file: LineLog;
  #table = new ReservedNameTable();
  /** Id of the latest change in the snapshot. Changes with this id or a lower id are already in the table. */
  #at = 0;
  /** Changes since the start of the current snapshot, which may be missing in the snapshot. */
  #since: NameChange[] = [];
  readonly #taking = new SingleFlight(() => this.#take());
  #isTakenAgain = false;
  /** True if a snapshot was loaded in the current run, or if the platform is too old to provide a snapshot. */
  #isSettled = false;
  #isRefused = false;
  readonly #ending = new AbortController();

  constructor(options: PlatformReservedNamesOptions) {
    const { path, logger } = options;
    this.#options = options;
    this.#file = new LineLog({
      path,
      ...NAME_FILE_BOUNDS,
      lines: () => nameLines(FILE, rowsOf(this.#table)),
      onFailed: (reason) =>
        logger.error(
          { file: path, reason },
          'cannot write the file of reserved names; some may be missing after the next start',
        ),
    });
  }

  // ---- what is known ----

  isReserved(subdomain: string): boolean {
    return this.#table.isReserved(subdomain);
  }

  isOthersPort(transport: Transport, port: number, owner: Owner, groupKeyHash: string | null): boolean {
    return this.#table.isOthersPort(transport, port, owner, groupKeyHash);
  }

  isReservedPort(transport: Transport, port: number): boolean {
    return this.#table.isReservedPort(transport, port);
  }

  reservedPorts(transport: Transport): Iterable<ReservedPort> {
    return this.#table.reservedPorts(transport);
  }

  countOf(kind: ReservedKind): number {
    return this.#table.countOf(kind);
  }

  accountOfDomain(domain: string): string | null {
    return this.#table.accountOfDomain(domain);
  }

  get domains(): VerifiedDomains {
    return this.#table.domains;
  }

  get(kind: ReservedKind, label: string): Pick<ReservedName, 'accountId' | 'groupKeyHash'> | undefined {
    return this.#table.get(kind, label);
  }

  // ---- how it comes to be known ----

  /** Loads the names known to the last run. Never rejects. */
  async start(): Promise<void> {
    const { path, logger } = this.#options;
    try {
      const text = await this.#file.read();
      if (text !== null) await this.#readFile(text);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error(
        { file: path, reason },
        'cannot read the file of reserved names; loading the names from the platform',
      );
      this.#table = new ReservedNameTable();
    }
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#taking.current;
    await this.#file.close();
  }

  /** Loads a snapshot unless loaded already. Called after each response of the platform. */
  takeOnce(): void {
    if (!this.#isSettled && this.#taking.current === null) this.takeAnew();
  }

  /** Loads a snapshot again, because the edge has missed changes. */
  takeAnew(): void {
    this.#isSettled = false;
    this.#isTakenAgain = true;
    void this.#taking.run();
  }

  /** Loads a snapshot if an earlier request was rejected, because an old platform may have been updated. */
  askAgain(): void {
    if (this.#isRefused) this.takeAnew();
  }

  changed(change: NameChange): void {
    if (this.#taking.current !== null) this.#since.push(change);
    if (change.id > this.#at) {
      const row = rowIn(change, this.#table);
      apply(this.#table, row);
      this.#file.append(lineOf(row));
    }
    // Listeners are notified even if the snapshot contained the change already, because a snapshot cannot show that a domain was removed.
    if (change.kind === 'domain-changed') this.#tellOfDomain(change);
  }

  /** Reports the current owner of a domain instead of the owner in the change, so that a late change does not undo a later change. */
  #tellOfDomain({ domain, account_id: changedTo, keeps_tunnels: keepsTunnels }: DomainChange): void {
    const accountId = this.#table.accountOfDomain(domain);
    const isGone = changedTo === null && !keepsTunnels;
    if (accountId !== null || isGone) this.#options.onDomains(new Map([[domain, accountId]]));
  }

  async #take(): Promise<void> {
    const { logger, onDomains } = this.#options;
    while (this.#isTakenAgain && !this.#ending.signal.aborted) {
      this.#isTakenAgain = false;
      this.#since = [];
      try {
        const { table, at } = await this.#snapshot();
        for (const change of this.#since) if (change.id > at) apply(table, rowIn(change, table));
        const moved = table.domains.changedSince(this.#table.domains);
        this.#table = table;
        this.#at = at;
        this.#isSettled = true;
        this.#isRefused = false;
        this.#file.rewrite();
        if (moved.size > 0) onDomains(moved);
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        // An older platform rejects the request, because it has no reserved names.
        this.#isRefused = error instanceof LinkFailure && error.kind === 'refused';
        this.#isSettled = this.#isRefused;
        const reason = error instanceof Error ? error.message : String(error);
        logger.warn({ reason }, 'cannot fetch reserved names from the platform; known reservations stay in force');
      }
    }
  }

  /** Loads the snapshot in small steps, so that visitors do not wait. */
  async #snapshot(): Promise<{ readonly table: ReservedNameTable; readonly at: number }> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    this.#ending.signal.addEventListener('abort', end, { once: true });
    const timer = this.#options.clock.setTimeout(end, NAMES_SNAPSHOT_MS);
    try {
      const body = await this.#options.link.names(ending.signal);
      const reading = { maxBytes: NAMES_LINE_MAX_BYTES, signal: ending.signal };
      const table = new ReservedNameTable();
      let at: number | null = null;
      let rows = 0;
      for await (const line of linesIn(body, reading)) {
        const said = JSON.parse(line) as SnapshotLine;
        if (said.end === true && at !== null) return { table, at };
        if (at === null) at = numberOf(said.at);
        else apply(table, rowOf(said));
        rows += 1;
        if (rows > RESERVED_NAMES_MAX) throw new Error(`more than ${rows - 1}`);
        if (rows % NAMES_ROWS_PER_TURN === 0) await nextTurn();
      }
      throw new Error('the list of reserved names is incomplete');
    } finally {
      timer.cancel();
      end();
      this.#ending.signal.removeEventListener('abort', end);
    }
  }

  async #readFile(text: string): Promise<void> {
    const table = new ReservedNameTable();
    let rows = 0;
    for (const row of rowsIn(text, FILE)) {
      apply(table, rowOf(row as SnapshotLine));
      rows += 1;
      if (rows % NAMES_ROWS_PER_TURN === 0) await nextTurn();
    }
    this.#table = table;
  }
}

const apply = (table: ReservedNameTable, row: ChangedRow): void => {
  if ('lapsed_domain' in row) return table.domains.setLapsed(row.lapsed_domain, row.account_id);
  if ('domain' in row) return table.domains.set(row.domain, row.account_id);
  const { kind, label, account_id: accountId, group_key_hash: groupKeyHash } = row;
  if (accountId === null) table.delete(kind, label);
  else table.set({ kind, label, accountId, groupKeyHash });
};

// ---- its rows ----

const FILE = 'reserved-names';

type SnapshotLine = Partial<ReservedRow & VerifiedDomain & LapsedDomain> & {
  readonly at?: unknown;
  readonly end?: unknown;
};

const rowIn = (change: NameChange, { domains }: ReservedNameTable): ChangedRow => {
  if (change.kind === 'name-changed') return change.name;
  const { domain, account_id, keeps_tunnels: keepsTunnels } = change;
  const last = domains.lastAccountOf(domain);
  const hasLapsed = account_id === null && keepsTunnels && last !== null;
  return hasLapsed ? { lapsed_domain: domain, account_id: last } : { domain, account_id };
};

function* rowsOf(table: ReservedNameTable): Generator<ChangedRow> {
  for (const { kind, label, accountId, groupKeyHash } of table.values()) {
    yield { kind, label, account_id: accountId, group_key_hash: groupKeyHash };
  }
  for (const [domain, accountId] of table.domains.entries()) yield { domain, account_id: accountId };
  for (const [domain, accountId] of table.domains.lapsed()) yield { lapsed_domain: domain, account_id: accountId };
}

const rowOf = (said: SnapshotLine): ChangedRow => {
  const { kind, label, domain, lapsed_domain, account_id = null, group_key_hash = null } = said;
  if (account_id !== null && typeof account_id !== 'string') throw new Error('a line has no account');
  if (typeof domain === 'string') return { domain, account_id };
  if (typeof lapsed_domain === 'string' && account_id !== null) return { lapsed_domain, account_id };
  const isWhole =
    RESERVED_KINDS.some((one) => one === kind) &&
    typeof label === 'string' &&
    (group_key_hash === null || typeof group_key_hash === 'string');
  if (!isWhole) throw new Error('a line is not a reserved name');
  return { kind: kind as ReservedKind, label, account_id, group_key_hash };
};

const numberOf = (value: unknown): number => {
  if (typeof value !== 'number') throw new Error('the list of reserved names has no change number');
  return value;
};
