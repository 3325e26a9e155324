// Names recently open on this edge, with their owners. While the platform is unreachable, an owner can open a recently used name again.
// Kept on disk, because the edge may restart meanwhile.

import { owningLabel } from '@tunnel/rules/names';
import { type Owner, sameOwner } from '@tunnel/rules/tunnels';
import { type Clock, LineLog, type Logger, lineOf } from '@tunnel/runtime';
import { NAME_FILE_BOUNDS, nameLines, rowsIn } from './name-lines.ts';

/** Maximum recently used names in memory and on disk. The least recently used name is removed first. */
export const USED_NAMES_MAX = 10_000;
/** Maximum remembered names per account, which is the number of names that an account can hold. */
export const USED_NAMES_PER_ACCOUNT_MAX = 100;
/** Time for which a name is remembered after its last use on this edge. */
export const USED_NAMES_MS = 30 * 24 * 3_600_000;

export interface UsedNamesOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
  readonly path: string;
}

interface Use {
  readonly owner: Owner;
  /** Key hash of the group that used the name. Null for a tunnel without a group. */
  readonly groupKeyHash: string | null;
  /** Time of the last use in milliseconds since the epoch. */
  readonly at: number;
}

export class UsedNames {
  readonly #options: UsedNamesOptions;
  readonly #file: LineLog;
  /** Last use by owning name, which covers all names nested below. Least recently used first. */
  readonly #uses = new Map<string, Use>();
  /** Names of each account, in the same order. The key null stands for the operator. */
  readonly #ofAccount = new Map<string | null, Set<string>>();

  constructor(options: UsedNamesOptions) {
    const { path, logger } = options;
    this.#options = options;
    this.#file = new LineLog({
      path,
      ...NAME_FILE_BOUNDS,
      lines: () => nameLines(FILE, this.#rows()),
      onFailed: (reason) =>
        logger.error({ file: path, reason }, 'cannot write the file of used names; the names are lost after a restart'),
    });
  }

  get size(): number {
    return this.#uses.size;
  }

  /** Loads the recently used names of the last run from disk. Never rejects. */
  async start(): Promise<void> {
    const { path, logger } = this.#options;
    try {
      const text = await this.#file.read();
      if (text !== null) for (const [label, use] of usesIn(text)) this.#set(label, use);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ file: path, reason }, 'cannot read the file of used names; starting without known names');
      this.#uses.clear();
      this.#ofAccount.clear();
    }
  }

  async stop(): Promise<void> {
    await this.#file.close();
  }

  /** Records the use of a name, when a tunnel was opened or closed. */
  used(subdomain: string, owner: Owner, groupKeyHash: string | null): void {
    const label = owningLabel(subdomain);
    const use = { owner, groupKeyHash, at: this.#options.clock.now() };
    this.#set(label, use);
    this.#file.append(lineOf(rowOf(label, use)));
  }

  /**
   * Whether the name was last used on this edge by the owner, or by a group with the key. For a group, the edge knows only the key that
   * opened the name, not the owner of the name.
   */
  isKnownTo(subdomain: string, owner: Owner, groupKeyHash: string | null): boolean {
    const use = this.#uses.get(owningLabel(subdomain));
    if (use === undefined || this.#options.clock.now() - use.at >= USED_NAMES_MS) return false;
    return use.groupKeyHash === null ? sameOwner(use.owner, owner) : use.groupKeyHash === groupKeyHash;
  }

  *#rows(): Generator<object> {
    for (const [label, use] of this.#uses) yield rowOf(label, use);
  }

  #set(label: string, use: Use): void {
    this.#delete(label);
    this.#uses.set(label, use);
    const account = accountOf(use.owner);
    const own = this.#ofAccount.get(account) ?? new Set();
    this.#ofAccount.set(account, own.add(label));
    // An account that opens names without limit loses its oldest names and not names of other accounts.
    if (own.size > USED_NAMES_PER_ACCOUNT_MAX) this.#deleteFirst(own);
    if (this.#uses.size > USED_NAMES_MAX) this.#deleteFirst(this.#uses.keys());
  }

  #deleteFirst(labels: Iterable<string>): void {
    const [oldest] = labels;
    if (oldest !== undefined) this.#delete(oldest);
  }

  #delete(label: string): void {
    const use = this.#uses.get(label);
    if (use === undefined) return;
    this.#uses.delete(label);
    const account = accountOf(use.owner);
    const own = this.#ofAccount.get(account);
    own?.delete(label);
    if (own?.size === 0) this.#ofAccount.delete(account);
  }
}

// ---- its rows ----

const FILE = 'used-names';

const accountOf = (owner: Owner): string | null => (owner.kind === 'operator' ? null : owner.accountId);

/** Formats a row of the file. `account_id` is null for the operator. */
const rowOf = (label: string, { owner, groupKeyHash, at }: Use): object => ({
  label,
  account_id: accountOf(owner),
  group_key_hash: groupKeyHash,
  at,
});

function* usesIn(text: string): Generator<readonly [string, Use]> {
  for (const { label, account_id: accountId, group_key_hash: groupKeyHash, at } of rowsIn(text, FILE)) {
    const isWhole =
      typeof label === 'string' &&
      (accountId === null || typeof accountId === 'string') &&
      (groupKeyHash === null || typeof groupKeyHash === 'string') &&
      typeof at === 'number';
    if (!isWhole) throw new Error('a line is not a used name');
    const owner: Owner = accountId === null ? { kind: 'operator' } : { kind: 'account', accountId };
    yield [label, { owner, groupKeyHash, at }];
  }
}
