// Which subdomains were open here lately, and for whom: whoever had one may come back to it while nobody can be asked whose it is. Kept on the disk,
// because the edge may be started anew meanwhile.

import { owningLabel } from '@tunnel/rules/names';
import { type Owner, sameOwner } from '@tunnel/rules/tunnels';
import { type Clock, LineLog, type Logger, lineOf } from '@tunnel/runtime';
import { NAME_FILE_BOUNDS, nameLines, rowsIn } from './name-lines.ts';

/** subdomains that were open here, each remembered for its account while the platform is away; the longest unused is forgotten */
export const USED_NAMES_MAX = 10_000;
/** of one account: no more than it can hold */
export const USED_NAMES_PER_ACCOUNT_MAX = 100;
/** so long after its last use here */
export const USED_NAMES_MS = 30 * 24 * 3_600_000;

export interface UsedNamesOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
  readonly path: string;
}

interface Use {
  readonly owner: Owner;
  /** Of the group that was there; null: it stood alone. */
  readonly groupKeyHash: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export class UsedNames {
  readonly #options: UsedNamesOptions;
  readonly #file: LineLog;
  /** By the name that they are nested below, longest unused first. */
  readonly #uses = new Map<string, Use>();
  /** The names of each account among them, in the same order; null: the operator's. */
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

  /** What the last run left. Never rejects. */
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

  /** Opened or ended there. */
  used(subdomain: string, owner: Owner, groupKeyHash: string | null): void {
    const label = owningLabel(subdomain);
    const use = { owner, groupKeyHash, at: this.#options.clock.now() };
    this.#set(label, use);
    this.#file.append(lineOf(rowOf(label, use)));
  }

  /** It was this owner's here, or that of a group with this key: of a pool the edge does not know whose the name is, only which key opened it. */
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
    // Whoever opens names without end pushes out its own, not the others'.
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

/** `account_id` null: the operator's. */
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
