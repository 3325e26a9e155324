// What a stream needs of the connection that carries it.
import type { StreamReason } from '@tunnel/protocol';
import type { ReportInternalError } from '../loop/guard.ts';
import type { ReceiveWindow } from './flow-control.ts';
import type { MuxStream } from './mux-stream.ts';

export interface StreamConnection {
  /** It takes no new streams; those it has finish. */
  readonly retiring: boolean;
  readonly carrierTag: string;
  sendOpened(stream: MuxStream): ReceiveWindow;
  sendRefused(stream: MuxStream, reason: StreamReason): void;
  sendFin(stream: MuxStream): void;
  sendReset(stream: MuxStream, reason: StreamReason): void;
  sendWindow(stream: MuxStream, window: ReceiveWindow): void;
  /** true: the memory is free again; false: borrowed and in use until carrierReady(). */
  sendData(stream: MuxStream, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Whether this much has to wait; the stream is then told by carrierReady(). */
  mustWait(stream: MuxStream, bytes: number): boolean;
  /** A read buffer is kept by a slow sink (+1) or free again (-1). */
  pinned(delta: 1 | -1): void;
  /** The memory that is being handed out is not free when its reader returns, or nobody knows. */
  keptReference(): void;
  forget(stream: MuxStream): void;
  /** Of a stream that nobody reads yet, or whose reader could not even let go of it. */
  readonly report: ReportInternalError;
}
