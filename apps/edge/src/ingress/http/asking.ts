// Puts a visitor's request to the service behind a tunnel, and to another member of its group when the first did not get it.
import { type RequestHead, requestHeadFor } from '@tunnel/core';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker, FailedTry } from './asker.ts';
import { callService } from './call-service.ts';
import type { ServiceCall } from './service-call.ts';
import type { VisitorFacts, VisitorOwner } from './visitor.ts';

/** One request of a visitor, and who waits for its answer. */
export interface Asking {
  readonly facts: VisitorFacts;
  readonly owner: VisitorOwner;
  readonly head: RequestHead;
  readonly hasBody: boolean;
  readonly startedMs: number;
  readonly asker: Asker;
  /** Those it was put to in vain; null: none. */
  tried: Tunnel[] | null;
  /** When the first of those failed. */
  failedSinceMs: number;
  /** Another member for it; null: there is none. The last one tried is not the one that serves it. */
  another(tried: readonly Tunnel[]): Tunnel | null;
  /** The call that it is now. */
  take(call: ServiceCall): void;
}

/** The call is not started yet. Host, form and capture are as this tunnel wants them. */
export const callTunnel = ({ facts, owner, head, hasBody, startedMs, asker }: Asking, tunnel: Tunnel): ServiceCall => {
  const rewrite = tunnel.http?.hostHeader ?? null;
  const text = requestHeadFor(head, {
    visitorAddress: facts.address,
    forwardedFor: facts.forwardedFor,
    proto: facts.scheme,
    hostHeader: rewrite === null ? 'keep' : { rewrite },
  });
  const recorder = owner.capture(tunnel, head, startedMs);
  return callService(owner, tunnel, { head, text, hasBody, recorder }, asker);
};

/** false: there is nobody else to ask. */
export const askAnother = (asking: Asking, failed: FailedTry): boolean => {
  const now = asking.owner.now();
  if (asking.tried === null) asking.failedSinceMs = now;
  asking.tried ??= [];
  asking.tried.push(failed.tunnel);
  if (now - asking.failedSinceMs >= EDGE_LIMITS.MEMBER_TRIES_MS) return false;
  const next = asking.another(asking.tried);
  if (next === null) return false;
  failed.recorder?.discard();
  const call = callTunnel(asking, next);
  asking.take(call);
  const { waiting, requestDone, trailers } = failed;
  while (waiting !== null && waiting.length > 0) {
    const bytes = waiting.shift(waiting.length);
    call.writeBody(bytes, 0, bytes.length, false);
  }
  if (asking.hasBody && requestDone) call.endBody(trailers);
  call.start();
  return true;
};
