// Flows in an order, each with its own link: one is put at the end or taken out in the same short time, however many there are. A Set keeps an order
// too, but finding its first after many have left it means to step over each of them.

export class FlowLink<F> {
  readonly flow: F;
  list: FlowList<F> | null = null;
  before: FlowLink<F> | null = null;
  after: FlowLink<F> | null = null;

  constructor(flow: F) {
    this.flow = flow;
  }

  /** Nothing happens to one that stands nowhere. */
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

  /** Leaves the list that it stands in. */
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

  /** Takes the first one out; null: there is none. */
  shift(): F | null {
    const link = this.#first;
    if (link === null) return null;
    this.remove(link);
    return link.flow;
  }
}
