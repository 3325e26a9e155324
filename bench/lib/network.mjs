// The network for a scenario's processes: the machine's loopback interface, or a network namespace with small kernel buffers. Thousands
// of stalled readers with ordinary buffers would use up the kernel's TCP memory for all programs.
import { failAtExit, startChild } from './children.mjs';

const SMALL_BUFFERS = '4096 16384 16384';

const SET_UP = `
ip link set lo up
echo '${SMALL_BUFFERS}' > /proc/sys/net/ipv4/tcp_rmem
echo '${SMALL_BUFFERS}' > /proc/sys/net/ipv4/tcp_wmem
echo ready
exec cat`;

/** `wrap` turns a command into a command that runs inside the network. */
export const loopback = { name: 'loopback', wrap: (command, args) => ({ command, args }), close: async () => {} };

/**
 * Creates a network namespace. Returns null if the user has no right to create one. The holder's `cat` ends together with the bench in
 * any case.
 */
export async function smallBufferNetwork() {
  const { promise, onLine } = firstLine();
  const holder = startChild({
    name: 'network',
    command: 'unshare',
    args: ['--net', 'sh', '-ec', SET_UP],
    onLine,
  });
  try {
    await Promise.race([promise, failAtExit(holder)]);
  } catch {
    return null;
  }
  return {
    name: 'small buffers',
    wrap: (command, args) => ({
      command: 'nsenter',
      args: [`--net=/proc/${holder.pid}/ns/net`, command, ...args],
    }),
    close: async () => {
      holder.process.stdin.end();
      await holder.exited;
    },
  };
}

function firstLine() {
  let onLine;
  const promise = new Promise((resolve) => {
    onLine = resolve;
  });
  return { promise, onLine };
}
