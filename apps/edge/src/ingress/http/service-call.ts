// One request and its response, to a local service that speaks HTTP/1.1 or HTTP/2: what a visitor's side sees of it.
import type { ChunkedForm, Framing, HeaderField, RequestHead } from '@tunnel/core';
import type { CaptureRecorder } from '../../capture/recorder.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { H2cSessions } from './h2c-sessions.ts';
import type { IdleStreams } from './idle-streams.ts';

export interface ServiceCall {
  /** From the last byte of the request to now: what the service, and the way to it, takes. */
  readonly serviceMs: number;
  start(): void;
  /** Same rule as ByteDuplex.write; a chunked body in the form of requestFormOf. */
  writeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** The body's last byte was written. The trailers count only when it was written as `data`. */
  endBody(trailers?: readonly HeaderField[]): void;
  /** The asker has drained. */
  resume(): void;
  /** Once a second. */
  tick(nowMs: number): void;
  /** The visitor left: the service is told. */
  abort(): void;
}

export interface ServiceRequest {
  readonly head: Pick<RequestHead, 'method' | 'upgrade'>;
  /** What the service is sent. */
  readonly text: string;
  readonly hasBody: boolean;
  /** null: nothing is kept of it. */
  readonly recorder: CaptureRecorder | null;
}

export interface CallContext {
  readonly idle: IdleStreams;
  readonly h2c: H2cSessions;
  readonly now: () => number;
  readonly firstByteTimeoutMs: number;
  onBytes(tunnel: Tunnel, toClient: number, toVisitor: number): void;
  /** A request begins; null: it is not captured. */
  capture(tunnel: Tunnel, head: RequestHead, startedMs: number): CaptureRecorder | null;
}

/** How a body without a length is handed to the service: HTTP/2 frames by itself. */
export const requestFormOf = (tunnel: Tunnel): ChunkedForm =>
  tunnel.http?.localProtocol === 'h2c' ? 'data' : 'chunks';

export const hasBodyOf = (framing: Framing): boolean =>
  framing.kind === 'chunked' || (framing.kind === 'length' && framing.length > 0);
