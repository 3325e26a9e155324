// A local UDP port for programs to reach a peer's service. Every sender is a flow with a datagram stream to the peer, and gets responses
// from this port.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import {
  askForReceiveBuffer,
  BROKEN,
  type DatagramAnswer,
  type DatagramReader,
  type DatagramStream,
  type Guarded,
  guard,
  lookupAtOnce,
  type Running,
} from '@tunnel/mux';
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { type ListNode } from '@tunnel/rules/collections';
import { type Flow, FlowAddresses, type FlowRules, FlowTable, type LoopFacts } from '@tunnel/rules/flows';
import { hostPort, isLoopbackHost, plainAddress } from '@tunnel/rules/net';
import { CLIENT_LIMITS } from '../limits.ts';
import { LocalAddresses } from '../local/local-addresses.ts';
import type { DropReason, Traffic } from '../local/traffic.ts';
import type { ListenAddress } from './peer-types.ts';
import type { ListenerOptions, PeerListener, StreamOpener } from './tcp-listener.ts';

/** Idle time after which a local sender of datagrams is forgotten. */
export const PEER_FLOW_IDLE_MS = 60_000;
/** Idle time after which a sender with one datagram and a response is forgotten. */
const PEER_FLOW_ANSWERED_IDLE_MS = 10_000;
/** Maximum response bytes to a remote sender with only one datagram, because its address may be forged. */
const PEER_FLOW_UNCONFIRMED_BYTES = 8 * 1024;

const OVER: StreamReason = { code: 'cancelled', text: 'the flow has ended' };
/** Turns off the detection of datagram loops: unlike an edge, a client's listener cannot be its own visitor. */
const NO_LOOPS: LoopFacts = { ownAddresses: new Set(), range: { from: 1, to: 0 }, pathPorts: [] };

/** Returns the flow limits, with an edge's defaults. Loopback addresses cannot be forged from other machines. */
const rulesFor = (host: string): FlowRules => ({
  flowsPerTunnel: CLIENT_LIMITS.FLOWS_MAX,
  idleMs: PEER_FLOW_IDLE_MS,
  answeredIdleMs: PEER_FLOW_ANSWERED_IDLE_MS,
  newFlowsPerSecond: 0,
  unconfirmedReplyBytes: isLoopbackHost(host) ? 0 : PEER_FLOW_UNCONFIRMED_BYTES,
});

export const openUdpListener = async (
  { host, port }: ListenAddress,
  opener: StreamOpener,
  deps: ListenerOptions,
): Promise<PeerListener> => {
  const found = await new LocalAddresses(host).lookup(deps.clock.monotonic());
  const socket = createSocket({ type: found.family === 6 ? 'udp6' : 'udp4', lookup: lookupAtOnce });
  const listening = once(socket, 'listening');
  socket.bind({ address: found.address, port, exclusive: true });
  try {
    await listening;
  } catch (error) {
    socket.close();
    throw error;
  }
  askForReceiveBuffer(socket, CLIENT_LIMITS.FLOW_RECEIVE_BUFFER_BYTES);
  return new UdpListener(socket, host, opener, deps);
};

class UdpListener implements PeerListener, Guarded {
  readonly address: ListenAddress;
  readonly #socket: Socket;
  readonly #opener: StreamOpener;
  readonly #options: ListenerOptions;
  readonly #flows: FlowTable<PeerFlow>;
  readonly #look: { cancel(): void };
  #isOpen = true;
  /** Send buffer. Given up if the socket keeps it in its queue. */
  #scratch: Buffer | null = null;
  #hasBacklog = false;

