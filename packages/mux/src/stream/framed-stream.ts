// What a carrier's frames are handed to: a stream of bytes or of datagrams. Each answers false to a frame that does not fit it, which is a violation.
import type { ListNode } from '@tunnel/core';
import type { StreamReason } from '@tunnel/protocol';

export interface FramedStream {
  readonly id: number;
  readonly openedAtMs: number;
  /** Tunnel that this side has opened the stream for; empty for streams of the peer. */
  tunnelId: string;
  /** Its place among those that the peer has not answered yet. */
  unanswered: ListNode<FramedStream> | null;
  handleOpened(creditBytes: number): boolean;
  handleRefused(reason: StreamReason): boolean;
  handleData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  handleDatagram(bytes: Buffer, start: number, end: number): boolean;
  handleCredit(bytes: number): boolean;
  handleFin(): boolean;
  /** The peer, the carrier or a time limit ended both directions. */
  handleReset(reason: StreamReason): void;
  /** The carrier is being replaced, and its session lives on: whoever can begin anew elsewhere does. */
  handleRetiring(): void;
  /** The carrier has sent what it had. */
  carrierReady(): void;
}
