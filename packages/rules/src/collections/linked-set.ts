// A set in order of entry for what comes and goes all the time, such as connections. V8's own Set and Map leave a table behind each time they are
// compacted, and each of these points to the next: once one of them is old, whatever came and went since is kept until the next full collection, and
// every connection is copied twice before it dies. Here what leaves is pointed to by nobody.

/** What a member keeps, and leaves by. */
export class ListNode<T> {
  /** null: it has left. */
  item: T | null;
  before: ListNode<T> | null;
  after: ListNode<T> | null = null;

  constructor(item: T, before: ListNode<T> | null) {
    this.item = item;
    this.before = before;
  }
}

export class LinkedSet<T> {
  #first: ListNode<T> | null = null;
  #last: ListNode<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | null {
    return this.#first === null ? null : this.#first.item;
  }

  get last(): T | null {
    return this.#last === null ? null : this.#last.item;
  }

  /** Of one that is not in. */
  add(item: T): ListNode<T> {
    const last = this.#last;
    const node = new ListNode(item, last);
    if (last === null) this.#first = node;
    else last.after = node;
    this.#last = node;
    this.#size += 1;
    return node;
  }

  /** false: it has left already, or was never in. */
  delete(node: ListNode<T> | null): boolean {
    if (node === null || node.item === null) return false;
    const { before, after } = node;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    // It may be old already, and would keep whom it points to.
    node.item = null;
    node.before = null;
    node.after = null;
    this.#size -= 1;
    return true;
  }

  /** Oldest first. Whoever takes members out on the way looks at a copy. */
  *[Symbol.iterator](): Generator<T> {
    for (let node = this.#first; node !== null; node = node.after) yield node.item as T;
  }
}
