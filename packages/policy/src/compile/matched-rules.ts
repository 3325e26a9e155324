// Which rules matched a request, in their order. Most requests of a tunnel match the same ones, and then the list is that of the request before.
import type { RuleRef } from '../policy-step.ts';

const NONE: readonly RuleRef[] = [];

/** Of the last request that passed. */
export interface LastMatched {
  rules: readonly RuleRef[];
}

export const newLastMatched = (): LastMatched => ({ rules: NONE });

/** What reads the rules is one of these: requests are many, and one object fewer for each shows. */
export class MatchedRules {
  readonly #memory: LastMatched | null;
  /** As it was when this request began: others change it while this one waits. */
  readonly #last: readonly RuleRef[];
  #count = 0;
  /** null: so far the same as last time. */
  #own: RuleRef[] | null = null;

  constructor(memory: LastMatched | null) {
    this.#memory = memory;
    this.#last = memory === null ? NONE : memory.rules;
  }

  protected addMatched(rule: RuleRef): void {
    if (this.#own === null && this.#last[this.#count] !== rule) this.#own = this.#last.slice(0, this.#count);
    this.#own?.push(rule);
    this.#count += 1;
  }

  protected get hasMatched(): boolean {
    return this.#count > 0;
  }

  /** The rules that matched so far, in order. Callers do not change the list. */
  protected get matched(): readonly RuleRef[] {
    if (this.#own !== null) return this.#own;
    return this.#count === this.#last.length ? this.#last : this.#last.slice(0, this.#count);
  }

  /** The same for the next request to begin with. */
  protected get matchedOfPass(): readonly RuleRef[] {
    const { matched } = this;
    if (this.#memory !== null) this.#memory.rules = matched;
    return matched;
  }
}
