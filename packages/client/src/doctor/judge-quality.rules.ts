// Judges the quality of the path: latency, bandwidth, and support for UDP.
import { type Finding, skipped } from './check.rules.ts';

/** People notice a delay of a quarter of a second. */
const DOCTOR_LATENCY_WARN_MS = 250;
/** At this rate a page of one megabyte takes eight seconds. */
const DOCTOR_BANDWIDTH_WARN_MBITS = 1;

/** Round trip times in milliseconds, in any order. */
export interface LatencyFacts {
  readonly control: readonly number[];
  readonly carrier: readonly number[];
}

export const judgeLatency = ({ control, carrier }: LatencyFacts): Finding => {
  if (control.length === 0 && carrier.length === 0) {
    return { status: 'warn', detail: 'no ping came back in time', hint: 'Try again when the network is less busy.' };
  }
  const parts = [
    ...(control.length === 0 ? [] : [`control ${spread(control)}`]),
    ...(carrier.length === 0 ? [] : [`carrier ${spread(carrier)}`]),
  ];
  const detail = parts.join(', ');
  const slowest = Math.max(...[control, carrier].filter(({ length }) => length > 0).map(median));
  if (slowest <= DOCTOR_LATENCY_WARN_MS) return { status: 'ok', detail, hint: '' };
  return {
    status: 'warn',
    detail,
    hint: 'The connection adds this delay to every response. Use a region closer to you.',
  };
};

const spread = (times: readonly number[]): string => `${ms(median(times))}, worst ${ms(Math.max(...times))}`;

const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
};

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

export interface Transfer {
  readonly bytes: number;
  readonly ms: number;
}

export type BandwidthFacts =
  | { readonly state: 'not-wanted' }
  | { readonly state: 'not-offered'; readonly why: string }
  | { readonly state: 'failed'; readonly reason: string }
  | { readonly state: 'measured'; readonly down: Transfer; readonly up: Transfer };

export const judgeBandwidth = (facts: BandwidthFacts): Finding => {
  switch (facts.state) {
    case 'not-wanted':
      return skipped('--no-bandwidth');
    case 'not-offered':
      return skipped(facts.why);
    case 'failed':
      return {
        status: 'warn',
        detail: facts.reason,
        hint: 'Small messages pass, but a large transfer fails. Check for a proxy or firewall that cuts off long responses.',
      };
    case 'measured': {
      const down = megabits(facts.down);
      const up = megabits(facts.up);
      const detail = `${shown(down)} Mbit/s down, ${shown(up)} Mbit/s up`;
      if (Math.min(down, up) >= DOCTOR_BANDWIDTH_WARN_MBITS) return { status: 'ok', detail, hint: '' };
      return { status: 'warn', detail, hint: 'Your internet connection limits the speed for visitors.' };
    }
  }
};

const megabits = ({ bytes, ms: time }: Transfer): number => (bytes * 8) / 1000 / Math.max(time, 1);

const shown = (value: number): string => (value < 10 ? value.toFixed(1) : String(Math.round(value)));

export type UdpFacts =
  | { readonly state: 'not-offered'; readonly why: string }
  | { readonly state: 'asked'; readonly sent: number; readonly answered: number };

export const judgeUdp = (facts: UdpFacts): Finding => {
  if (facts.state === 'not-offered') return skipped(facts.why);
  const { sent, answered } = facts;
  if (answered === 0) {
    return {
      status: 'warn',
      detail: `0 of ${sent} datagrams came back`,
      hint: "UDP to the edge is blocked, so udp tunnels use TCP and p2p uses the relay. Allow outgoing UDP to the edge's port.",
    };
  }
  if (answered < sent) {
    return {
      status: 'warn',
      detail: `${answered} of ${sent} datagrams came back`,
      hint: 'The network loses datagrams. Try again when the network is less busy.',
    };
  }
  return { status: 'ok', detail: `${answered} of ${sent} datagrams came back`, hint: '' };
};

export interface NatFacts {
  /** Public address of a socket as seen by the edge's two UDP ports. Null for a port that did not respond. */
  readonly seen: readonly [string | null, string | null];
  /** True if a seen address belongs to this machine (no NAT). */
  readonly isOwn: boolean;
}

export const judgeNat = ({ seen: [one, other], isOwn }: NatFacts): Finding => {
  if (one === null && other === null) return skipped('no datagram came back');
  if (one === null || other === null) {
    return {
      status: 'warn',
      detail: 'one of the two UDP ports of the edge does not respond',
      hint: 'Allow outgoing UDP to both ports. p2p needs both to detect the type of NAT.',
    };
  }
  if (isOwn) return { status: 'ok', detail: `no NAT: ${one}`, hint: '' };
  if (one === other)
    return { status: 'ok', detail: `moderate: seen as ${one} by both ports, p2p can go direct`, hint: '' };
  return {
    status: 'warn',
    detail: `strict: seen as ${one} and as ${other}`,
    hint: 'p2p connects directly only if the other side has no strict NAT, and uses the relay otherwise. To improve that, forward a UDP port.',
  };
};
