// How many notices are sent in one second: so many of one subject, so many of all subjects of one holder. The rest is counted, so that a flood of events
// becomes a few notices and a number.

export interface NoticePaceRules {
  /** Notices of one subject in a second. */
  readonly perSubject: number;
  /** Notices of all subjects of one holder in a second. */
  readonly perHolder: number;
}

interface SubjectSecond {
  readonly holder: string;
  sent: number;
  unsent: number;
}

export class NoticePace<Subject> {
  readonly #rules: NoticePaceRules;
  /** Subjects with an event in this second, and subjects whose count could not be sent yet. */
  readonly #subjects = new Map<Subject, SubjectSecond>();
  readonly #sentOfHolders = new Map<string, number>();

  constructor(rules: NoticePaceRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#subjects.size;
  }

  /** Whether a notice of this event is sent. Otherwise the event is counted. `holderOf` is called for the first event of a second. */
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

  /** A notice that take() allowed did not go out: its event is counted instead. */
  notSent(subject: Subject): void {
    const second = this.#subjects.get(subject);
    if (second !== undefined) second.unsent += 1;
  }

  /**
   * A second has passed. `tell` is called with the number of events that had no notice; it returns false when the number could not be sent, and is then
   * asked again after the next second.
   */
  nextSecond(tell: (subject: Subject, unsent: number) => boolean): void {
    this.#sentOfHolders.clear();
    for (const [subject, second] of this.#subjects) {
      if (second.unsent === 0 || tell(subject, second.unsent)) this.#subjects.delete(subject);
      else second.sent = 0;
    }
  }
}
