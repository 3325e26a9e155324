// Where streams are opened: over the mux of a client's session, or straight to a service of this machine (local-upstream.ts).
import { Fault } from '@tunnel/errors';
import type { ByteDuplex, DatagramAnswer, DatagramStream, Guarded, MuxSession, PendingStream } from '@tunnel/mux';
import { CAPABILITY, type RequestStream, type StreamHead, type StreamReason } from '@tunnel/protocol';

/** A stream to a service, whichever way it goes. It may be read by one reader after the other. */
export interface UpstreamStream extends ByteDuplex, RequestStream {
  readonly state: 'opening' | 'offered' | 'open' | 'closed';
  /** What carries it is about to go: whoever keeps a stream for later use lets go of this one. */
  readonly isRetiring: boolean;
  /** Its peer may send more at once than on a fresh one. */
  readonly hasGrown: boolean;
}

export interface UpstreamAnswer extends Guarded {
  onOpened(stream: UpstreamStream): void;
  onRefused(reason: StreamReason): void;
}

export interface Upstream {
  /** A stream begins at once. Else its opening waits a little for the client, who may just be coming back. */
  readonly isConnected: boolean;
  /** What streams are opened on now, by identity: another one when the client has come back. null while it is away. */
  readonly connection: object | null;
  /** Exactly one of the answers comes, unless the pending stream is reset before. null: no streams are taken now. */
  open(head: StreamHead, answer: UpstreamAnswer): PendingStream | null;
  /** false: the client is about to be behind with datagrams, and a new flow would cost it more of the time it does not have. */
  readonly takesFlows: boolean;
  /** A flow, whose first datagrams may follow at once. null: the client is away, or has no carrier; a datagram does not wait for one. */
  openDatagrams(head: Omit<StreamHead, 'flow'>, answer: DatagramAnswer): DatagramStream | null;
}

/** A client of this process. Its session gets a new mux with each connection; the old one lets its streams finish. */
export class MuxUpstream implements Upstream {
  /** null while the client is away. */
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

  /** A client that knows no policies would pass over the name of a service, and take its visitor to the tunnel's own. */
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

/** What a visitor is told of a stream that was refused. */
export const faultOfRefusal = ({ code, text }: StreamReason): Fault =>
  code === 'dial-refused' || code === 'dial-timeout'
    ? new Fault('LOCAL_UNREACHABLE', { reason: text })
    : new Fault('TUNNEL_AWAY');
