export { type AcceptedSocket, acceptingServer, endOf } from './accept-sockets.ts';
export { BROKEN, type ByteDuplex, type ByteReader, HEAD_ROOM_BYTES, type SocketEnd } from './byte-duplex.ts';
export { ByteQueue } from './byte-queue.ts';
export { type Carrier, type CarrierReceiver, createCarrier } from './carrier.ts';
export { connectSocket, connectTlsSocket } from './connect-socket.ts';
export type { DatagramPathSlot } from './datagram-flows.ts';
export {
  type DatagramAnswer,
  type DatagramOutcome,
  type DatagramReader,
  DatagramStream,
} from './datagram-stream.ts';
export { MemoryBudget, processBudget } from './flow-control.ts';
export { type Guarded, guard, type Listener, type ReportInternalError } from './guard.ts';
export { HandleDuplex } from './handle-duplex.ts';
export { MUX_LIMITS } from './limits.ts';
export type { MuxClock } from './mux-clock.ts';
export {
  type MuxHandlers,
  MuxSession,
  type PendingStream,
} from './mux-session.ts';
export { MuxStream, type OpenAnswer } from './mux-stream.ts';
export { allowStaticReads, hasLostPeer, takenBytes, unsentBytes } from './node-internals.ts';
export { PacketSocket, type PacketTarget } from './packet-socket.ts';
export {
  kindOf as sealedKindOf,
  OpeningKey,
  PATH_ID_BYTES,
  PATH_KEY_BYTES,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  type SealedKind,
  type SealedRefusal,
  SealingKey,
} from './sealed-datagram.ts';
export { decodePing, decodePong, encodePing, encodePong, type Pong } from './sealed-ping.ts';
export { adoptSocket } from './socket-duplex.ts';
export { type Running, type Splice, type SpliceHandlers, splice } from './splice.ts';
export { alpnBytes, beginTls, hasTlsHandles, isSecured, renewTicketKeys, type TlsHandshake } from './tls-handle.ts';
export {
  AnswerBudget,
  DATAGRAMS_OFF,
  type DatagramWay,
  type PathKeys,
  type PathRefusal,
  UdpPath,
} from './udp-path.ts';
export { askForReceiveBuffer, lookupAtOnce } from './udp-sockets.ts';
