// A set in insertion order for members with a high turnover, such as connections. V8's Set and Map leave their old table behind at every
// compaction, with a pointer to the next. Once a table is in the old generation, all later tables stay alive until the next full
// collection, and every connection is copied twice before it is freed. Nodes of this list are unreachable as soon as they are deleted.

/** Handle of a member of a linked set, used to delete the member. */
export class ListNode<T> {
  /** The member of the linked set. Null after deletion. */
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

  /** Appends an item to the set. The item must not be a member yet. */
  add(item: T): ListNode<T> {
    const last = this.#last;
    const node = new ListNode(item, last);
    if (last === null) this.#first = node;
    else last.after = node;
    this.#last = node;
    this.#size += 1;
    return node;
  }

  /** Deletes a member of the set. Returns false if the node is already deleted or null. */
  delete(node: ListNode<T> | null): boolean {
    if (node === null || node.item === null) return false;
    const { before, after } = node;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    // Clears the pointers, because a node in the old generation would keep its neighbors alive.
    node.item = null;
    node.before = null;
    node.after = null;
    this.#size -= 1;
    return true;
  }

  /** Iterates over the members, oldest first. To delete members during iteration, iterate over a copy. */
  *[Symbol.iterator](): Generator<T> {
    for (let node = this.#first; node !== null; node = node.after) yield node.item as T;
  }
}
