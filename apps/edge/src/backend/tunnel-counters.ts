// Counters of the traffic of a tunnel, which is billed to the tunnel's account. The counters keep counting for connections that outlive
// the tunnel.

export class TunnelCounters {
  /** Number of open connections, maintained by the code that leases the tunnel to a connection. Not billed. */
  openConnections = 0;
  #requests = 0;
  #pendingFailover = 0;
  #bytes = 0;
  #onChange: (() => void) | null = null;

  /** Number of HTTP requests, or of visitor connections of a tcp tunnel. */
  get requests(): number {
    return this.#requests;
  }

  /** Number of counted requests that another member of the group may still serve instead. */
  get pendingFailover(): number {
    return this.#pendingFailover;
  }

  /** Bytes on the tunnel's streams in both directions, without the framing of the tunnel protocol. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes. Called for every chunk, so watching for changes costs no more than a null check. */
  addBytes(count: number): void {
    this.#bytes += count;
    if (this.#onChange !== null) this.#tell();
  }

  addRequest(): void {
    this.#requests += 1;
    this.#tell();
  }

  /** Removes a request from the count, because another group member serves the request. */
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

  /** Calls the listener once, at the next change of a billed counter. Null removes the listener. */
  onNextChange(listener: (() => void) | null): void {
    this.#onChange = listener;
  }

  #tell(): void {
    const listener = this.#onChange;
    this.#onChange = null;
    listener?.();
  }
}
