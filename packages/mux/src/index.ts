export { type ByteEnd, type ByteReader, HEAD_ROOM_BYTES } from './byte-end.ts';
export { type Carrier, type CarrierReceiver, createCarrier } from './carrier.ts';
export { MemoryBudget, processBudget } from './memory-budget.ts';
export { type CarrierLoss, type MuxHandlers, MuxSession, type MuxSessionOptions } from './mux-session.ts';
export { MuxStream, type OpenAnswer, type StreamState } from './mux-stream.ts';
export { adoptSocket, connectSocket, type DialOptions, SocketEnd } from './socket-end.ts';
export { type Splice, type SpliceHandlers, type SpliceResult, splice } from './splice.ts';
export { allowStaticReads, type ReadPath } from './static-read.ts';
export type { Opening } from './waiting-opens.ts';
