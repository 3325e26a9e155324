// Handshake between two peers: Noise_NNpsk0_25519_AESGCM_SHA256 (noiseprotocol.org, revision 34), implemented with node:crypto. Covers both
// roles, prologue, payloads, handshake hash and the two resulting keys. Decrypting a handshake message proves that its sender has the
// secret.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';

const PROTOCOL = 'Noise_NNpsk0_25519_AESGCM_SHA256';
const HASH_BYTES = 32;
const KEY_BYTES = 32;
const POINT_BYTES = 32;
export const TAG_BYTES = 16;

/** DER prefixes for raw 32-byte keys, because node:crypto accepts only DER. */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** The received data does not match the secret or the expected step. Carries no details, so that an attacker learns nothing. */
export class NoiseFailure extends Error {
  override readonly name = 'NoiseFailure';
}

export interface NoiseOptions {
  readonly role: 'initiator' | 'responder';
  readonly psk: Uint8Array;
  /** Data that both sides must agree on before the first handshake message. */
  readonly prologue: Uint8Array;
  /** Private key (32 bytes) for test vectors. A fresh key is generated if undefined. */
  readonly ephemeral?: Uint8Array;
}

/** Result of a handshake: the keys of both directions, and the hash that identifies the handshake. */
export interface NoiseResult {
  readonly sendKey: Buffer;
  readonly receiveKey: Buffer;
  readonly handshakeHash: Buffer;
}

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicBytes: Buffer;
}

/** Nonce for AES-GCM as defined by Noise: four zero bytes and the counter. */
const nonceOf = (counter: number): Buffer => {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(Math.floor(counter / 2 ** 32), 4);
  nonce.writeUInt32BE(counter >>> 0, 8);
  return nonce;
};

/** Derives the pre-shared key from the secret. Independent of the secret's hash, which the edge knows. */
export const derivePsk = (secret: string, name: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, 'tunnel-p2p-v1', name, KEY_BYTES));

/** Noise SymmetricState: chaining key, hash and current cipher key. */
class SymmetricState {
  #chainingKey: Buffer;
  #hash: Buffer;
  #key: Buffer | null = null;
  #counter = 0;

  constructor(prologue: Uint8Array) {
    // The protocol name has exactly the length of a hash, so it is used without hashing.
    this.#hash = Buffer.from(PROTOCOL.padEnd(HASH_BYTES, '\0'), 'latin1');
    this.#chainingKey = this.#hash;
    this.mixHash(prologue);
  }

