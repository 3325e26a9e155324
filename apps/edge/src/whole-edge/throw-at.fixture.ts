// Injected faults below each guard of the edge, made by replacing the methods that the guard calls. No part of this exists in the
// product. Used by tests only.
import { ConnectionGate } from '@tunnel/http-shell';
import { guard, type Listener } from '@tunnel/mux';
import { vi } from 'vitest';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import { Http1Input } from '../ingress/http/http1/http1-input.ts';
import { Http1Visitor, LingeringClose } from '../ingress/http/http1/http1-visitor.ts';
import { Http2Request } from '../ingress/http/http2/http2-request.ts';
import { HttpsPort } from '../ingress/http/https-port.ts';
import { UdpFlow } from '../ingress/udp/udp-flow.ts';
import { UdpPort } from '../ingress/udp/udp-port.ts';
import { H2cConnection } from '../upstream/h2c/h2c-connections.ts';
import { H2cUpstream } from '../upstream/h2c/h2c-upstream.ts';
import { Http1Upstream } from '../upstream/http1/http1-upstream.ts';

interface Below {
  readonly where: string;
  readonly prototype: object;
  readonly method: string;
  /** Throws only if this name is on the call stack, because the method has other callers. */
  readonly caller?: string;
  /** Throws only for an object that was not there in the previous turn, because the method is called for every object in turn. */
  readonly isNew?: true;
  /** Throws only for a call with this first argument. */
  readonly first?: string;
}

const METHODS: readonly Below[] = [
  { where: 'http.connection', prototype: ConnectionGate.prototype, method: 'accept', first: 'http' },
  { where: 'https.connection', prototype: ConnectionGate.prototype, method: 'accept', first: 'https' },
  { where: 'https.handshake', prototype: HttpsPort.prototype, method: 'takesSocket' },
  { where: 'https.secure', prototype: HttpsPort.prototype, method: 'isSecure' },
  { where: 'tcp.connection', prototype: ConnectionGate.prototype, method: 'accept', first: 'tcp' },
  { where: 'socket.data', prototype: Http1Visitor.prototype, method: 'onData' },
  { where: 'socket.end', prototype: Http1Visitor.prototype, method: 'onEnd' },
  { where: 'socket.drain', prototype: Http1Visitor.prototype, method: 'onDrain' },
  { where: 'socket.flushed', prototype: LingeringClose.prototype, method: 'onSentAll' },
  { where: 'socket.reset', prototype: Http1Visitor.prototype, method: 'onReset' },
  { where: 'stream.opened', prototype: Http1Upstream.prototype, method: 'onOpened' },
  { where: 'stream.refused', prototype: Http1Upstream.prototype, method: 'onRefused' },
  { where: 'stream.data', prototype: Http1Upstream.prototype, method: 'onData' },
  { where: 'stream.end', prototype: Http1Upstream.prototype, method: 'onEnd' },
  { where: 'stream.drain', prototype: Http1Upstream.prototype, method: 'onDrain' },
  { where: 'stream.reset', prototype: Http1Upstream.prototype, method: 'onReset' },
  { where: 'visitor.tick', prototype: Http1Visitor.prototype, method: 'tick', isNew: true },
  { where: 'visitor.leave', prototype: Http1Input.prototype, method: 'takeAll' },
  { where: 'http2.tick', prototype: Http2Request.prototype, method: 'tick', isNew: true },
  { where: 'http2.request', prototype: Http2Request.prototype, method: 'begin' },
  { where: 'h2c.connected', prototype: H2cUpstream.prototype, method: 'onConnected' },
  { where: 'h2c.refused', prototype: H2cUpstream.prototype, method: 'onNotConnected' },
  { where: 'h2c.tick', prototype: H2cConnection.prototype, method: 'isKept', isNew: true },
  { where: 'h2c.write', prototype: TunnelCounters.prototype, method: 'addBytes', caller: 'StreamDuplex' },
  { where: 'udp.tick', prototype: UdpPort.prototype, method: 'tick' },
  { where: 'udp.decided', prototype: UdpFlow.prototype, method: 'letIn' },
  { where: 'datagrams.opened', prototype: UdpFlow.prototype, method: 'onOpened' },
  { where: 'datagrams.refused', prototype: UdpFlow.prototype, method: 'onRefused' },
  { where: 'datagrams.datagram', prototype: UdpFlow.prototype, method: 'onDatagram' },
  { where: 'datagrams.reset', prototype: UdpFlow.prototype, method: 'onReset' },
];

let armed: string | null = null;

/** Makes the next call below this guard throw once. */
export const throwAt = (where: string): void => {
  armed = where;
};

/** Tells whether the armed fault has been thrown. */
export const hasThrown = (): boolean => armed === null;

const fire = (where: string): never => {
  armed = null;
  throw new Error(`raised at ${where}`);
};

const isSameMethod = (one: Below, other: Below): boolean =>
  one.prototype === other.prototype && one.method === other.method;

type Method = (...given: unknown[]) => unknown;

const replaceMethod = (prototype: object, method: string, points: readonly Below[]): (() => void) => {
  const methods = prototype as Record<string, Method>;
  const real = methods[method] as Method;
  const seen = new WeakSet();
  methods[method] = function (this: object, ...given: unknown[]): unknown {
    const point = points.find(({ where }) => where === armed);
    const isMeant =
      point !== undefined &&
      !(point.isNew === true && seen.has(this)) &&
      (point.first === undefined || point.first === given[0]) &&
      (point.caller === undefined || new Error('who calls?').stack?.includes(point.caller) === true);
    if (isMeant) fire(point.where);
    if (point === undefined) seen.add(this);
    return real.apply(this, given);
  };
  return () => {
    methods[method] = real;
  };
};

/** Enables faults for objects created from now on. Returns a function to disable the faults. */
export const allowFaults = (): (() => void) => {
  const { listen, accept } = guard;
  const faulty = (where: string, act: Listener): Listener => {
    // The client of the stage sends a message every second. A control plane fault must hit a listener added after the fault was armed.
    const isMeant = !where.startsWith('control.') || armed !== null;
    return (a, b, c, d) => {
      if (isMeant && armed === where) fire(where);
      act(a, b, c, d);
    };
  };
  const spies = [
    vi
      .spyOn(guard, 'listen')
      .mockImplementation((emitter, event, owner, scope, act) =>
        listen(emitter, event, owner, scope, faulty(`${scope}.${event}`, act)),
      ),
    vi
      .spyOn(guard, 'accept')
      .mockImplementation((server, event, report, scope, act) =>
        accept(server, event, report, scope, faulty(`${scope}.${event}`, act)),
      ),
  ];
  const restores = METHODS.filter((point, at) => at === METHODS.findIndex((other) => isSameMethod(point, other))).map(
    (point) =>
      replaceMethod(
        point.prototype,
        point.method,
        METHODS.filter((other) => isSameMethod(point, other)),
      ),
  );
  return () => {
    for (const spy of spies) spy.mockRestore();
    for (const restore of restores) restore();
  };
};
