// Ordered flows with constant-time append and removal. A Set is also ordered, but finding its first member means stepping over all deleted
// entries.

export class FlowLink<F> {
  readonly flow: F;
  list: FlowList<F> | null = null;
  before: FlowLink<F> | null = null;
  after: FlowLink<F> | null = null;

  constructor(flow: F) {
    this.flow = flow;
  }

  /** Removes the flow from its list. Does nothing if it is in no list. */
  leave(): void {
    this.list?.remove(this);
  }
}

export class FlowList<F> {
  #first: FlowLink<F> | null = null;
  #last: FlowLink<F> | null = null;

  get first(): F | null {
    return this.#first?.flow ?? null;
  }

  /** Appends a flow to the list. Removes the flow from its current list first. */
  append(link: FlowLink<F>): void {
    link.leave();
    link.list = this;
    link.before = this.#last;
    if (this.#last === null) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
  }

  remove(link: FlowLink<F>): void {
    if (link.list !== this) return;
    if (link.before === null) this.#first = link.after;
    else link.before.after = link.after;
    if (link.after === null) this.#last = link.before;
    else link.after.before = link.before;
    link.list = null;
    link.before = null;
    link.after = null;
  }

  /** Removes and returns the first flow, or null if the list is empty. */
  shift(): F | null {
    const link = this.#first;
    if (link === null) return null;
    this.remove(link);
    return link.flow;
  }
}
