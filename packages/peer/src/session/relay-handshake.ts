// Start of a relay stream in both roles: Noise with the key derived from the secret, hello payloads, and faults shown to users. Results in
// a proven carrier and the other side's hello.

import { Fault } from '@tunnel/errors';
import type { ByteDuplex } from '@tunnel/mux';
import {
  decodeHandshakeHello,
  decodeMessage,
  encodeHandshakeHello,
  type HandshakeHello,
  PEER_VERSION,
  type PeerMessage,
} from '../direct/peer-messages.ts';
import { derivePsk } from '../sealed/noise.ts';
import { SealedCarrier } from '../sealed/sealed-carrier.ts';
import type { PeerSettings } from './peer-session.ts';

export interface RelayHandshakeEvents {
  /**
   * Called when the other side has proven the secret and has the same service type. Add the carrier to a session immediately, because
   * frames can follow at once.
   */
  onProven(carrier: SealedCarrier, hello: HandshakeHello): void;
  onMessage(carrier: SealedCarrier, message: PeerMessage): void;
  /** Called with a fault shown to users, or with a text if the relay ended before it was proven. */
  onFailed(carrier: SealedCarrier, failure: Fault | string): void;
}

/**
 * Creates the carrier of a relay stream. `program` is the publisher's program id, sent to peers that prove the secret. Call begin() after
 * storing the carrier.
 */
export const relayCarrier = (
  duplex: ByteDuplex,
  role: 'initiator' | 'responder',
  settings: PeerSettings,
  events: RelayHandshakeEvents,
  program?: string,
): SealedCarrier => {
  const { name, secret, service, clock, report } = settings;
  const hello = { version: PEER_VERSION, service, ...(program === undefined ? {} : { program }) };
  const options = {
    role,
    psk: derivePsk(secret.reveal(), name),
    prologue: Buffer.from(`tunnel-p2p/1${name}`),
    hello: encodeHandshakeHello(hello),
    clock,
  };
  /** Why the relay handshake failed. Set before the carrier is destroyed, so that onFailed reports the fault. */
  let fault: Fault | null = null;
  const refuse = (carrier: SealedCarrier, why: Fault | null, text: string): void => {
    fault = why;
    carrier.destroy(text);
  };
  return new SealedCarrier(duplex, options, {
    onProven: (carrier, bytes) => {
      const theirs = decodeHandshakeHello(bytes);
      if (theirs === null) refuse(carrier, null, 'the peer uses another version');
      else if (theirs.service !== service) {
        refuse(carrier, new Fault('P2P_SERVICE_MISMATCH', { name, service: theirs.service }), 'different service type');
      } else events.onProven(carrier, theirs);
    },
    onMessage: (carrier, bytes) => {
      const message = decodeMessage(bytes);
      if (message === null) carrier.destroy('unreadable handshake message');
      else if (message !== 'unknown') events.onMessage(carrier, message);
    },
    onFailed: (carrier, end, text) =>
      events.onFailed(carrier, fault ?? (end === 'proof' ? new Fault('P2P_PROOF_FAILED') : text)),
    abandon: report,
  });
};