  constructor(socket: Socket, host: string, opener: StreamOpener, deps: ListenerOptions) {
    this.address = { host, port: socket.address().port };
    this.#socket = socket;
    this.#opener = opener;
    this.#options = deps;
    const { clock } = deps;
    const options = {
      rules: rulesFor(host),
      addresses: new FlowAddresses<PeerFlow>({ perAddress: CLIENT_LIMITS.FLOWS_MAX }),
      loopFacts: () => NO_LOOPS,
      onEnded: (flow: Flow<PeerFlow>) => flow.context?.end(),
    };
    this.#flows = new FlowTable(options, clock.monotonic());
    this.#look = clock.setInterval(() => this.#flows.expire(clock.monotonic()), CLIENT_LIMITS.CLIENT_TICK_MS);
    guard.listen(socket, 'message', this, 'peer.udp', (bytes: Buffer, from: RemoteInfo) => this.#receive(bytes, from));
    // A socket error caused by a sender that is gone must not end the listener.
    guard.listen(socket, 'error', this, 'peer.udp', () => {});
  }

  /** Closes the port and all flows immediately, because datagrams have no end marker. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#look.cancel();
    this.#flows.closeAll();
    this.#socket.close();
  }

  abandon(error: unknown, where: string): void {
    this.#options.report(error, where);
  }

  /** Sends a response datagram to the local sender. The memory is borrowed for the call. */
  reply(flow: Flow<PeerFlow>, bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    if (!this.#isOpen || !this.#flows.mayReply(flow, length, this.#options.clock.monotonic())) return false;
    const queued = this.#hasBacklog ? this.#socket.getSendQueueSize() : 0;
    if (queued > CLIENT_LIMITS.FLOW_BACKLOG_MAX_BYTES) return false;
    this.#scratch ??= Buffer.allocUnsafeSlow(WIRE_LIMITS.DATAGRAM_MAX_BYTES);
    const copy = queued > 0 ? Buffer.allocUnsafeSlow(length) : this.#scratch;
    bytes.copy(copy, 0, start, end);
    this.#socket.send(copy, 0, length, flow.port, flow.address);
    this.#hasBacklog = this.#socket.getSendQueueCount() > 0;
    if (this.#hasBacklog && copy === this.#scratch) this.#scratch = null;
    return true;
  }

  #receive(bytes: Buffer, { address, port }: RemoteInfo): void {
    const flow = this.#flows.arrived(address, port, this.#options.clock.monotonic());
    if (flow === null) return this.#options.traffic.dropped('local');
    flow.context ??= new PeerFlow(flow, this, this.#opener, this.#options);
    flow.context.send(bytes);
  }
}

/** One local sender. A flow outlives its streams: after a lost path the next datagram opens a new stream. */
class PeerFlow implements DatagramAnswer, DatagramReader {
  amongRunning: ListNode<Running> | null = null;
  bytesAToB = 0;
  bytesBToA = 0;
  readonly #flow: Flow<PeerFlow>;
  readonly #listener: UdpListener;
  readonly #opener: StreamOpener;
  readonly #traffic: Traffic;
  readonly #report: ListenerOptions['report'];
  #stream: DatagramStream | null = null;
  #isOver = false;

  constructor(flow: Flow<PeerFlow>, listener: UdpListener, opener: StreamOpener, { traffic, report }: ListenerOptions) {
    this.#flow = flow;
    this.#listener = listener;
    this.#opener = opener;
    this.#traffic = traffic;
    this.#report = report;
    traffic.started();
    traffic.joined(this);
  }

  send(bytes: Buffer): void {
    // The stream's carrier is being replaced by another path, so a new stream is opened.
    if (this.#stream?.isRetiring === true) this.#letGo()?.reset(OVER);
    const stream = this.#stream ?? this.#open();
    const outcome = stream === null ? 'away' : stream.send(bytes, 0, bytes.length);
    if (outcome === 'sent') this.bytesAToB += bytes.length;
    else this.#dropped(outcome);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#letGo()?.reset(OVER);
    this.#traffic.ended(this);
  }

  onOpened(): void {}

  onRefused(): void {
    this.#letGo();
  }

  onDatagram(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    if (this.#listener.reply(this.#flow, bytes, start, end)) this.bytesBToA += end - start;
    else this.#dropped('local');
  }

  onReset(): void {
    this.#letGo();
  }

  abandon(error: unknown, where: string): void {
    this.#report(error, where);
    this.#letGo()?.reset(BROKEN);
  }

  #open(): DatagramStream | null {
    const visitor = hostPort(plainAddress(this.#flow.address), this.#flow.port);
    const stream = this.#opener.openDatagrams({ tunnelId: 'peer', visitor }, this);
    // A carrier that breaks while opening this stream reports it within the call.
    if (stream === null || stream.state === 'closed') return null;
    this.#stream = stream;
    stream.read(this);
    return stream;
  }

  #letGo(): DatagramStream | null {
    const stream = this.#stream;
    this.#stream = null;
    return stream;
  }

  #dropped(reason: DropReason): void {
    this.#traffic.dropped(reason);
  }
}
