// Starts a receiver-program.mjs and keeps the alerts that it received.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild } from '../../../../bench/lib/children.mjs';

const PROGRAM = fileURLToPath(new URL('receiver-program.mjs', import.meta.url));

/**
 * Starts a receiver on a separate loopback host, because the edge limits the deliveries to a single host. The receiver ends with the
 * script.
 */
export async function startReceiver(kind, host) {
  const child = startChild({
    name: `${kind} receiver`,
    command: process.execPath,
    args: [PROGRAM, kind, host],
    ipc: true,
  });
  const [{ port }] = await Promise.race([once(child.process, 'message'), failAtExit(child)]);
  const alerts = [];
  child.process.on('message', ({ body }) => alerts.push(body));
  return { url: `http://${host}:${port}/alert`, alerts };
}
