// What accounts hold on the control port. A session counts with all its carriers from the moment it is let in, whether they have come or not:
// many clients that come back at once would else all be let in, and find no room for the carriers without which they are no use.
import { type ShareRefusal, Shares } from '../rate/fair-share.ts';
import { ownerKey } from '../tunnels/owner.ts';

/** Carriers that a session will want. */
const CARRIERS_OF_A_SESSION = 4;

/** Connections that an account may hold however few descriptors there are; else a quarter of those for control. */
const CONNECTIONS_MIN = 64;

/** `replacement`: of a session whose old connection still lives, and ends when this one is let in. */
export type ControlRole = 'session' | 'replacement' | 'carrier';

interface Held {
  readonly sessions: number;
  readonly carriers: number;
}

const NOTHING: Held = { sessions: 0, carriers: 0 };

/** Carriers beyond those of its sessions count as they are: more of them than usual, or of a connection that was replaced. */
const slotsOf = ({ sessions, carriers }: Held): number =>
  Math.max(sessions * (1 + CARRIERS_OF_A_SESSION), sessions + carriers);

const withOneMore = ({ sessions, carriers }: Held, role: ControlRole): Held =>
  role === 'carrier' ? { sessions, carriers: carriers + 1 } : { sessions: sessions + 1, carriers };

export class AccountConnections {
  readonly #slots: Shares;
  readonly #of = new Map<string, Held>();

  constructor(limit: number) {
    this.#slots = new Shares({
      limit,
      perHolder: Math.max(CONNECTIONS_MIN, Math.floor(limit / 4)),
      // Its clients may be any number, and it is nobody's tenant; what is left when nearly all is taken is for others all the same.
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  get perAccount(): number {
    return this.#slots.perHolder;
  }

  /** Connections, and carriers that are still to come. */
  of(account: string): number {
    return this.#slots.of(account);
  }

  refusal(account: string, role: ControlRole): ShareRefusal | null {
    const held = this.#of.get(account) ?? NOTHING;
    const more = slotsOf(withOneMore(held, role)) - slotsOf(held);
    if (more === 0) return null;
    if (role === 'session') return this.#slots.refusal(account, more);
    // While it comes back, a client holds its slots twice: what was before takes a moment to close.
    const perHolder = role === 'replacement' ? 2 * this.perAccount : this.perAccount;
    const refusal = this.#slots.refusal(account, more, perHolder);
    // A session that was let in gets its carriers, or it would be none.
    return refusal === 'nearly-all-taken' ? null : refusal;
  }

  /** Whoever takes owes one give() with the same arguments. */
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
