// Limits notices per second, for a subject and for all subjects of a holder. Events beyond the limits are counted, so that a flood becomes
// a few notices and a number.

export interface NoticePaceRules {
  /** Maximum notices per second about one subject, such as a tunnel. */
  readonly perSubject: number;
  /** Maximum notices per second about all subjects of a holder, such as an account. */
  readonly perHolder: number;
}

interface SubjectSecond {
  readonly holder: string;
  sent: number;
  unsent: number;
}

export class NoticePace<Subject> {
  readonly #rules: NoticePaceRules;
  /** Subjects with an event in the current second, and subjects with a count that could not be sent yet. */
  readonly #subjects = new Map<Subject, SubjectSecond>();
  readonly #sentOfHolders = new Map<string, number>();

  constructor(rules: NoticePaceRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#subjects.size;
  }

  /**
   * Returns whether to send a notice for the event. If not, the event is counted. `holderOf` is called only for the first event of a
   * second.
   */
  take(subject: Subject, holderOf: () => string): boolean {
    let second = this.#subjects.get(subject);
    if (second === undefined) {
      second = { holder: holderOf(), sent: 0, unsent: 0 };
      this.#subjects.set(subject, second);
    }
    const ofHolder = this.#sentOfHolders.get(second.holder) ?? 0;
    if (second.sent >= this.#rules.perSubject || ofHolder >= this.#rules.perHolder) {
      second.unsent += 1;
      return false;
    }
    second.sent += 1;
    this.#sentOfHolders.set(second.holder, ofHolder + 1);
    return true;
  }

  /** Counts the event of a notice that take() allowed but that could not be sent. */
  notSent(subject: Subject): void {
    const second = this.#subjects.get(subject);
    if (second !== undefined) second.unsent += 1;
  }

  /**
   * Ends the current second. Calls `tell` with the number of events without a notice. If `tell` returns false, the number is offered again
   * after the next second.
   */
  nextSecond(tell: (subject: Subject, unsent: number) => boolean): void {
    this.#sentOfHolders.clear();
    for (const [subject, second] of this.#subjects) {
      if (second.unsent === 0 || tell(subject, second.unsent)) this.#subjects.delete(subject);
      else second.sent = 0;
    }
  }
}
