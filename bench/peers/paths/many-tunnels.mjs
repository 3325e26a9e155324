// A path whose tunnels are opened by the row that measures them, so that the row can compare the edge before and after.
import { hostOf } from '../../lib/wrk.mjs';
import { untilAnswered } from '../peer-process.mjs';

/** Number of hosts that have to respond before a row continues, spread over all hosts in the order of creation. */
const CHECKED = 50;

/**
 * `fill({ count })` starts the client process with that number of tunnels. The path's own `fill` also waits until the tunnels respond.
 * @returns {{ address: object, processes: { edge: object, client?: object }, fill(settings: { count: number }): Promise<void> }}
 */
export function manyTunnels({ address, edge, fill }) {
  const processes = { edge };
  return {
    address,
    processes,
    async fill(settings) {
      processes.client = await fill(settings);
      const step = Math.max(1, Math.floor(settings.count / CHECKED));
      const last = settings.count - 1;
      const numbers = Array.from({ length: CHECKED }, (_, at) => Math.min(last, (at + 1) * step - 1));
      await untilAnswered(address, [...new Set([...numbers, last])].map(hostOf), processes);
    },
  };
}
