// TLS of a service behind a tls tunnel, compared with a tcp tunnel that carries the same bytes: the cost to find the host in a
// ClientHello.
import { BULK_FIGURES, CONNECT_FIGURES, measureBulk, measureConnect } from './measures.mjs';

const PATHS = {
  paths: ['ours-tcp-of-tls', 'ours-passthrough'],
  yardstick: 'ours-tcp-of-tls',
};

const BYTES = 1e9;
const QUICK_BYTES = 2e8;
const WARM_UP_SHARE = 0.5;

const tlsPassthroughBulk = {
  name: 'tls-passthrough-bulk',
  title: 'TLS passthrough, bulk download, one stream',
  ...PATHS,
  figures: BULK_FIGURES,
  targets: [{ path: 'ours-passthrough', figure: 'cpuPerGb', ratioAtMost: 1.1 }],
  measure(stage) {
    const wanted = stage.quick ? QUICK_BYTES : BYTES;
    const parameters = { direction: 'down', streams: 1, bytes: wanted, warmUpBytes: wanted * WARM_UP_SHARE };
    return measureBulk(stage, parameters);
  },
};

const tlsPassthroughConnect = {
  name: 'tls-passthrough-connect',
  title: 'TLS passthrough, a handshake and a round trip of 128 bytes, 20 at a time',
  ...PATHS,
  figures: CONNECT_FIGURES,
  targets: [{ path: 'ours-passthrough', figure: 'cpuPerRoundTripUs', ratioAtMost: 1.1 }],
  measure: (stage) => measureConnect(stage, 4000),
};

export const tlsPassthroughScenarios = [tlsPassthroughBulk, tlsPassthroughConnect];
