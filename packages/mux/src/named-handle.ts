// The two ends of a connection on a bare handle by their addresses, asked of the kernel when somebody wants to know.
import type { PeerName, StreamHandle } from './node-handles.ts';
import { PacedReads } from './paced-reads.ts';

export abstract class NamedHandle extends PacedReads {
  /** The handle of the connection itself, also where TLS lies on it. */
  abstract readonly wire: StreamHandle;
  protected isClosed = false;
  #peer: PeerName | null = null;

  /** undefined: it is gone already. */
  get remoteAddress(): string | undefined {
    return this.#peerName().address;
  }

  get remotePort(): number | undefined {
    return this.#peerName().port;
  }

  /** What the peer reached; undefined: it is gone already. */
  get localAddress(): string | undefined {
    return this.#ownName().address;
  }

  get localPort(): number | undefined {
    return this.#ownName().port;
  }

  /** Few ask, and each at most once. */
  #ownName(): PeerName {
    const name: PeerName = {};
    if (!this.isClosed) this.wire.getsockname?.(name);
    return name;
  }

  /** Asked of the kernel once. */
  #peerName(): PeerName {
    if (this.#peer === null) {
      this.#peer = {};
      if (!this.isClosed) this.wire.getpeername?.(this.#peer);
    }
    return this.#peer;
  }
}
