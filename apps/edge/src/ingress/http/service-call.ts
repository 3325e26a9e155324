// One request and its response, to a local service that speaks HTTP/1.1 or HTTP/2.
import type { ChunkedForm, HeaderField } from '@tunnel/core';
import type { Tunnel } from '../../pool/tunnel.ts';
import { type Asker, Exchange, type ExchangeContext, type ExchangeRequest } from './exchange.ts';
import { H2cExchange } from './h2c-exchange.ts';

export interface ServiceCall {
  /** From the last byte of the request to now: what the service, and the way to it, takes. */
  readonly serviceMs: number;
  start(): void;
  /** Same rule as ByteEnd.write; a chunked body in the form of requestFormOf. */
  writeBody(bytes: Buffer, start: number, end: number, lend: boolean): boolean;
  /** The body's last byte was written. The trailers count only when it was written as `data`. */
  endBody(trailers?: readonly HeaderField[]): void;
  /** The asker has drained. */
  resume(): void;
  /** Once a second. */
  tick(nowMs: number): void;
  /** The visitor left: the service is told. */
  abort(): void;
}

/** How a body without a length is handed to the service: HTTP/2 frames by itself. */
export const requestFormOf = (tunnel: Tunnel): ChunkedForm =>
  tunnel.http?.localProtocol === 'h2c' ? 'data' : 'chunks';

export const callService = (
  context: ExchangeContext,
  tunnel: Tunnel,
  request: ExchangeRequest,
  asker: Asker,
): ServiceCall =>
  tunnel.http?.localProtocol === 'h2c'
    ? new H2cExchange(context, tunnel, request, asker)
    : new Exchange(context, tunnel, request, asker);
