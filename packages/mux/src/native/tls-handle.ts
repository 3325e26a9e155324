// TLS right on libuv's handle, as Node wraps it for itself: a handshake without net.Socket below and TLSSocket above, which cost a quarter of it. As in
// node-handles, each part is looked for, and where one is missing everybody takes node:tls; tls-handle.test.ts says which way is taken.
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { HandleDuplex } from './handle-duplex.ts';
import { type Binding, nodeHandles, type StreamHandle, socketOf } from './node-handles.ts';

/** What is broken below the bytes has no errno of its own. */
const BROKEN_TLS = -constants.errno.EPROTO;
export const RESET_BY_PEER = -constants.errno.ECONNRESET;

/** Who is told of a handshake. */
export interface TlsHandshake {
  /** The protocol that both chose; false: none was offered. Within a call of Node: reads have to be in place when it returns. */
  onSecure(protocol: string | false): void;
  /** What came is no handshake, or none that we take. */
  onFailed(): void;
}

/** Node's TLSWrap. `_parent` and `_secureContext` are the names that its own methods look for. */
export interface TlsHandle extends StreamHandle {
  _parent: StreamHandle & { tls?: TlsHandle };
  _secureContext: SecureContext;
  onhandshakedone: (this: TlsHandle) => void;
  onerror: (this: TlsHandle, error: Error) => void;
  receive(bytes: Buffer): void;
  setALPNProtocols(names: Buffer): void;
  getALPNNegotiatedProtocol(): string | false;
  getProtocol(): string;
  getCertificate(): object;
  destroySSL(): void;
  /** null: it is through. */
  handshake: TlsHandshake | null;
  /** Who waits for its end. */
  whenClosed: (() => void) | null;
}

type Wrap = (handle: StreamHandle, context: unknown, isServer: boolean, isWrittenTo: boolean) => TlsHandle;

const METHODS = [
  'receive',
  'setALPNProtocols',
  'getALPNNegotiatedProtocol',
  'getProtocol',
  'destroySSL',
  'useUserBuffer',
  'writeBuffer',
  'shutdown',
];
/** Node's own additions, by which the connection below is asked. */
const PASSED_ON = ['getpeername', 'getsockname'];

let known: Wrap | null | undefined;

/** null: it is not to be had, or switched off with the handles. */
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

/** Names as the handshake has them: each behind its length. */
export const alpnBytes = (names: readonly string[]): Buffer =>
  Buffer.concat(names.flatMap((name) => [Buffer.from([name.length]), Buffer.from(name, 'latin1')]));

/**
 * TLS begins on an accepted connection that is being read, and of which `hello` was. Only where hasTlsHandles(). Nothing else comes to the reader
 * until the handshake is told, but for an end.
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
  // Each keeps the other: Node holds the one below alone, and would let the collector have this one.
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
  handshake?.onSecure(this.getALPNNegotiatedProtocol());
}

function onError(this: TlsHandle): void {
  const handshake = this.handshake;
  this.handshake = null;
  if (handshake !== null) handshake.onFailed();
  else (this.duplex as HandleDuplex | null)?.loseWith(BROKEN_TLS);
}

/** What TLS holds goes back with the connection: the collector sees little of it, and would let it wait. */
function closeTls(this: TlsHandle, whenClosed?: () => void): void {
  this.whenClosed = whenClosed ?? null;
  (this._parent as unknown as { close(then: () => void): void }).close(onParentClosed);
}

/** Of the connection below: a close without the closing alert would be an orderly end for peers that do not look for the alert. */
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

/** Tickets are sealed by these keys from here on, of all who use the context. false: this Node has no such way, and a new context is needed. */
export const renewTicketKeys = ({ context }: SecureContext, keys: Buffer): boolean => {
  const native = context as { setTicketKeys?(keys: Buffer): void };
  if (typeof native.setTicketKeys !== 'function') return false;
  native.setTicketKeys(keys);
  return true;
};

// ---- given to those who expect a socket ----

/** A socket that speaks TLS, made by node:tls or here. */
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
