// Puts a visitor's request to the service behind a tunnel.
import { type RequestHead, requestHeadFor } from '@tunnel/core';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker } from './asker.ts';
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
}

/** The call is not started yet. Host, form and capture are as this tunnel wants them. */
export const callTunnel = ({ facts, owner, head, hasBody, startedMs, asker }: Asking, tunnel: Tunnel): ServiceCall => {
  const rewrite = tunnel.http?.hostHeader ?? null;
  const text = requestHeadFor(head, {
    visitorAddress: facts.address,
    proto: facts.scheme,
    hostHeader: rewrite === null ? 'keep' : { rewrite },
  });
  const recorder = owner.capture(tunnel, head, startedMs);
  return callService(owner, tunnel, { head, text, hasBody, recorder }, asker);
};
