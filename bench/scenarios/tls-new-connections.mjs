// A TLS connection per visit and nothing on it: what the handshake of a new visitor costs, against node:tls with nothing behind it. With one
// certificate for all, as people run it; and with 1,000 certificates, each name in turn.
import { perUnitUs } from './figures.mjs';

export const TLS_NAMES = 1000;

export const tlsNewConnections = {
  name: 'tls-new-connections',
  title: 'TLS, a handshake per connection, 20 at a time',
  protocol: 'http',
  figures: ['connectionsPerSecond', 'cpuPerConnectionUs', 'p50Ms', 'p99Ms'],
  paths: ['bare-tls', 'ours-https', 'ours-names'],
  yardstick: 'bare-tls',
  targets: [
    { path: 'ours-https', figure: 'cpuPerConnectionUs', ratioAtMost: 1.15 },
    { path: 'ours-names', figure: 'cpuPerConnectionUs', ratioAtMost: 1.25 },
  ],
  async measure(stage) {
    const { connections, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('tlsConnect', {
      concurrency: 20,
      names: TLS_NAMES,
      // Each name twice: certificates are made ready at a pace when they are first asked for.
      warmUpConnections: 2 * TLS_NAMES,
      connections: stage.quick ? 1500 : 6000,
    });
    return {
      connectionsPerSecond: connections / seconds,
      // The client of the tunnel has no part in it.
      cpuPerConnectionUs: perUnitUs(cpu.edge ?? cpu.server, connections),
      p50Ms,
      p99Ms,
      window,
    };
  },
};
