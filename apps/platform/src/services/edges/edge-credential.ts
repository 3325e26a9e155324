// The credential of an edge: what it looks like, and what is kept of it.
import { randomToken, Secret, sha256Hex } from '@tunnel/runtime';

const PREFIX = 'tne_';

/** 256 bits in base64url: 43 characters. */
export const newEdgeCredential = (): Secret => new Secret(`${PREFIX}${randomToken(32)}`);

/** All that is stored. It needs no salt and no slow hash: nobody guesses 256 random bits. */
export const hashOfCredential = (credential: Secret): string => sha256Hex(credential.reveal());
