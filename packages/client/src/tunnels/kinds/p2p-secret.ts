// The secret of a p2p tunnel, as it is given and as it is kept: never sent, printed or logged. The edge knows its SHA-256 alone.

import { Fault } from '@tunnel/errors';
import { Secret, sha256Hex } from '@tunnel/runtime';
import { type OptionValue, parseP2pName, refuseP2pSecret } from '@tunnel/tunnel-spec';

/** Files and variables end with a line break that is no part of it. Throws a Fault. */
export const resolveP2pSecret = (given: OptionValue<'p2p_secret'> | undefined): Secret => {
  const text = (typeof given === 'object' ? given.reveal() : (given ?? '')).replace(/\r?\n$/, '');
  if (text === '') throw new Fault('CLIENT_P2P_SECRET_MISSING');
  const refusal = refuseP2pSecret(Buffer.byteLength(text));
  if (refusal !== null) throw refusal;
  return new Secret(text);
};

/** What the edge is told of it. */
export const p2pSecretHash = (secret: Secret): string => sha256Hex(secret.reveal());

/** In lower case. Throws a Fault; what the edge would say of it later is wrong usage here. */
export const checkP2pName = (given: string | undefined): string => {
  const name = parseP2pName(given ?? '');
  if (name instanceof Fault) throw new Fault('CLIENT_USAGE', { reason: name.message });
  return name;
};
