// The probe of type tcp: a connection that opens is enough. What the service would speak on it does not matter, TLS neither.
import { converse, GOOD, type Probe, type ProbeOptions } from './probe.ts';

export const tcpProbe =
  ({ target, ...options }: ProbeOptions): Probe =>
  (signal) =>
    converse({ ...options, target: { ...target, tls: null }, signal, talk: (_socket, done) => done(GOOD) });
