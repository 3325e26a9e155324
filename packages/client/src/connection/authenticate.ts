// The first exchange on a control connection: the client's credentials, the session to resume, and the edge's response.
import { Fault } from '@tunnel/errors';
import {
  CAPABILITIES,
  CLOSE_CODES,
  type ControlMessageInput,
  type MessageOf,
  SUPPORTED_VERSIONS,
  WIRE_LIMITS,
} from '@tunnel/protocol';
import type { Clock, Secret } from '@tunnel/runtime';
import type { ControlLink } from './control-link.ts';

export interface Credentials {
  readonly token: Secret;
  readonly agent: string;
  /** Name of the client's computer. Undefined if the computer has no name. */
  readonly clientName?: string | undefined;
  readonly resume: { readonly sessionId: string; readonly secret: string } | null;
}

/** A failed connection attempt. `final` means that a retry would fail in the same way. */
export class AttemptFailed extends Error {
  readonly fault: Fault;
  readonly final: boolean;
  readonly retryAfterMs: number;

  constructor(fault: Fault, options: { final: boolean; retryAfterMs?: number }) {
    super(fault.message, { cause: fault });
    this.fault = fault;
    this.final = options.final;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/** Sends Auth and waits for AuthOk. Rejects with AttemptFailed and closes the link on failure. */
export const authenticate = (link: ControlLink, who: Credentials, clock: Clock): Promise<MessageOf<'AuthOk'>> =>
  new Promise((resolve, reject) => {
    const seconds = WIRE_LIMITS.CONTROL_AUTH_TIMEOUT_MS / 1000;
    const timer = clock.setTimeout(
      () => link.drop(new Fault('CONTROL_DEAD', { seconds })),
      WIRE_LIMITS.CONTROL_AUTH_TIMEOUT_MS,
    );
    const fail = (failure: AttemptFailed): void => {
      timer.cancel();
      reject(failure);
      link.close(1000, 'refused');
    };
    link.listen({
      onMessage: (message) => {
        if (message.type === 'AuthOk') {
          timer.cancel();
          // Messages directly after AuthOk are for the session, so the link queues them until the session listens.
          link.unlisten();
          resolve(message);
        } else if (message.type === 'AuthError') fail(refusal(message));
        else if (message.type === 'Error' && message.fatal) {
          fail(new AttemptFailed(Fault.fromWire(message.code, message.message), { final: !message.retryable }));
        }
      },
      // The close code authRefused means that the edge sent an AuthError that was lost on the way.
      onEnd: ({ closeCode, fault }) => fail(new AttemptFailed(fault, { final: closeCode === CLOSE_CODES.authRefused })),
    });
    link.send(authMessage(who));
  });

/** Builds the Auth message. Empty fields are left out, so a client without capabilities sends the same bytes as protocol version 1. */
export const authMessage = (
  { token, agent, clientName, resume }: Credentials,
  capabilities: readonly string[] = CAPABILITIES,
): ControlMessageInput => ({
  type: 'Auth',
  versions: [...SUPPORTED_VERSIONS],
  token: token.reveal(),
  agent,
  ...(resume === null ? {} : { resume: { session_id: resume.sessionId, secret: resume.secret } }),
  ...(capabilities.length === 0 ? {} : { capabilities: [...capabilities] }),
  ...(clientName === undefined ? {} : { client_name: clientName }),
});

const refusal = (message: MessageOf<'AuthError'>): AttemptFailed =>
  new AttemptFailed(Fault.fromWire(message.code, message.message), {
    final: !message.retryable,
    retryAfterMs: (message.retry_after_secs ?? 0) * 1000,
  });
