// The fields that rules put into heads, made ready: most are the same for one request after the other.
import { type FieldRole, PartField } from '@tunnel/http1';
import type { HeaderPair } from '../policy-step.ts';

/** A power of two. */
const SLOTS = 64;
/** A longer value is made each time: what is kept stays small. */
const KEPT_MAX_CHARS = 128;

class MadeField extends PartField {
  readonly #line: string;

  constructor(name: string, given: string, role: FieldRole) {
    super(name, given, role);
    this.#line = `${name}: ${given}\r\n`;
  }

  override get line(): string {
    return this.#line;
  }
}

/** A few of those that were made last, found by the lengths of their texts and a character: that costs nothing, and what is found is compared. */
export class MadeFields {
  readonly #roleOf: (name: string) => FieldRole;
  readonly #slots: (MadeField | null)[] = Array.from({ length: SLOTS }, () => null);

  constructor(roleOf: (name: string) => FieldRole) {
    this.#roleOf = roleOf;
  }

  of(pair: HeaderPair): PartField {
    const name = pair[0];
    const value = pair[1];
    const slot = (name.length * 5 + value.length + value.charCodeAt(0)) & (SLOTS - 1);
    const known = this.#slots[slot] as MadeField | null;
    if (known !== null && known.given === value && known.name === name) return known;
    const made = new MadeField(name, value, this.#roleOf(name));
    if (value.length <= KEPT_MAX_CHARS) this.#slots[slot] = made;
    return made;
  }
}
