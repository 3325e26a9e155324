// The handshake of two peers, Noise_NNpsk0_25519_AESGCM_SHA256 (noiseprotocol.org, revision 34), on node:crypto: both roles, prologue,
// payloads, the handshake hash, and the two keys it ends with. Whoever opens a message of it has seen the secret proven.
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

/** node:crypto takes keys in their DER form alone: these stand in front of the 32 bytes. */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** What came is not what the other side of this secret would have sent. It says no more: there is nobody to be told more. */
export class NoiseFailure extends Error {
  override readonly name = 'NoiseFailure';
}

export interface NoiseOptions {
  readonly role: 'initiator' | 'responder';
  readonly psk: Uint8Array;
  /** What both sides must have seen alike before the first message. */
  readonly prologue: Uint8Array;
  /** For test vectors: 32 bytes of a private key instead of a fresh one. */
  readonly ephemeral?: Uint8Array;
}

/** The keys of the two directions, and the hash that names this very handshake. */
export interface NoiseResult {
  readonly sendKey: Buffer;
  readonly receiveKey: Buffer;
  readonly handshakeHash: Buffer;
}

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicBytes: Buffer;
}

/** Four zero bytes and the counter, as Noise has it for AES-GCM. */
const nonceOf = (counter: number): Buffer => {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(Math.floor(counter / 2 ** 32), 4);
  nonce.writeUInt32BE(counter >>> 0, 8);
  return nonce;
};

/** The key that both programs make of the secret; never the hash of it, which the edge knows. */
export const pskOf = (secret: string, name: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, 'tunnel-p2p-v1', name, KEY_BYTES));

/** Chaining key, hash and the key of the moment: what every step of the handshake is mixed into. */
class SymmetricState {
  #chainingKey: Buffer;
  #hash: Buffer;
  #key: Buffer | null = null;
  #counter = 0;

  constructor(prologue: Uint8Array) {
    // The name is exactly as long as a hash: it is taken as it is.
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

/** One handshake: the initiator writes first, the responder second, then both take the result. Every wrong step throws. */
export class NoiseHandshake {
  readonly #role: NoiseOptions['role'];
  readonly #psk: Uint8Array;
  readonly #state: SymmetricState;
  readonly #own: KeyPair;
  #theirs: Buffer | null = null;
  /** Messages written or read so far; a failed one ends it. */
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

  /** What the other side has put into its message. Throws NoiseFailure when it is not of the same secret and prologue. */
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

  /** In a handshake with a psk the points make keys of their own, so that no two handshakes use one. */
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
      // A point of low order: the secret would be known to everybody.
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
