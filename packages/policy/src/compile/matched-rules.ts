// The rules that matched a request, in order. Most requests of a tunnel match the same rules and share the list of the previous request.
import type { RuleRef } from '../policy-step.ts';

const NONE: readonly RuleRef[] = [];

/** Policy rules that matched the last request that passed. Shared by requests that match the same rules. */
export interface LastMatched {
  rules: readonly RuleRef[];
}

export const newLastMatched = (): LastMatched => ({ rules: NONE });

/** Base class of the rule evaluator. Inheritance saves an object per request, which is measurable at high request rates. */
export class MatchedRules {
  readonly #memory: LastMatched | null;
  /** The last list as of the start of this request. Later requests replace the shared list while this request waits. */
  readonly #last: readonly RuleRef[];
  #count = 0;
  /** List of the rules that matched this request. Null while they are the same as in the last request. */
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

  /** The rules matched so far, in order. Callers must not change the list. */
  protected get matched(): readonly RuleRef[] {
    if (this.#own !== null) return this.#own;
    return this.#count === this.#last.length ? this.#last : this.#last.slice(0, this.#count);
  }

  /** Returns the matched rules and stores them as the starting point of the next request. */
  protected get matchedOfPass(): readonly RuleRef[] {
    const { matched } = this;
    if (this.#memory !== null) this.#memory.rules = matched;
    return matched;
  }
}
