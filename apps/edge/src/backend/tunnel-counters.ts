// What one tunnel has carried: raised by what passes, read by everyone, and billed to its account.
// The counters go on as long as the tunnel does, also for connections that outlive it.

export class TunnelCounters {
  /** Not billed; whoever leases a tunnel to a connection keeps it. */
  openConnections = 0;
  #requests = 0;
  #pendingFailover = 0;
  #bytes = 0;
  #onChange: (() => void) | null = null;

  /** HTTP requests, or public connections of a tcp tunnel. */
  get requests(): number {
    return this.#requests;
  }

  /** Those of them that another member of the group may yet serve instead. */
  get pendingFailover(): number {
    return this.#pendingFailover;
  }

  /** Bytes on its streams, both ways, without our framing. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Called for every chunk: one check is all that it costs to be watched. */
  addBytes(count: number): void {
    this.#bytes += count;
    if (this.#onChange !== null) this.#tell();
  }

  addRequest(): void {
    this.#requests += 1;
    this.#tell();
  }

  /** Another member serves it. */
  takeBackRequest(): void {
    this.#requests -= 1;
    this.#tell();
  }

  addPendingFailover(): void {
    this.#pendingFailover += 1;
    this.#tell();
  }

  endPendingFailover(): void {
    this.#pendingFailover -= 1;
    this.#tell();
  }

  /** Calls back once, at the next change of what is billed; null: not any more. */
  onNextChange(listener: (() => void) | null): void {
    this.#onChange = listener;
  }

  #tell(): void {
    const listener = this.#onChange;
    this.#onChange = null;
    listener?.();
  }
}
