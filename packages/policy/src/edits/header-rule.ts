// Header changes of a rule, with placeholders filled from the request. Consecutive requests of a visitor mostly get the same values and
// then share an object, which saves allocations and memory in captures.

import type { HeaderChanges } from '../policy.ts';
import type { PolicyRequest, ResponseEdit } from '../policy-step.ts';
import { byteText } from '../text/bytes.ts';
import { type FillRoom, headerPairs, parseTemplate, type Template } from './placeholders.ts';

/** Changes to the header fields of a request or response, with all placeholders filled. */
export type FilledFields = Extract<ResponseEdit, { kind: 'headers' }>;

type Templates = readonly (readonly [name: string, value: Template])[];

const NONE: readonly never[] = [];
/** Maximum length of a user name in the remembered result, so that the memory per rule stays small. */
const USER_MAX_CHARS = 128;

export class HeaderRule {
  readonly #set: Templates;
  readonly #add: Templates;
  readonly #remove: readonly string[];
  /** Which part of a request determines the values of the rule's placeholders. */
  readonly #dependsOn: 'nothing' | 'visitor' | 'request';
  #last: FilledFields | null = null;
  #lastAddress = '';
  #lastUser = '';
  /** Characters to which the placeholders expanded in the last result. */
  #lastSpent = 0;

  constructor({ set, add, remove }: HeaderChanges) {
    this.#set = templatesOf(set);
    this.#add = templatesOf(add);
    this.#remove = remove === undefined ? NONE : remove.map((name) => name.toLowerCase());
    this.#dependsOn = dependence([...this.#set, ...this.#add]);
  }

  /** Fills the rule's placeholders from the request. Returns null if they expand beyond the length limit. */
  filledFor(request: PolicyRequest, user: string, room: FillRoom): FilledFields | null {
    if (this.#last !== null && this.#isSame(request, user)) {
      room.fillLeft -= this.#lastSpent;
      return room.fillLeft < 0 ? null : this.#last;
    }
    const before = room.fillLeft;
    const filled = this.#fill(request, user, room);
    if (filled !== null && this.#dependsOn !== 'request' && user.length <= USER_MAX_CHARS) {
      this.#last = filled;
      this.#lastAddress = request.address;
      this.#lastUser = user;
      this.#lastSpent = before - room.fillLeft;
    }
    return filled;
  }

  #isSame({ address }: PolicyRequest, user: string): boolean {
    return this.#dependsOn === 'nothing' || (address === this.#lastAddress && user === this.#lastUser);
  }

  #fill(request: PolicyRequest, user: string, room: FillRoom): FilledFields | null {
    const set = headerPairs(this.#set, request, user, room);
    const add = headerPairs(this.#add, request, user, room);
    return set === null || add === null ? null : { kind: 'headers', set, add, remove: this.#remove };
  }
}

const templatesOf = (fields: Readonly<Record<string, string>> | undefined): Templates =>
  fields === undefined
    ? NONE
    : Object.entries(fields).map(([name, value]) => [name, parseTemplate(byteText(value))] as const);

const dependence = (templates: Templates): 'nothing' | 'visitor' | 'request' => {
  const fills = templates.flatMap(([, template]) =>
    typeof template === 'string' ? [] : template.flatMap((piece) => (typeof piece === 'string' ? [] : [piece.fill])),
  );
  if (fills.length === 0) return 'nothing';
  return fills.every((fill) => fill === 'address' || fill === 'user') ? 'visitor' : 'request';
};
