// The figures that scenarios share: their titles, their format, and whether they are compared with nginx.

/**
 * Figures by their JSON key. With `ratio`, a figure is compared with the same figure of the yardstick (usually nginx) in the same round.
 */
export const FIGURES = {
  mbPerSecond: { title: 'MB/s', digits: 0 },
  cpuPerGb: { title: 'CPU s/GB', digits: 2, ratio: true },
  edgeCpuPerGb: { title: 'edge only', digits: 2 },
  roundTripsPerSecond: { title: 'round trips/s', digits: 0 },
  requestsPerSecond: { title: 'requests/s', digits: 0 },
  cpuPerRoundTripUs: { title: 'CPU µs/round trip', digits: 1, ratio: true },
  edgeCpuPerRoundTripUs: { title: 'edge only', digits: 1 },
  cpuPerRequestUs: { title: 'CPU µs/request', digits: 1, ratio: true },
  edgeCpuPerRequestUs: { title: 'edge only', digits: 1 },
  requestsPerCpuSecond: { title: 'requests/CPU s', digits: 0, ratio: true },
  loginsPerSecond: { title: 'sign-ins/s', digits: 1 },
  loginP99Ms: { title: 'sign-in p99 ms', digits: 0 },
  connectionsPerSecond: { title: 'connections/s', digits: 0 },
  cpuPerConnectionUs: { title: 'CPU µs/connection', digits: 1, ratio: true },
  datagramsPerSecond: { title: 'datagrams/s', digits: 0 },
  usPerDatagram: { title: 'µs/datagram', digits: 1, ratio: true },
  cpuPerDatagramUs: { title: 'CPU µs/datagram', digits: 1, ratio: true },
  edgeCpuPerDatagramUs: { title: 'edge only', digits: 1 },
  lostPercent: { title: 'lost %', digits: 3 },
  p50Ms: { title: 'p50 ms', digits: 2 },
  delayMs: { title: 'delay ms (median)', digits: 3, ratio: true },
  p99Ms: { title: 'p99 ms', digits: 2 },
  edgeKbPerConnection: { title: 'edge KB/connection', digits: 1 },
  clientKbPerConnection: { title: 'client KB/connection', digits: 1 },
  kbPerConnection: { title: 'KB/connection', digits: 1, ratio: true },
  edgeRestMb: { title: 'edge MB at rest', digits: 0 },
  clientRestMb: { title: 'client MB at rest', digits: 0 },
  shareOfAlone: { title: '× undisturbed bulk', digits: 2 },
  edgeMb: { title: 'edge MB', digits: 0 },
  clientMb: { title: 'client MB', digits: 0 },
  edgeStartMs: { title: 'server to its port, ms', digits: 0 },
  clientStartMs: { title: 'client to the first answer, ms', digits: 0 },
  clientAgainMs: { title: 'same, started again, ms', digits: 0 },
  npmStartNewMs: { title: 'npm start, new data, ms', digits: 0 },
  npmStartAgainMs: { title: 'npm start, again, ms', digits: 0 },
  httpUrlMs: { title: 'tunnel http to its URL, ms', digits: 0 },
  helpMs: { title: 'tunnel --help, ms', digits: 0 },
  bareNodeMs: { title: 'node -e 0, ms', digits: 0 },
  stackMb: { title: 'stack MB, all processes', digits: 0 },
  oneNameCpuPerRequestUs: { title: 'one name', digits: 1 },
  openMs: { title: 'all open, ms', digits: 0 },
  kbPerTunnel: { title: 'edge KB/tunnel', digits: 1 },
  kbPerClient: { title: 'edge KB/client', digits: 1 },
  socketsPerClient: { title: 'edge sockets/client', digits: 1 },
  restCpuPercent: { title: 'edge CPU % at rest', digits: 2 },
  edgePeakMb: { title: 'edge peak MB', digits: 0 },
  clientPeakMb: { title: 'client peak MB', digits: 0 },
};

export const PEAK_MEMORY = ['edgePeakMb', 'clientPeakMb'];

export const perGb = (seconds, bytes) => (seconds / bytes) * 1e9;
export const perUnitUs = (seconds, count) => (seconds / count) * 1e6;
export const mbPerSecond = (bytes, seconds) => bytes / 1e6 / seconds;
