// Memory of an idle connection, measured with 5,000 connections. Counts the resident memory of the processes, without the kernel's part.
import { setTimeout as delay } from 'node:timers/promises';
import { PEAK_MEMORY } from './figures.mjs';

const CONNECTIONS = 5000;
const QUICK_CONNECTIONS = 1000;
const SETTLE_MS = 1500;

export const tcpIdle = {
  name: 'tcp-idle-5000',
  title: 'TCP, memory of 5,000 idle connections',
  quickTitle: 'TCP, memory of 1,000 idle connections',
  paths: ['nginx', 'ours', 'ours-tls'],
  figures: ['edgeKbPerConnection', 'clientKbPerConnection', ...PEAK_MEMORY],
  targets: [
    { path: 'ours', figure: 'edgeKbPerConnection', atMost: 6 },
    { path: 'ours-tls', figure: 'edgeKbPerConnection', atMost: 6 },
  ],
  async measure(stage) {
    const connections = stage.quick ? QUICK_CONNECTIONS : CONNECTIONS;
    // The first connections of a process have a one-time cost, mainly compiled code, that is not part of the memory per connection.
    await (await stage.begin('hold', { connections: 100 })).finish();
    await delay(SETTLE_MS);
    const before = stage.memory();
    const held = await stage.begin('hold', { connections });
    await delay(SETTLE_MS);
    const after = stage.memory();
    await held.finish();
    const kbEach = (role) => (after[role].now - before[role].now) / 1000 / connections;
    return {
      edgeKbPerConnection: kbEach('edge'),
      clientKbPerConnection: kbEach('client'),
      ...stage.peakMemory(),
    };
  },
};
