// TLS directly on a libuv handle. A handshake through net.Socket and TLSSocket costs a quarter more. As in node-handles, every private part
// is checked, and node:tls is used if any is missing. tls-handle.test.ts shows which variant is used.
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { HandleDuplex } from './handle-duplex.ts';
import { type Binding, nodeHandles, type StreamHandle, socketOf } from './node-handles.ts';

/** Error code used for TLS failures, which have no errno of their own. */
const BROKEN_TLS = -constants.errno.EPROTO;
export const RESET_BY_PEER = -constants.errno.ECONNRESET;

/** Receives the result of a TLS handshake. */
export interface TlsHandshake {
  /**
   * Called with the negotiated ALPN protocol, or false if none was offered. `isResumed`: the visitor resumed an earlier TLS session. Runs
   * within a callback of Node.js: reads must be set up before it returns.
   */
  onSecure(protocol: string | false, isResumed: boolean): void;
  /** Called if the TLS handshake is invalid or was rejected. */
  onFailed(): void;
}

/** Node's TLSWrap. Its methods require the names `_parent` and `_secureContext`. */
export interface TlsHandle extends StreamHandle {
  _parent: StreamHandle & { tls?: TlsHandle };
  _secureContext: SecureContext;
  onhandshakedone: (this: TlsHandle) => void;
  onerror: (this: TlsHandle, error: Error) => void;
  receive(bytes: Buffer): void;
  setALPNProtocols(names: Buffer): void;
  getALPNNegotiatedProtocol(): string | false;
  getProtocol(): string;
  isSessionReused(): boolean;
  getCertificate(): object;
  destroySSL(): void;
  /** Receiver of the TLS handshake's result. Null after the handshake has completed. */
  handshake: TlsHandshake | null;
  /** Called when the TLS connection has been closed. Null if no caller waits for the close. */
  whenClosed: (() => void) | null;
}

type Wrap = (handle: StreamHandle, context: unknown, isServer: boolean, isWrittenTo: boolean) => TlsHandle;

const METHODS = [
  'receive',
  'setALPNProtocols',
  'getALPNNegotiatedProtocol',
  'getProtocol',
  'isSessionReused',
  'destroySSL',
  'useUserBuffer',
  'writeBuffer',
  'shutdown',
];
/** Methods that Node.js adds to TLS handles. They query the connection below TLS. */
const PASSED_ON = ['getpeername', 'getsockname'];

let known: Wrap | null | undefined;

/** Returns null if TLSWrap is not available, or disabled together with the handles. */
const tlsWrap = (): Wrap | null => {
  if (nodeHandles() === null) return null;
  if (known === undefined) known = findTlsWrap((process as unknown as { binding?: Binding }).binding);
  return known;
};

export const findTlsWrap = (binding: Binding | undefined): Wrap | null => {
  try {
    const { wrap, TLSWrap } = binding?.('tls_wrap') ?? {};
    const prototype = (TLSWrap as { prototype?: Record<string, unknown> } | undefined)?.prototype ?? {};
    const isWhole = [...METHODS, ...PASSED_ON].every((name) => typeof prototype[name] === 'function');
    return typeof wrap === 'function' && isWhole ? (wrap as Wrap) : null;
  } catch {
    return null;
  }
};

export const hasTlsHandles = (): boolean => tlsWrap() !== null;

/** Encodes ALPN names for the handshake: every name is prefixed with its length. */
export const alpnBytes = (names: readonly string[]): Buffer =>
  Buffer.concat(names.flatMap((name) => [Buffer.from([name.length]), Buffer.from(name, 'latin1')]));

/**
 * Starts TLS on an accepted connection that is being read; `hello` holds the bytes read so far. Requires hasTlsHandles(). The reader gets
 * no calls until the handshake has completed, except for an end.
 */
export const beginTls = (
  duplex: HandleDuplex,
  context: SecureContext,
  alpn: Buffer,
  hello: Buffer,
  handshake: TlsHandshake,
): void => {
  const wrap = tlsWrap();
  const below: TlsHandle['_parent'] = duplex.wire;
  if (wrap === null) throw new Error('TLS on native handles is not available');
  const tls = wrap(below, context.context, true, false);
  // The TLS handle and the handle below reference each other. Node.js holds only the lower handle, so the TLS handle would be
  // garbage-collected.
  below.tls = tls;
  tls._parent = below;
  tls._secureContext = context;
  tls.handshake = handshake;
  tls.whenClosed = null;
  tls.onhandshakedone = onHandshakeDone;
  tls.onerror = onError;
  tls.close = closeTls;
  tls.reset = resetTls;
  tls.setALPNProtocols(alpn);
  duplex.secure(tls);
  tls.receive(hello);
};

function onHandshakeDone(this: TlsHandle): void {
  const handshake = this.handshake;
  this.handshake = null;
  handshake?.onSecure(this.getALPNNegotiatedProtocol(), this.isSessionReused());
}

function onError(this: TlsHandle): void {
  const handshake = this.handshake;
  this.handshake = null;
  if (handshake !== null) handshake.onFailed();
  else (this.duplex as HandleDuplex | null)?.loseWith(BROKEN_TLS);
}

/** Frees OpenSSL memory together with the connection. The garbage collector sees little of this memory and would free it late. */
function closeTls(this: TlsHandle, whenClosed?: () => void): void {
  this.whenClosed = whenClosed ?? null;
  (this._parent as unknown as { close(then: () => void): void }).close(onParentClosed);
}

/** Resets the connection below TLS. A close without the closing alert would look like an orderly end to peers that ignore the alert. */
function resetTls(this: TlsHandle): number {
  this.whenClosed = null;
  return (this._parent as unknown as { reset(then: () => void): number }).reset(onParentClosed);
}

function onParentClosed(this: StreamHandle & { tls?: TlsHandle }): void {
  const { tls } = this;
  if (tls === undefined) return;
  tls.destroySSL();
  tls.whenClosed?.call(tls);
}

// ---- contexts ----

/**
 * Replaces the ticket keys of a context, for all its users. Returns false if this Node.js version lacks the method and a new context is
 * needed.
 */
export const renewTicketKeys = ({ context }: SecureContext, keys: Buffer): boolean => {
  const native = context as { setTicketKeys?(keys: Buffer): void };
  if (typeof native.setTicketKeys !== 'function') return false;
  native.setTicketKeys(keys);
  return true;
};

// ---- given to those who expect a socket ----

/** A TLS socket, created by node:tls or by this module. */
type SecuredSocket = Socket & Pick<TLSSocket, 'getProtocol' | 'getCertificate'>;

const secured = new WeakSet<Socket>();

export const isSecured = (socket: unknown): socket is SecuredSocket =>
  socket instanceof TLSSocket || secured.has(socket as Socket);

export const securedSocketOf = (tls: TlsHandle): Socket => {
  const socket = socketOf(tls);
  tls.onerror = (error) => void socket.destroy(error);
  const own = { encrypted: true, getProtocol: () => tls.getProtocol(), getCertificate: () => tls.getCertificate() };
  secured.add(Object.assign(socket, own));
  return socket;
};
