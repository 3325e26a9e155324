// A TLS connection per visit without further data: the cost of a new visitor's handshake, compared with node:tls with nothing behind it.
// Measured with a single certificate, as users run it, and with 1,000 certificates and rotating names.
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
      // Each name is visited twice, because certificates are prepared at a limited rate when first requested.
      warmUpConnections: 2 * TLS_NAMES,
      connections: stage.quick ? 1500 : 6000,
    });
    return {
      connectionsPerSecond: connections / seconds,
      // The tunnel's client does not take part in the handshake.
      cpuPerConnectionUs: perUnitUs(cpu.edge ?? cpu.server, connections),
      p50Ms,
      p99Ms,
      window,
    };
  },
};