  get hash(): Buffer {
    return Buffer.from(this.#hash);
  }

  mixHash(bytes: Uint8Array): void {
    this.#hash = createHash('sha256').update(this.#hash).update(bytes).digest();
  }

  mixKey(bytes: Uint8Array): void {
    const [chainingKey, key] = this.#derive(bytes, 2);
    this.#chainingKey = chainingKey as Buffer;
    this.#use(key as Buffer);
  }

  mixKeyAndHash(bytes: Uint8Array): void {
    const [chainingKey, hash, key] = this.#derive(bytes, 3);
    this.#chainingKey = chainingKey as Buffer;
    this.mixHash(hash as Buffer);
    this.#use(key as Buffer);
  }

  encryptAndHash(payload: Uint8Array): Buffer {
    const cipher = createCipheriv('aes-256-gcm', this.#key as Buffer, nonceOf(this.#counter++));
    cipher.setAAD(this.#hash);
    const sealed = Buffer.concat([cipher.update(payload), cipher.final(), cipher.getAuthTag()]);
    this.mixHash(sealed);
    return sealed;
  }

  decryptAndHash(sealed: Buffer): Buffer {
    if (sealed.length < TAG_BYTES) throw new NoiseFailure('the message is too short');
    const end = sealed.length - TAG_BYTES;
    const decipher = createDecipheriv('aes-256-gcm', this.#key as Buffer, nonceOf(this.#counter++));
    decipher.setAAD(this.#hash);
    decipher.setAuthTag(sealed.subarray(end));
    const payload = decipher.update(sealed.subarray(0, end));
    try {
      decipher.final();
    } catch {
      throw new NoiseFailure('the message cannot be decrypted');
    }
    this.mixHash(sealed);
    return payload;
  }

  split(): readonly [Buffer, Buffer] {
    const [first, second] = this.#derive(new Uint8Array(0), 2);
    return [first as Buffer, second as Buffer];
  }

  #use(key: Buffer): void {
    this.#key = key;
    this.#counter = 0;
  }

  #derive(material: Uint8Array, count: number): Buffer[] {
    const bytes = Buffer.from(hkdfSync('sha256', material, this.#chainingKey, '', HASH_BYTES * count));
    return Array.from({ length: count }, (_, at) => bytes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES));
  }
}

/** A handshake: the initiator writes first, the responder second, then both call result(). Any wrong step throws. */
export class NoiseHandshake {
  readonly #role: NoiseOptions['role'];
  readonly #psk: Uint8Array;
  readonly #state: SymmetricState;
  readonly #own: KeyPair;
  #theirs: Buffer | null = null;
  /** Number of messages written or read so far. 'failed' after an invalid message. */
  #step: 0 | 1 | 2 | 'failed' = 0;

  constructor(options: NoiseOptions) {
    if (options.psk.length !== KEY_BYTES) throw new RangeError(`a psk must have ${KEY_BYTES} bytes`);
    this.#role = options.role;
    this.#psk = options.psk;
    this.#state = new SymmetricState(options.prologue);
    this.#own = options.ephemeral === undefined ? freshKeyPair() : keyPairOf(options.ephemeral);
  }

  write(payload: Uint8Array): Buffer {
    this.#expectStep(this.#role === 'initiator' ? 0 : 1);
    if (this.#step === 0) this.#state.mixKeyAndHash(this.#psk);
    this.#mixPoint(this.#own.publicBytes);
    if (this.#step === 1) this.#mixShared();
    this.#step = this.#step === 0 ? 1 : 2;
    return Buffer.concat([this.#own.publicBytes, this.#state.encryptAndHash(payload)]);
  }

  /** Returns the payload of the other side's message. Throws NoiseFailure if the secret or prologue differs. */
  read(message: Buffer): Buffer {
    this.#expectStep(this.#role === 'responder' ? 0 : 1);
    const step = this.#step;
    this.#step = 'failed';
    if (message.length < POINT_BYTES) throw new NoiseFailure('the message is too short');
    this.#theirs = Buffer.from(message.subarray(0, POINT_BYTES));
    if (step === 0) this.#state.mixKeyAndHash(this.#psk);
    this.#mixPoint(this.#theirs);
    if (step === 1) this.#mixShared();
    const payload = this.#state.decryptAndHash(message.subarray(POINT_BYTES));
    this.#step = step === 0 ? 1 : 2;
    return payload;
  }

  result(): NoiseResult {
    this.#expectStep(2);
    const [toResponder, toInitiator] = this.#state.split();
    const isInitiator = this.#role === 'initiator';
    return {
      sendKey: isInitiator ? toResponder : toInitiator,
      receiveKey: isInitiator ? toInitiator : toResponder,
      handshakeHash: this.#state.hash,
    };
  }

  /** With a pre-shared key, ephemeral public keys are also mixed into the cipher key, so that no two handshakes share a key. */
  #mixPoint(point: Buffer): void {
    this.#state.mixHash(point);
    this.#state.mixKey(point);
  }

  #mixShared(): void {
    let shared: Buffer;
    try {
      const publicKey = createPublicKey({
        key: Buffer.concat([SPKI_PREFIX, this.#theirs as Buffer]),
        format: 'der',
        type: 'spki',
      });
      shared = diffieHellman({ privateKey: this.#own.privateKey, publicKey });
    } catch {
      // The other side sent a low-order point as its key: the shared secret would be predictable.
      throw new NoiseFailure('the key of the other side is invalid');
    }
    this.#state.mixKey(shared);
  }

  #expectStep(step: number): void {
    if (this.#step !== step) throw new NoiseFailure('unexpected message');
  }
}

const freshKeyPair = (): KeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey, publicBytes: rawPublicOf(publicKey) };
};

const keyPairOf = (privateBytes: Uint8Array): KeyPair => {
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, privateBytes]),
    format: 'der',
    type: 'pkcs8',
  });
  return { privateKey, publicBytes: rawPublicOf(createPublicKey(privateKey)) };
};

const rawPublicOf = (key: KeyObject): Buffer =>
  key.export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX.length);
