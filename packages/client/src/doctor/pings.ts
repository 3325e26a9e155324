// Measures round trips with sequential pings: on the control connection, on an idle carrier, and in sealed datagrams to both UDP ports of
// the edge. The UDP responses also report the socket's public address.
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import {
  type Carrier,
  decodePong,
  encodePing as encodeSealedPing,
  readSealedKind,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
} from '@tunnel/mux';
import type { EdgeUdp } from '@tunnel/peer';
import { encodePing, FRAME, FrameParser, PING_PAYLOAD_BYTES } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import type { ControlLink } from '../connection/control-link.ts';

/** Number of pings that the doctor sends on the control connection and on a carrier. */
const DOCTOR_PINGS = 10;
/** Number of datagrams that the doctor sends to every UDP port of the edge. */
const DOCTOR_UDP_PINGS = 5;
/** Interval between the doctor's datagrams. The edge answers at most fifty per second. */
const DOCTOR_UDP_PING_EVERY_MS = 100;
/** Time from the doctor's first datagram within which responses count. */
const DOCTOR_UDP_WITHIN_MS = 2000;

/** Measures round trips one after the other. Returns fewer than DOCTOR_PINGS times if the signal aborts. */
const collect = async (once: () => Promise<number>, signal: AbortSignal): Promise<number[]> => {
  const times: number[] = [];
  const late = whenAborted(signal);
  while (times.length < DOCTOR_PINGS) {
    const time = await Promise.race([once(), late]);
    if (time === null) return times;
    times.push(time);
  }
  return times;
};

const whenAborted = (signal: AbortSignal): Promise<null> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });

export const pingControl = (link: ControlLink, signal: AbortSignal): Promise<number[]> =>
  collect(() => link.roundTrip(), signal);

/** Measures round trips with pings on a carrier that is used for nothing else. */
export const pingCarrier = (carrier: Carrier, clock: Clock, signal: AbortSignal): Promise<number[]> => {
  let answered: () => void = () => {};
  const parser = new FrameParser({
    onData: () => {},
    onDatagram: () => {},
    onFrame: (type) => void (type === FRAME.PONG && answered()),
  });
  carrier.start({
    onBytes: (bytes, start, end) => {
      parser.push(bytes, start, end);
      return false;
    },
    onReady: () => {},
    onClosed: () => {},
    report: () => {},
    clock,
  });
  const once = (): Promise<number> =>
    new Promise((resolve) => {
      const sentAt = clock.monotonic();
      answered = () => resolve(clock.monotonic() - sentAt);
      carrier.send(encodePing(FRAME.PING, randomBytes(PING_PAYLOAD_BYTES)));
    });
  return collect(once, signal);
};

export interface UdpAnswers {
  readonly sent: number;
  readonly answered: number;
  /** Public address of the socket as seen by the edge's two ports. Null for a port that did not respond. */
  readonly seen: readonly [string | null, string | null];
}

/** Sends a few spaced datagrams to every port. Resolves with the last response, or shortly after the last datagram. */
export const pingUdp = async (edge: EdgeUdp, clock: Clock, signal: AbortSignal): Promise<UdpAnswers> => {
  const socket = createSocket(edge.host.includes(':') ? 'udp6' : 'udp4');
  // ICMP errors of the UDP socket are ignored: only missing responses count.
  socket.on('error', () => {});
  const asked = new Map<string, number>();
  const seen = new Map<number, string>();
  const sent = DOCTOR_UDP_PINGS * edge.ports.length;
  let answered = 0;
  const allAnswered = new Promise<void>((resolve) => {
    socket.on('message', (bytes, from) => {
      const pong = readPong(edge, bytes);
      const token = pong?.token.toString('hex') ?? '';
      if (pong === null || asked.get(token) !== from.port) return;
      asked.delete(token);
      seen.set(from.port, addressText(pong.address, pong.port));
      answered += 1;
      if (answered === sent) resolve();
    });
  });
  const timers: Timer[] = Array.from({ length: DOCTOR_UDP_PINGS }, (_, at) =>
    clock.setTimeout(() => {
      for (const port of edge.ports) askPort(socket, edge, port, asked);
    }, at * DOCTOR_UDP_PING_EVERY_MS),
  );
  const late = new Promise<void>((resolve) => {
    timers.push(clock.setTimeout(resolve, DOCTOR_UDP_WITHIN_MS));
  });
  await Promise.race([allAnswered, late, whenAborted(signal)]);
  for (const timer of timers) timer.cancel();
  socket.close();
  const [one, other] = edge.ports;
  return { sent, answered, seen: [seen.get(one) ?? null, seen.get(other) ?? null] };
};

const askPort = (socket: Socket, edge: EdgeUdp, port: number, asked: Map<string, number>): void => {
  const token = randomBytes(8);
  const body = encodeSealedPing(token);
  const packet = Buffer.allocUnsafe(SEALED_OVERHEAD_BYTES + body.length);
  if (edge.sealing.seal(SEALED_KIND.PING, body, packet, 0) < 0) return;
  asked.set(token.toString('hex'), port);
  socket.send(packet, port, edge.host, () => {});
};

const readPong = (edge: EdgeUdp, bytes: Buffer): ReturnType<typeof decodePong> => {
  if (readSealedKind(bytes) !== SEALED_KIND.PONG) return null;
  const body = edge.opening.open(bytes);
  return typeof body === 'string' ? null : decodePong(body);
};

const addressText = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
