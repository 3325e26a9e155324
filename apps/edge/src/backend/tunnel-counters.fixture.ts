// Traffic counters with initial values. Used by tests only.
import { TunnelCounters } from './tunnel-counters.ts';

export const countersOf = (requests: number, bytes: number, openConnections = 0): TunnelCounters => {
  const counters = new TunnelCounters();
  for (let n = 0; n < requests; n += 1) counters.addRequest();
  counters.addBytes(bytes);
  counters.openConnections = openConnections;
  return counters;
};
