// The secret of a p2p tunnel, which is never sent, printed or logged. The edge knows only its SHA-256 hash.

import { Fault } from '@tunnel/errors';
import { Secret, sha256Hex } from '@tunnel/runtime';
import { type OptionValue, parseP2pName, refuseP2pSecret } from '@tunnel/tunnel-spec';

/** Returns the secret without a trailing line break, as left by files and variables. Throws a Fault for an invalid secret. */
export const resolveP2pSecret = (given: OptionValue<'p2p_secret'> | undefined): Secret => {
  const text = (typeof given === 'object' ? given.reveal() : (given ?? '')).replace(/\r?\n$/, '');
  if (text === '') throw new Fault('CLIENT_P2P_SECRET_MISSING');
  const refusal = refuseP2pSecret(Buffer.byteLength(text));
  if (refusal !== null) throw refusal;
  return new Secret(text);
};

/** Returns the hash of a p2p secret, which is sent to the edge instead of the secret. */
export const p2pSecretHash = (secret: Secret): string => sha256Hex(secret.reveal());

/** Returns the name in lower case. Throws a usage Fault for a name that the edge would reject. */
export const checkP2pName = (given: string | undefined): string => {
  const name = parseP2pName(given ?? '');
  if (name instanceof Fault) throw new Fault('CLIENT_USAGE', { reason: name.message });
  return name;
};
