// Connections of accounts on the control port. A session counts with all its carriers as soon as it is admitted. Otherwise many
// reconnecting clients would be admitted at once and then find no room for the carriers they need.
import { FairShare, type ShareRefusal } from '../rate/fair-share.ts';
import { ownerKey } from '../tunnels/owner.ts';

/** Carriers that each client session is expected to open, reserved when the session is admitted. */
const CARRIERS_OF_A_SESSION = 4;

/** Minimum number of control connections that an account can open. The regular limit is a quarter of all connections for control. */
const CONNECTIONS_MIN = 64;

/** `replacement`: a session that replaces its old connection, which closes once the new connection is admitted. */
export type ControlRole = 'session' | 'replacement' | 'carrier';

interface Held {
  readonly sessions: number;
  readonly carriers: number;
}

const NOTHING: Held = { sessions: 0, carriers: 0 };

/** Carriers beyond the expected number count individually: extra carriers, or those of a replaced connection. */
const slotsOf = ({ sessions, carriers }: Held): number =>
  Math.max(sessions * (1 + CARRIERS_OF_A_SESSION), sessions + carriers);

const withOneMore = ({ sessions, carriers }: Held, role: ControlRole): Held =>
  role === 'carrier' ? { sessions, carriers: carriers + 1 } : { sessions: sessions + 1, carriers };

export class AccountConnections {
  readonly #slots: FairShare;
  readonly #of = new Map<string, Held>();

  constructor(limit: number) {
    this.#slots = new FairShare({
      limit,
      perHolder: Math.max(CONNECTIONS_MIN, Math.floor(limit / 4)),
      // The operator's clients are not limited per account. The reserve for accounts below the mean still applies.
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  get perAccount(): number {
    return this.#slots.perHolder;
  }

  /** Returns the account's open control connections plus the carriers still expected from its sessions. */
  of(account: string): number {
    return this.#slots.of(account);
  }

  refusal(account: string, role: ControlRole): ShareRefusal | null {
    const held = this.#of.get(account) ?? NOTHING;
    const more = slotsOf(withOneMore(held, role)) - slotsOf(held);
    if (more === 0) return null;
    if (role === 'session') return this.#slots.refusal(account, more);
    // A reconnecting client needs its slots twice, because its old connection takes a moment to close.
    const perHolder = role === 'replacement' ? 2 * this.perAccount : this.perAccount;
    const refusal = this.#slots.refusal(account, more, perHolder);
    // An admitted session always gets its carriers, because it is useless without them.
    return refusal === 'nearly-all-taken' ? null : refusal;
  }

  /** Counts a control connection of an account. Every take() must be followed by one give() with the same arguments. */
  take(account: string, role: ControlRole): void {
    const held = this.#of.get(account) ?? NOTHING;
    this.#set(account, held, withOneMore(held, role));
  }

  give(account: string, role: ControlRole): void {
    const held = this.#of.get(account) ?? NOTHING;
    const { sessions, carriers } = held;
    this.#set(
      account,
      held,
      role === 'carrier' ? { sessions, carriers: carriers - 1 } : { sessions: sessions - 1, carriers },
    );
  }

  #set(account: string, before: Held, after: Held): void {
    if (after.sessions + after.carriers === 0) this.#of.delete(account);
    else this.#of.set(account, after);
    const more = slotsOf(after) - slotsOf(before);
    if (more > 0) this.#slots.take(account, more);
    else this.#slots.give(account, -more);
  }
}
