// Opens streams to a service: over the mux of a client's session, or directly to a service on the same machine (local-upstream.ts).
import { Fault } from '@tunnel/errors';
import type { ByteDuplex, DatagramAnswer, DatagramStream, Guarded, MuxSession, PendingStream } from '@tunnel/mux';
import { CAPABILITY, type RequestStream, type StreamHead, type StreamReason } from '@tunnel/protocol';

/** A stream to a service over any path. Can be read by successive readers. */
export interface UpstreamStream extends ByteDuplex, RequestStream {
  readonly state: 'opening' | 'offered' | 'open' | 'closed';
  /** Whether the stream's carrier is about to close. A retiring stream should not be kept for reuse. */
  readonly isRetiring: boolean;
  /** Whether the peer may send more at once on this stream than on a new stream, because its window has grown. */
  readonly hasGrown: boolean;
}

export interface UpstreamAnswer extends Guarded {
  onOpened(stream: UpstreamStream): void;
  onRefused(reason: StreamReason): void;
}

export interface Upstream {
  /**
   * Whether a stream to the client can be opened immediately. Otherwise the opening waits a little, because the client may be
   * reconnecting.
   */
  readonly isConnected: boolean;
  /** Identity of the current connection. Changes when the client reconnects. Null while the client is disconnected. */
  readonly connection: object | null;
  /**
   * Opens a stream. Calls exactly one method of `answer`, unless the pending stream is reset before. Returns null if no streams are
   * accepted now.
   */
  open(head: StreamHead, answer: UpstreamAnswer): PendingStream | null;
  /** Whether new UDP flows should start. False if the client is falling behind with datagrams. */
  readonly takesFlows: boolean;
  /**
   * Opens a flow; its first datagrams can follow immediately. Returns null if the client is disconnected or has no carrier, because
   * datagrams do not wait.
   */
  openDatagrams(head: Omit<StreamHead, 'flow'>, answer: DatagramAnswer): DatagramStream | null;
}

/** A client connected to this process. Its session gets a new mux with each connection; the old mux lets its streams finish. */
export class MuxUpstream implements Upstream {
  /** Mux session on the client's current connection. Null while the client is disconnected. */
  mux: MuxSession | null;

  constructor(mux: MuxSession | null = null) {
    this.mux = mux;
  }

  get isConnected(): boolean {
    return this.mux !== null && this.mux.liveCarriers > 0;
  }

  get connection(): MuxSession | null {
    return this.mux;
  }

  /**
   * Returns null for a named service if the client does not support policies: such a client would ignore the name and connect visitors to
   * the tunnel's default service.
   */
  open(head: StreamHead, answer: UpstreamAnswer): PendingStream | null {
    const { mux } = this;
    if (mux === null || (head.service !== undefined && !mux.capabilities.includes(CAPABILITY.POLICY))) return null;
    return mux.open(head, answer);
  }

  get takesFlows(): boolean {
    return this.mux?.takesFlows ?? true;
  }

  openDatagrams(head: Omit<StreamHead, 'flow'>, answer: DatagramAnswer): DatagramStream | null {
    return this.mux?.openDatagrams(head, answer) ?? null;
  }
}

/** Returns the error shown to a visitor when the client refused the stream. */
export const faultOfRefusal = ({ code, text }: StreamReason): Fault =>
  code === 'dial-refused' || code === 'dial-timeout'
    ? new Fault('LOCAL_UNREACHABLE', { reason: text })
    : new Fault('TUNNEL_AWAY');
