// The first words on a relay stream, in both roles: Noise with the secret's key, the hello that says what each side is, and the faults that
// people are told. What comes of it is a proven carrier and the other side's hello.

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
import { pskOf } from '../sealed/noise.ts';
import { SealedCarrier } from '../sealed/sealed-carrier.ts';
import type { PeerSettings } from './peer-session.ts';

export interface RelayHandshakeEvents {
  /** The other side has the secret and the same kind of service. Frames follow at once: it is given to a session now or never. */
  onProven(carrier: SealedCarrier, hello: HandshakeHello): void;
  onMessage(carrier: SealedCarrier, message: PeerMessage): void;
  /** A fault for people, or the relay ended before it was proven. */
  onFailed(carrier: SealedCarrier, failure: Fault | string): void;
}

/** `program`: of the publisher, which is told to whoever proves the secret. Call begin() once it is known. */
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
    psk: pskOf(secret.reveal(), name),
    prologue: Buffer.from(`tunnel-p2p/1${name}`),
    hello: encodeHandshakeHello(hello),
    clock,
  };
  /** Told first, so that the end of the carrier says nothing more. */
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
